"""A replica of Lock-Store: puts commands into the log of its shard, and tells what they did.

The leader tells whoever sent a command, and so does a replica that relayed it: what the log has decided is
final.
"""

from collections.abc import Iterator, Sequence

from ordercast.components.execution import Execution, unpack_call
from ordercast.components.execution.messages import place_of_stamp
from ordercast.components.logged_service.logged_replica import LoggedReplica, Place
from ordercast.components.logged_service.messages import Redirect
from ordercast.components.logged_service.proposer import Proposer
from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Locked,
    Message,
    MessageId,
    NodeId,
    Notice,
    Released,
    RemoteError,
    Stamp,
    Wait,
    message_name,
    message_sender,
    named,
)
from ordercast.core.bundle import bundle_span
from ordercast.transactions.lock_store.commands import (
    BY_CLIENTS,
    Command,
    Order,
    Relay,
    State,
    Told,
    Verb,
    pack_command,
    unpack_command,
)
from ordercast.transactions.lock_store.ending import Ending
from ordercast.transactions.lock_store.ledger import CallLocks, Finding, Ledger
from ordercast.transactions.lock_store.options import LockStoreOptions

ASKED_MAX = 4
"""So many nodes are told what one command did; others ask again."""


class ShardServer(LoggedReplica):
    """One replica of one shard."""

    def __init__(
        self,
        env: Env,
        place: Place,
        options: LockStoreOptions,
        members: dict[GroupId, tuple[NodeId, ...]],
    ) -> None:
        """`members` are the replicas of all shards."""
        super().__init__(env, place, options)
        self._shards = members
        self._homes = {node: group for group, nodes in members.items() for node in nodes}
        self._ledger = Ledger(self.executor)
        self._proposer = Proposer(self.log, options)
        self._asked: dict[tuple[Verb, MessageId, int], list[NodeId]] = {}
        """Who is told what a command does, the oldest first."""
        self._ending = Ending(env, place.group, members, self._ledger, self.executor, options, self._order)

    # State

    def snapshot(self) -> bytes:
        """The records of calls, and the state of the shard."""
        return self._ledger.snapshot()

    def restore_state(self, state: bytes) -> None:
        """Take over such a state."""
        self._ledger.restore(state)

    # Commands

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A command, or what another shard has found."""
        match message:
            case Order():
                command = unpack_command(message.command)
                self._check(command, source)
                self._take(command, message.command, source)
            case Relay() if source in self.members:
                command = unpack_command(message.command)
                self._check(command, message.asker)
                if self.log.is_leader:
                    self._put(command, message.command, message.asker)
            case Told() if source in self._homes and source not in self.members:
                self._ending.on_told(self._homes[source], message)
            case Redirect() if source in self._homes and source not in self.members:
                self._ending.on_leads(self._homes[source], message.leader)
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a replica")

    def _check(self, command: Command, source: NodeId) -> None:
        """Whether this node may send such a command."""
        groups, home = command.groups, self._homes.get(source)
        by_client = home is None and source == message_sender(command.first)
        allowed = by_client if command.verb in BY_CLIENTS else home in groups
        if not allowed or self._group not in groups or not self._shards.keys() >= set(groups):
            raise RemoteError(f"node {source} sent {command.verb.name} for {message_name(command.first)}")

    def _take(self, command: Command, packed: bytes, source: NodeId) -> None:
        if self.log.is_leader:
            self._put(command, packed, source)
            return
        leader = self.log.leader
        if leader is None or leader == self.env.me:
            return
        self.env.send(leader, Relay(packed, source))
        self.env.send(source, Redirect(leader))
        self._note_asked(command, source)

    def _put(self, command: Command, packed: bytes, asker: NodeId) -> None:
        """Put a command into the log, unless its call is executed already."""
        known = self._ledger.known(command.first) if command.verb in BY_CLIENTS else None
        if known is not None:
            finding = Finding(State.COMMITTED, command.attempt)
            self._tell([asker], command.verb, command.first, finding, known.results, known.stamp)
            return
        self._note_asked(command, asker)
        self._proposer.add(command.name, packed)

    def _note_asked(self, command: Command, asker: NodeId) -> None:
        asked = self._asked.setdefault(command.name, [])
        if asker not in asked and len(asked) < ASKED_MAX:
            asked.append(asker)
        if len(self._asked) > self._options.queue:
            del self._asked[next(iter(self._asked))]

    def _order(self, command: Command) -> None:
        """A command of this shard itself."""
        if self.log.is_leader:
            self._put(command, pack_command(command), self.env.me)

    # What the log decides

    def run_entry(self, packed: bytes, place: Stamp) -> None:
        """Run a command, and tell what it did."""
        command = unpack_command(packed)
        self._proposer.done(command.name)
        asked = self._asked.pop(command.name, [])
        finding = self._ledger.run(command, place)
        if finding is not None:
            self._deliver(command, finding, place)
            results, stamp = self._results(command.first, finding)
            self._tell(asked, command.verb, command.first, finding, results, stamp)
        for done in self.executor.take_released():
            self._tell_released(done)

    def _results(self, first: MessageId, finding: Finding) -> tuple[bytes, Stamp | None]:
        """The results of a call that is committed, if they are kept, and their place."""
        if finding.answer is not None:
            return finding.answer.results, self.executor.place
        known = self._ledger.known(first) if finding.state is State.COMMITTED else None
        return (b"", None) if known is None else (known.results, known.stamp)

    def _deliver(self, command: Command, finding: Finding, place: Stamp) -> None:
        """Deliver a call that was executed, and what became of locks."""
        certain = self.is_certain(place)
        changes, self._ledger.changes = self._ledger.changes, []
        notices = self.executor.take_lock_notices(self._group, place)
        if finding.executed is not None:
            self.deliver_call(finding.executed, command.groups, place)
        if certain:
            for notice in lock_rows(self._group, place, changes, notices):
                self.env.deliver(notice)

    def _tell(
        self,
        nodes: list[NodeId],
        verb: Verb,
        first: MessageId,
        finding: Finding,
        results: bytes,
        stamp: Stamp | None,
    ) -> None:
        told = Told(verb, first, finding.attempt, finding.state, results, place_of_stamp(stamp))
        for node in nodes:
            if node == self.env.me:
                self._ending.on_told(self._group, told)
            else:
                self.env.send(node, told)

    def _tell_released(self, done: Execution) -> None:
        """A call that waited for a general transaction has run."""
        if self.log.is_leader:
            finding = Finding(State.COMMITTED, 0)
            client = message_sender(done.first)
            self._tell([client], Verb.COMMIT, done.first, finding, done.results, done.stamp)

    # The end of an event

    def on_own_timer(self, name: str) -> None:
        """Look for locks that are held too long."""
        self._ending.on_timer(leads=self.log.is_leader)

    def conclude(self) -> None:
        """Put commands into the log that wait for a slot."""
        self._proposer.push()
        super().conclude()
        self._ending.arm()

    def explain_own(self) -> Explanation:
        """How far this replica is, and which calls hold locks here."""
        state: dict[str, str | int] = {
            "role": "replica",
            "group": self._group,
            "calls executed": self.executor.executed,
            "calls known": len(self._ledger.records),
            "commands queued": len(self._proposer),
        }
        if self._refused:
            state["commands refused"] = self._refused
        waits = [
            Wait(
                f"{what} {message_name(first)}",
                f"its client, or shard {', '.join(map(str, groups))}, to end it",
                since,
                unpack_call(call).bundle if call else None,
                groups=groups,
            )
            for what, first, groups, since, call in self._ending.under_way()
        ]
        return Explanation(state, tuple(waits))


def lock_rows(
    group: GroupId, place: Stamp, changes: Sequence[CallLocks], general: Sequence[Notice]
) -> Iterator[Notice]:
    """What became of locks at a place, for the trace. The locks of a call that prepares a general transaction
    become those of the transaction."""
    prepared = {one.transaction for one in general if isinstance(one, Locked)}
    own: set[MessageId] = set()
    for call, committed in changes:
        first, count = bundle_span(call.bundle)
        own.update(range(first, first + count))
        for message in range(first, first + count):
            if committed is None:
                yield Locked(group, message, place)
            elif not committed or message not in prepared:
                yield Released(group, message, place, committed)
    for one in general:
        if not isinstance(one, Locked) or one.transaction not in own:
            yield one
