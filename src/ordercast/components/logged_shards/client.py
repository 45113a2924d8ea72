"""A client of shards that are logs: what it keeps of each call, and how it tries again.

A call goes to all of its shards, whose leaders put it into their logs. If one of them could not lock what the
call needs, the client waits for a random time, and makes another attempt. How many messages an attempt takes
is the protocol's.
"""

from abc import abstractmethod
from collections.abc import Mapping
from enum import IntEnum
from typing import Generic, TypeVar

from ordercast.components.execution import Pending, ShardCalls, combine_results
from ordercast.components.logged_service.messages import Redirect
from ordercast.components.logged_shards.entries import DONE_MAX
from ordercast.components.logged_shards.options import ShardsOptions
from ordercast.core import (
    Caller,
    Env,
    Explanation,
    GroupId,
    Groups,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Sharding,
    Stamp,
    Wait,
    message_name,
    named,
)
from ordercast.core.bundle import unpack_bundle

BACK_OFF = "again."


class Round:
    """One call under way: its attempt, and what the shards have said."""

    __slots__ = ("attempt", "busy", "results", "said", "since", "waits")

    def __init__(self) -> None:
        self.attempt = 0
        self.since: Nanos = 0
        """When this attempt began."""
        self.said: dict[GroupId, IntEnum] = {}
        """What the shards have said in this attempt, or in this phase of it."""
        self.results: dict[GroupId, tuple[bytes, Stamp | None]] = {}
        """What the shards have answered that have executed it, and where."""
        self.busy = 0
        """How many attempts have found a lock taken."""
        self.waits = False
        """Whether it waits for a while before another attempt."""


R = TypeVar("R", bound=Round)


