"""A client of Lock-Store: it coordinates the two phases of each of its calls.

A call asks all of its shards for locks, and commits when all have them. If a lock is taken, it gives up those
that it got, waits for a random time, and makes another attempt. It waits for no lock, so nobody waits in a
circle. An attempt that the shards have frozen, because they thought that this client had died, has the
outcome that they find: the client waits for it, or makes another attempt.
"""

from collections.abc import Mapping

from ordercast.components.execution import CallOptions, Calls, Pending, combine_results
from ordercast.core import (
    Caller,
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Sharding,
    Wait,
    message_name,
)
from ordercast.transactions.lock_store.commands import (
    DONE_MAX,
    Command,
    Leads,
    Order,
    State,
    Told,
    Verb,
    pack_command,
)
from ordercast.transactions.lock_store.options import LockStoreOptions

BACK_OFF = "again."


class TransactionCalls(Calls):
    """The calls of a client, each to all of its shards."""

    several = True
    """Whether a call may go to several groups."""

    def check(self, groups: Groups) -> None:
        """Raise `LocalError` if no replicas can take a call to these groups."""
        if not groups or (len(groups) > 1 and not self.several):
            raise LocalError(
                f"an operation of a service without shards goes to one group, not to {len(groups)}: {groups}"
            )
        for group in groups:
            super().check((group,))


class Round:
    """One call under way: its attempt, its phase, and what the shards have said."""

    __slots__ = ("attempt", "busy", "results", "said", "since", "verb")

    def __init__(self, now: Nanos) -> None:
        self.attempt = 0
        self.since = now
        """When this attempt began."""
        self.verb = Verb.LOCK
        self.said: dict[GroupId, State] = {}
        """What the shards have said in this phase."""
        self.results: dict[GroupId, Told] = {}
        """The shards that have committed."""
        self.busy = 0
        """How many attempts have found a lock taken."""

    def begin(self, verb: Verb, attempt: int) -> None:
        """Go to another phase."""
        self.verb, self.attempt = verb, attempt
        self.said.clear()


