"""A client of Granola: it sends a call to all of its shards, which agree among themselves.

It tells the highest timestamp that it knows, and the shards propose higher ones: so its calls have the order
in which it made them. A client that has forgotten that timestamp asks all shards before it calls.
"""

from collections.abc import Mapping

from ordercast.components.execution import Pending
from ordercast.components.logged_shards import Round, ShardsClient
from ordercast.core import GroupId, Message, RemoteError
from ordercast.transactions.granola.messages import Enquiry, Reading, Request, State, Told
from ordercast.transactions.granola.options import GranolaOptions

LIVED = "lived"


class Attempt(Round):
    """One call under way."""

    __slots__ = ("lacks",)

    def __init__(self) -> None:
        super().__init__()
        self.lacks: dict[GroupId, tuple[GroupId, ...]] = {}
        """For shards that wait for votes: whose."""


class GranolaClient(ShardsClient[Attempt]):
    """One client of all shards."""

    _seen = 0
    """The highest timestamp that it was told."""
    _unread: set[GroupId]
    """After a restart: the shards that have not said which timestamps they have told."""

    def make_round(self) -> Attempt:
        """A call in its first attempt."""
        return Attempt()

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin; a later life asks all shards first."""
        self._unread = set(self._leaders) if LIVED in saved or self.env.forgot else set()
        self.env.save(LIVED, b"1")
        self._enquire()

    def _enquire(self) -> None:
        for group in sorted(self._unread):
            self.env.multicast(self.members[group], Enquiry())
        if self._unread:
            self.env.set_timer("enquire", self._options.calls.retry_ns)

    def on_timer(self, name: str) -> None:
        """Ask again, make another attempt, or repeat calls."""
        if name == "enquire":
            self._enquire()
        else:
            super().on_timer(name)

    def ask(self, call: Pending, round_: Attempt, group: GroupId, *, again: bool = False) -> None:
        """Ask a shard to take part."""
        if self._unread:
            return
        packed, done = call.packed(self.calls.floor), self.take_done(group)
        self.send(group, Request(round_.attempt, call.groups, self._seen, packed, done), again=again)

    def lacks(self, round_: Attempt, group: GroupId) -> bool:
        """Whether a shard still owes its results."""
        return group not in round_.results

    def on_told(self, group: GroupId, message: Message) -> bool:
        """What has become of a call in a shard, or which timestamps it has told."""
        if isinstance(message, Reading):
            self._see(message.timestamp)
            self._on_reading(group)
            return True
        if not isinstance(message, Told):
            return False
        self._see(0 if message.place is None else message.place[0])
        found = self.find(message.first, group)
        if found is not None:
            self._on_told(*found, group, message)
        return True

    def _see(self, timestamp: int) -> None:
        options = self._options
        assert isinstance(options, GranolaOptions)
        if timestamp > self.env.now + options.ahead_ns:
            raise RemoteError(f"timestamp {timestamp} is too far ahead of {self.env.now}")
        self._seen = max(self._seen, timestamp)

    def _on_reading(self, group: GroupId) -> None:
        if group not in self._unread:
            return
        self._unread.discard(group)
        for call in self.calls.pending.values() if not self._unread else ():
            if call.first in self.rounds:
                self.ask_all(call, self.rounds[call.first])

    def _on_told(self, call: Pending, round_: Attempt, group: GroupId, told: Told) -> None:
        if told.state is State.EXECUTED:
            self.keep(call, round_, group, told.state, told.results, told.stamp)
        elif told.state is State.WAITING:
            if not self.members.keys() >= set(told.lacks):
                raise RemoteError(f"shard {group} lacks votes of shards {told.lacks}; there are not so many")
            round_.said[group], round_.lacks[group] = told.state, told.lacks
        elif told.attempt >= round_.attempt:
            self.try_again(call, round_, told.attempt + 1)
            round_.lacks.clear()

    def missing(self, call: Pending, round_: Attempt) -> list[GroupId]:
        """The shards that hold a call up: those that say nothing, and those for whose votes others wait."""
        if self._unread:
            return sorted(self._unread)
        if round_.waits:
            return []
        owing = [group for group in call.groups if self.lacks(round_, group)]
        silent = {group for group in owing if group not in round_.said}
        return sorted(silent.union(*(round_.lacks.get(group, ()) for group in owing)))