class ShardsClient(Caller, Generic[R]):
    """One client of all shards. A subclass says what an attempt is."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        options: ShardsOptions,
        sharding: Sharding | None,
        answers: bool,
    ) -> None:
        super().__init__(env)
        self.members = members
        self._options = options
        self._sharding = sharding
        self._homes = {node: group for group, nodes in members.items() for node in nodes}
        self._leaders = {group: nodes[0] for group, nodes in members.items() if nodes}
        self.rounds: dict[MessageId, R] = {}
        self._done: dict[GroupId, list[MessageId]] = {}
        """For each shard, the calls that all their shards have executed, and that it has not been told."""
        self.calls = ShardCalls(
            env,
            self._leaders,
            options.calls,
            self._send,
            answers=answers,
            several=sharding is not None or not answers,
        )

    # For subclasses

    @abstractmethod
    def make_round(self) -> R:
        """What the protocol keeps of a call."""

    @abstractmethod
    def ask(self, call: Pending, round_: R, group: GroupId, *, again: bool = False) -> None:
        """Ask a shard for what the call needs of it now; `again` if it was asked before."""

    @abstractmethod
    def on_told(self, group: GroupId, message: Message) -> bool:
        """A shard says something of a call; False if that is no message to a client."""

    def begin(self, round_: R, attempt: int) -> None:
        """Begin an attempt, in its first phase."""
        round_.attempt, round_.waits, round_.since = attempt, False, self.env.now
        round_.said.clear()

    # Calls

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations of some shards."""
        return self.calls.take(tuple(sorted(groups)), payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations that change nothing: they have their places in the logs, too."""
        return self.calls.take(tuple(sorted(groups)), payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self.calls.in_doubt

    def _send(self, call: Pending) -> None:
        """Begin a call, or ask the shards again that have not answered."""
        round_ = self.rounds.get(call.first)
        if round_ is None:
            round_ = self.rounds[call.first] = self.make_round()
            round_.since = self.env.now
        for group in call.groups:
            if not round_.waits and self.lacks(round_, group):
                self.ask(call, round_, group, again=call.attempts > 1)

    def lacks(self, round_: R, group: GroupId) -> bool:
        """Whether a shard still owes what it was asked for."""
        return group not in round_.said

    def ask_all(self, call: Pending, round_: R) -> None:
        """Ask all shards of a call."""
        for group in call.groups:
            self.ask(call, round_, group)

    def send(self, group: GroupId, message: Message, *, again: bool = False) -> None:
        """Send to the leader of a shard, or to all of its replicas if it was sent before."""
        if again:
            self.env.multicast(self.members[group], message)
        else:
            self.env.send(self._leaders[group], message)

    def take_done(self, group: GroupId) -> tuple[MessageId, ...]:
        """Calls of which a shard should be told that all of their shards have executed them."""
        done = self._done.get(group, [])
        taken, self._done[group] = tuple(done[:DONE_MAX]), done[DONE_MAX:]
        return taken

    # Hearing

    def on_message(self, source: NodeId, message: Message) -> None:
        """What a shard says of a call, or who leads it."""
        group = self._homes.get(source)
        if group is None:
            raise RemoteError(f"node {source} is no replica, and sent {named(message)} to a client")
        if isinstance(message, Redirect) and message.leader in self.members[group]:
            self._leaders[group] = message.leader
        elif not self.on_told(group, message):
            raise RemoteError(f"node {source} sent {message} to a client")

    def find(self, first: MessageId, group: GroupId) -> tuple[Pending, R] | None:
        """A call that waits, if it goes to a shard."""
        call, round_ = self.calls.pending.get(first), self.rounds.get(first)
        known = call is not None and round_ is not None and group in call.groups
        return (call, round_) if known and call is not None and round_ is not None else None

    def try_again(self, call: Pending, round_: R, attempt: int) -> None:
        """Make another attempt, after a while. Others hold locks for about as long as this attempt took: who
        asks again much sooner is only in their way."""
        if attempt > round_.attempt + 1:
            name = message_name(call.first)
            raise RemoteError(f"a shard tells of attempt {attempt - 1} of call {name}, which was not made")
        round_.attempt, round_.waits = attempt, True
        options, took = self._options, self.env.now - round_.since
        unit = max(options.back_off_ns, min(took, options.calls.retry_ns))
        span = unit * min(1 << min(round_.busy, 10), options.back_off_max)
        round_.busy += 1
        self.env.set_timer(f"{BACK_OFF}{call.first}", 1 + self.env.rng.randrange(span))

    def keep(
        self,
        call: Pending,
        round_: R,
        group: GroupId,
        state: IntEnum,
        results: bytes,
        stamp: Stamp | None,
    ) -> None:
        """A shard has executed a call: keep what it answers, unless that is about others. It would not be
        asked again."""
        found = unpack_bundle(results)
        if (found.first, len(found.payloads)) != (call.first, call.count):
            raise RemoteError(f"shard {group} answers call {message_name(call.first)} with other results")
        round_.results[group], round_.said[group] = (results, stamp), state
        self._settle(call, round_)

    def _settle(self, call: Pending, round_: R) -> None:
        """Answer a call, if all of its shards have executed it."""
        if len(round_.results) < len(call.groups):
            return
        parts = [round_.results[group][0] for group in call.groups]
        results = parts[0]
        if self._sharding is not None and len(parts) > 1:
            results = combine_results(self._sharding, call.bundle, parts)
        stamp = round_.results[call.group][1]
        self.calls.settle(call.first, results, stamp, self._leaders[call.group])
        del self.rounds[call.first]
        if len(call.groups) > 1:
            for group in call.groups:
                self._done.setdefault(group, []).append(call.first)

    def on_timer(self, name: str) -> None:
        """Make another attempt, or repeat calls."""
        if not name.startswith(BACK_OFF):
            self.calls.on_timer()
            self.rounds = {one: kept for one, kept in self.rounds.items() if one in self.calls.pending}
            return
        first = int(name.removeprefix(BACK_OFF))
        call, round_ = self.calls.pending.get(first), self.rounds.get(first)
        if call is not None and round_ is not None and round_.waits:
            self.begin(round_, round_.attempt)
            self.ask_all(call, round_)

    # What waits

    def explain(self) -> Explanation:
        """The calls without an answer, each with the shards that have not answered."""
        leaders = ", ".join(f"node {node} leads shard {group}" for group, node in self._leaders.items())
        state: dict[str, str | int] = {
            "role": "client",
            "believes": leaders,
            "calls under way": len(self.calls.pending),
        }
        return Explanation(state, tuple(map(self._wait, self.calls.pending.values())))

    def missing(self, call: Pending, round_: R) -> list[GroupId]:
        """The shards that hold a call up."""
        return [] if round_.waits else [group for group in call.groups if group not in round_.said]

    def _wait(self, call: Pending) -> Wait:
        """What a call waits for."""
        round_ = self.rounds.get(call.first)
        silent = list(call.groups) if round_ is None else self.missing(call, round_)
        shards = ", ".join(map(str, silent))
        on = tuple(node for group in silent for node in self.members[group])
        return self.calls.wait_of(
            call, f"a majority of shard {shards}" if silent else "locks, which others have", on
        )