class TransactionClient(Caller):
    """One client of all shards."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        options: LockStoreOptions,
        sharding: Sharding | None,
        *,
        answers: bool,
    ) -> None:
        super().__init__(env)
        self._members = members
        self._options = options
        self._sharding = sharding
        self._homes = {node: group for group, nodes in members.items() for node in nodes}
        self._leaders = {group: nodes[0] for group, nodes in members.items() if nodes}
        self._rounds: dict[MessageId, Round] = {}
        self._done: dict[GroupId, list[MessageId]] = {}
        """For each shard, the calls that all their shards have committed, and that it has not been told."""
        calls: CallOptions = options.calls
        self._calls = TransactionCalls(env, self._leaders, calls, self._send, answers=answers)
        self._calls.several = sharding is not None or not answers

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations of some shards."""
        return self._calls.take(tuple(sorted(groups)), payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations that change nothing: they have their places in the logs, too."""
        return self._calls.take(tuple(sorted(groups)), payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    # Sending

    def _send(self, call: Pending) -> None:
        """Begin a call, or ask the shards again that have not answered."""
        round_ = self._rounds.setdefault(call.first, Round(self.env.now))
        for group in call.groups:
            if group not in round_.said:
                self._ask(call, round_, group, again=call.attempts > 1)

    def _ask_all(self, call: Pending, round_: Round) -> None:
        for group in call.groups:
            self._ask(call, round_, group)

    def _ask(self, call: Pending, round_: Round, group: GroupId, *, again: bool = False) -> None:
        packed, done = b"", tuple[MessageId, ...]()
        if round_.verb is Verb.LOCK:
            packed, done = call.packed(self._calls.floor), self._take_done(group)
        command = Command(round_.verb, call.first, round_.attempt, call.groups, packed, done)
        order = Order(pack_command(command))
        if again:
            self.env.multicast(self._members[group], order)
        else:
            self.env.send(self._leaders[group], order)

    def _take_done(self, group: GroupId) -> tuple[MessageId, ...]:
        done = self._done.get(group, [])
        taken, self._done[group] = tuple(done[:DONE_MAX]), done[DONE_MAX:]
        return taken

    # Hearing

    def on_message(self, source: NodeId, message: Message) -> None:
        """What a shard says of a call, or who leads it."""
        group = self._homes.get(source)
        if group is None:
            raise RemoteError(f"node {source} is no replica, and sent a {type(message).__name__} to a client")
        match message:
            case Told():
                call, round_ = self._calls.pending.get(message.first), self._rounds.get(message.first)
                if call is not None and round_ is not None and group in call.groups:
                    self._on_told(call, round_, group, message)
            case Leads() if message.leader in self._members[group]:
                self._leaders[group] = message.leader
            case _:
                raise RemoteError(f"node {source} sent {message} to a client")

    def _on_told(self, call: Pending, round_: Round, group: GroupId, told: Told) -> None:
        if told.state is State.COMMITTED:
            if told.results:
                round_.results[group] = told
                round_.said[group] = told.state
                self._settle(call, round_)
        elif told.state is State.ABORTED:
            if told.attempt >= round_.attempt and told.verb is not Verb.ABORT:
                self._try_again(call, round_, told.attempt + 1)
        elif told.verb is round_.verb and told.attempt == round_.attempt and told.state is not State.FROZEN:
            round_.said[group] = told.state
            self._count(call, round_)

    def _count(self, call: Pending, round_: Round) -> None:
        """In the first phase: all shards have locked, or one could not."""
        if round_.verb is not Verb.LOCK or len(round_.said) < len(call.groups):
            return
        states = round_.said.values()
        if State.BUSY not in states:
            round_.begin(Verb.COMMIT, round_.attempt)
            self._ask_all(call, round_)
            return
        abort = Order(pack_command(Command(Verb.ABORT, call.first, round_.attempt, call.groups)))
        for group, state in round_.said.items():
            if state is State.LOCKED:
                self.env.send(self._leaders[group], abort)
        self._try_again(call, round_, round_.attempt + 1)

    def _try_again(self, call: Pending, round_: Round, attempt: int) -> None:
        """Make another attempt, after a while. It has no phase until then. Others hold locks for about as
        long as this attempt took: who asks again much sooner is only in their way."""
        round_.begin(Verb.ABORT, attempt)
        round_.said = dict.fromkeys(call.groups, State.BUSY)
        options, took = self._options, self.env.now - round_.since
        unit = max(options.back_off_ns, min(took, options.calls.retry_ns))
        span = unit * min(1 << min(round_.busy, 10), options.back_off_max)
        round_.busy += 1
        self.env.set_timer(f"{BACK_OFF}{call.first}", 1 + self.env.rng.randrange(span))

    def _settle(self, call: Pending, round_: Round) -> None:
        if len(round_.results) < len(call.groups):
            return
        told = round_.results[call.group]
        parts = [round_.results[group].results for group in call.groups]
        results = parts[0]
        if self._sharding is not None and len(parts) > 1:
            results = combine_results(self._sharding, call.bundle, parts)
        self._calls.settle(call.first, results, told.stamp, self._leaders[call.group])
        del self._rounds[call.first]
        if len(call.groups) > 1:
            for group in call.groups:
                self._done.setdefault(group, []).append(call.first)

    def on_timer(self, name: str) -> None:
        """Make another attempt, or repeat calls."""
        if not name.startswith(BACK_OFF):
            self._calls.on_timer()
            self._rounds = {one: kept for one, kept in self._rounds.items() if one in self._calls.pending}
            return
        first = int(name.removeprefix(BACK_OFF))
        call, round_ = self._calls.pending.get(first), self._rounds.get(first)
        if call is not None and round_ is not None and round_.verb is Verb.ABORT:
            round_.begin(Verb.LOCK, round_.attempt)
            round_.since = self.env.now
            self._ask_all(call, round_)

    def explain(self) -> Explanation:
        """The calls without an answer, each with the shards that have not answered."""
        leaders = ", ".join(f"node {node} leads shard {group}" for group, node in self._leaders.items())
        state: dict[str, str | int] = {
            "role": "client",
            "believes": leaders,
            "calls under way": len(self._calls.pending),
        }
        return Explanation(state, tuple(map(self._wait, self._calls.pending.values())))

    def _wait(self, call: Pending) -> Wait:
        """What a call waits for."""
        round_ = self._rounds.get(call.first)
        silent = [group for group in call.groups if round_ is None or group not in round_.said]
        shards = ", ".join(map(str, silent))
        return Wait(
            f"call {message_name(call.first)} of {call.count} operations, sent {call.attempts} times",
            f"a majority of shard {shards}" if silent else "locks, which others have",
            call.since,
            payload=call.bundle,
            groups=call.groups,
            on=tuple(node for group in silent for node in self._members[group]),
        )
