"""The failure coordinator (Hydra section 6; Eris section 6.3): what became of messages that a group has lost.

A group that lacks a message cannot know who else was sent it. So the coordinator asks the replicas of all
groups. If anybody has the message, it counts, and all of its groups get it. If a majority of every group
promises not to take it, it is gone. The decision is in a log before anybody is told.

Promises count together only if they were made in one view, with one tag, and if the leader of that view is
among them: what such a majority does not have, no client has an answer to, and a later view takes the
promises over.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Replica
from ordercast.components.cross_shard.claims import CLOCK_AHEAD_MAX, NEVER
from ordercast.components.cross_shard.ledger import NOTHING, end_payload
from ordercast.components.cross_shard.marks import Lost, Mark
from ordercast.components.cross_shard.messages import (
    MARKS_MAX,
    Certain,
    FindMessages,
    Floors,
    FoundMessages,
    Gone,
    Late,
    Promised,
    Question,
    Shown,
)
from ordercast.components.cross_shard.options import CoordinatorOptions
from ordercast.components.cross_shard.rulings import Drop, Forget, Rulings, Show, decode, encode
from ordercast.components.network_ordered import LogEntry
from ordercast.core import (
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Member,
    Message,
    Nanos,
    NodeId,
    RemoteError,
    Stack,
    Wait,
    named,
)

ASK, FLOORS = "ask", "floors"
BACK_OFF_MAX = 16
"""Questions are repeated at last after so many times `ask_ns`."""
CHUNK_BYTES = 16_384
"""How many bytes of messages that were found go in one message."""
CASES_MAX = 4096
"""How many messages are searched for at a time."""
RULINGS_FEW = 256
"""With more decisions than these, idle groups are sent a message, so that decisions can be forgotten."""


class Case:
    """A message that is searched for."""

    __slots__ = ("due", "loss", "promises", "since")

    def __init__(self, loss: Lost, now: Nanos) -> None:
        self.loss = loss
        self.since = self.due = now
        """Since when it is searched for, and when all are asked again."""
        self.promises: dict[NodeId, tuple[int, int]] = {}
        """By replica: the view and the tag in which it last promised not to take it."""


class FailureCoordinator(Stack):
    """One replica of the coordinator. Only the leader of its log acts; any may tell what was decided."""

    def __init__(
        self,
        env: Env,
        groups: Mapping[GroupId, tuple[NodeId, ...]],
        peers: tuple[NodeId, ...],
        options: CoordinatorOptions,
        sender: Callable[[Env], Member],
        sent: tuple[type[Message], ...],
    ) -> None:
        """`sender` makes the process by which messages to groups are sent; it gets these messages."""
        super().__init__(env)
        self._sender = self.embed("sender", sender, sent)
        self._count = len(groups)
        self._groups = {group: members for group, members in groups.items() if members}
        self._homes = {node: group for group, members in groups.items() for node in members}
        self._options = options
        self._rulings = Rulings()
        self._log = self.embed("log", partial(self._make_log, peers), CONSENSUS_MESSAGES)
        self._cases: dict[Mark, Case] = {}
        self._clocks = dict.fromkeys(self._groups, 0)
        """By group: up to which clock it is certain."""
        self._woken: Nanos = 0
        """When idle groups were last sent something."""
        self._ballot = -1
        self._proposed: set[bytes] = set()
        self._refused = 0
        """Commands in the log that no correct leader proposes."""

    def _make_log(self, peers: tuple[NodeId, ...], env: Env) -> Replica:
        return Replica(env, peers, self._options.consensus, snapshot=self.snapshot, restore=self.restore)

    # What a coordinator that decides on more extends

    def snapshot(self) -> bytes:
        """All that was decided."""
        return self._rulings.snapshot()

    def restore(self, state: bytes) -> None:
        """Take it back."""
        self._rulings.restore(state)

    def begin_office(self) -> None:
        """Begin a leadership: who still asks, asks again."""
        self._cases.clear()
        self._proposed.clear()

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Start the log, and the timers."""
        super().on_start(saved)
        self.env.set_timer(FLOORS, self._options.certain_ns)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Hear of a message that is missing, that is there, or that nobody takes."""
        if source not in self._homes:
            raise RemoteError(f"node {source} sent {named(message)}, but is no replica of a group")
        self.check(source, message)
        self._take_office()
        self.on_replica(source, message)

    def on_replica(self, source: NodeId, message: Message) -> None:
        """Take a message of a replica, which is checked."""
        match message:
            case Certain():
                home = self._homes[source]
                self._clocks[home] = max(self._clocks[home], message.clock)
            case FindMessages():
                self._on_find(source, message)
            case Shown():
                self._on_held(source, message.entry)
            case Promised():
                self._on_promised(source, message)
            case Late():
                self._on_late(message)
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a coordinator")

    def check(self, source: NodeId, message: Message) -> None:
        """Refuse clocks in the far future, and messages to groups that there are not."""
        latest = self.env.now + CLOCK_AHEAD_MAX
        if isinstance(message, Certain) and message.clock > latest:
            raise RemoteError(
                f"node {source} is certain up to {message.clock}, too far ahead of {self.env.now}"
            )
        if isinstance(message, FindMessages):
            for loss in message.losses:
                if loss.mark[1] not in self._groups or loss.bound > latest:
                    raise RemoteError(f"node {source} asks for a message {loss.mark} up to {loss.bound}")
        if isinstance(message, Late):
            for _, named in message.transactions:
                if not named or len(set(named)) < len(named) or not self._groups.keys() >= set(named):
                    raise RemoteError(f"node {source} tells of a transaction of groups {named}")
        if isinstance(message, Shown):
            entry = message.entry
            fits = len(entry.groups) == len(entry.numbers) and len(set(entry.groups)) == len(entry.groups)
            if not entry.groups or not fits or max(entry.groups) >= self._count or entry.clock > latest:
                raise RemoteError(f"node {source} shows a message to {entry.groups} at {entry.clock}")

    # What comes

    def _on_find(self, source: NodeId, message: FindMessages) -> None:
        """Tell what was decided; ask all replicas about the rest."""
        decided, begun = [], []
        for loss in message.losses:
            ruling = self._rulings.find(loss.mark)
            if ruling is not None:
                decided.append(ruling)
            elif self._is_new(loss):
                begun.append(Case(loss, self.env.now))
                self._cases[loss.mark] = begun[-1]
        self._tell(decided, (source,))
        if begun:
            self._ask(begun)

    def _is_new(self, loss: Lost) -> bool:
        """Whether the leader begins to search for a message."""
        is_known = loss.mark in self._cases or loss.bound <= self._rulings.forgotten
        return self._log.is_leader and not is_known and len(self._cases) < CASES_MAX

    def _ask(self, cases: list[Case]) -> None:
        """Ask all replicas, again after a while, and then less and less often."""
        now = self.env.now
        for case in cases:
            wait = max(self._options.ask_ns, now - case.since)
            case.due = now + min(wait, BACK_OFF_MAX * self._options.ask_ns)
        losses = [case.loss for case in cases]
        for start in range(0, len(losses), MARKS_MAX):
            self.env.multicast(tuple(self._homes), Question(tuple(losses[start : start + MARKS_MAX])))
        self.env.set_timer(ASK, self._options.ask_ns)

    def _on_held(self, source: NodeId, entry: LogEntry) -> None:
        """A message is there: it counts, unless it is gone."""
        if self._rulings.is_settled(entry):
            self._tell_about(entry, (source,))
        elif entry.clock <= self._rulings.forgotten:
            self.env.send(source, self._floors())
        else:
            self.propose(encode(Show(entry)))

    def _on_late(self, message: Late) -> None:
        """End transactions, by a message to all of their shards: so all end them alike, before or after the
        conclusion of their client. Who still waits asks again."""
        if self._log.is_leader:
            for transaction, groups in message.transactions:
                self._sender.submit(groups, end_payload(transaction))

    def _on_promised(self, source: NodeId, message: Promised) -> None:
        decided = []
        for mark in message.marks:
            ruling, case = self._rulings.find(mark), self._cases.get(mark)
            if ruling is not None:
                decided.append(ruling)
            elif case is not None:
                case.promises[source] = message.view, message.tag
                if self._is_gone(case):
                    self.propose(encode(Drop(case.loss)))
        self._tell(decided, (source,))

    def _is_gone(self, case: Case) -> bool:
        """Whether a majority of every group has promised not to take a message."""
        return all(self._has_promised(case, members) for members in self._groups.values())

    def _has_promised(self, case: Case, members: tuple[NodeId, ...]) -> bool:
        """Whether a majority of a group has, in one view and with one tag, its leader among them."""
        own = [case.promises[node] for node in members if node in case.promises]
        return any(
            own.count((view, tag)) > len(members) // 2
            and case.promises.get(members[view % len(members)]) == (view, tag)
            for view, tag in set(own)
        )

    # What is decided

    def propose(self, value: bytes) -> None:
        """Put a decision into the log, once at a time."""
        if self._log.is_leader and value not in self._proposed:
            self._proposed.add(value)  # before, for a log of one replica delivers it at once
            if not self._log.propose(value):
                self._proposed.discard(value)

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """The log has decided."""
        assert isinstance(delivery, Delivered)
        self._proposed.discard(delivery.payload)
        try:
            self.decided(delivery.payload)
        except RemoteError:  # no correct leader proposes it, and no replica obeys it
            self._refused += 1

    def decided(self, value: bytes) -> None:
        """Take a decision from the log, or raise `RemoteError`."""
        command = decode(value)
        self._rulings.apply(command)
        if isinstance(command, Forget):
            return
        if isinstance(command, Drop):
            self._cases.pop(command.loss.mark, None)
        else:
            for mark in [mark for mark in self._cases if self._rulings.find(mark) is not None]:
                del self._cases[mark]
        if self._log.is_leader:
            self._announce(command)

    def _announce(self, command: Show | Drop) -> None:
        """Tell a decision to all whom it concerns; who does not hear of it asks again."""
        everybody = tuple(self._homes)
        if isinstance(command, Show):
            self._tell_about(command.entry, everybody)
        else:
            ruling = self._rulings.find(command.loss.mark)
            self._tell([] if ruling is None else [ruling], everybody)

    def _tell_about(self, entry: LogEntry, to: tuple[NodeId, ...]) -> None:
        """Tell what was decided about a message."""
        gone = self._rulings.gone(entry)
        if gone:
            self.env.multicast(to, Gone(tuple(gone)))
        elif self._rulings.is_settled(entry):
            self.env.multicast(to, FoundMessages((entry,)))

    def _tell(self, rulings: Sequence[LogEntry | Lost], to: tuple[NodeId, ...]) -> None:
        gone = tuple(ruling for ruling in rulings if isinstance(ruling, Lost))
        if gone:
            self.env.multicast(to, Gone(gone))
        found: list[LogEntry] = []
        size = 0
        for entry in (ruling for ruling in rulings if isinstance(ruling, LogEntry)):
            found.append(entry)
            size += len(entry.payload)
            if size >= CHUNK_BYTES:
                self.env.multicast(to, FoundMessages(tuple(found)))
                found, size = [], 0
        if found:
            self.env.multicast(to, FoundMessages(tuple(found)))

    # The leader

    def _take_office(self) -> None:
        if self._log.ballot != self._ballot:
            self._ballot = self._log.ballot
            self.begin_office()

    def on_own_timer(self, name: str) -> None:
        """Repeat questions, or tell how far all groups are certain."""
        self._take_office()
        if name == ASK:
            if self._log.is_leader and self._cases:
                self._go_on_asking()
        elif name == FLOORS:
            self.env.set_timer(FLOORS, self._options.certain_ns)
            if self._log.is_leader:
                self._forget()

    def _go_on_asking(self) -> None:
        """Ask again what is due, and propose again what a full log refused."""
        self.env.set_timer(ASK, self._options.ask_ns)
        for case in self._cases.values():
            if self._is_gone(case):
                self.propose(encode(Drop(case.loss)))
        due = [case for case in self._cases.values() if case.due <= self.env.now]
        if due:
            self._ask(due)

    def _forget(self) -> None:
        """Let all forget what is certain everywhere."""
        lowest = min(self._clocks.values())
        if any(self._clocks.values()):
            self.env.multicast(tuple(self._homes), self._floors())
        if len(self._rulings) and lowest > self._rulings.forgotten:
            self.propose(encode(Forget(lowest)))
        elif len(self._rulings) > RULINGS_FEW:
            self._wake(lowest)

    def _wake(self, lowest: int) -> None:
        """Send the groups that are furthest behind a message that does nothing. A group is certain only as
        far as it was sent something: an idle one would keep all decisions from being forgotten."""
        if self.env.now - self._woken >= BACK_OFF_MAX * self._options.certain_ns:
            self._woken = self.env.now
            self._sender.submit(tuple(group for group, at in self._clocks.items() if at == lowest), NOTHING)

    def _floors(self) -> Floors:
        return Floors(tuple(self._clocks.get(group, NEVER) for group in range(self._count)))

    def explain_own(self) -> Explanation:
        """The messages that are searched for, and whose promises are missing."""
        state: dict[str, str | int] = {"role": "coordinator", "decisions kept": len(self._rulings)}
        if self._refused:
            state["commands refused"] = self._refused
        waits = []
        for case in self._cases.values():
            lacking = [group for group, nodes in self._groups.items() if not self._has_promised(case, nodes)]
            nodes = tuple(node for group in lacking for node in self._groups[group])
            sequencer, group, number = case.loss.mark
            what = f"number {number} of sequencer {sequencer} in group {group}"
            blocker = f"a majority of groups {', '.join(map(str, lacking))}, or a replica that has it"
            waits.append(Wait(what, blocker, case.since, on=nodes))
        return Explanation(state, tuple(waits), "")
