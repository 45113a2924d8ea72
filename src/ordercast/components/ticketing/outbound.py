"""A member's own messages, from `submit` until their delivery is certain.

Counts begin with 1 in each stay of the member, without gaps. A message is kept until no exclusion can undo
it; if the member is excluded and comes back, it sends again what the others had not ordered, in the same
order.
"""

from collections import deque
from typing import NamedTuple

from ordercast.components.ticketing.ordering import Stay
from ordercast.core import Groups, Nanos


class Submitted(NamedTuple):
    """What an application submitted."""

    groups: Groups
    payload: bytes
    at_ns: Nanos
    """When, by the clock of this member."""


class Outbound:
    """The messages of this member that wait or are under way."""

    __slots__ = ("_delivered", "_limit", "_queue", "_sent", "count")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[Submitted] = deque()
        self._sent: deque[tuple[int, Submitted]] = deque()
        self._delivered = 0
        """The count of the last message that was delivered here."""
        self.count = 0
        """The count of the last message that was sent in this stay, switches included."""

    def __len__(self) -> int:
        return len(self._queue) + len(self._sent)

    @property
    def queued(self) -> int:
        """How many messages wait to be sent."""
        return len(self._queue)

    def offer(self, submitted: Submitted) -> bool:
        """Take a message; False if too many wait or are under way."""
        if len(self) >= self._limit:
            return False
        self._queue.append(submitted)
        return True

    def next_count(self) -> int:
        """The count for the next message."""
        self.count += 1
        return self.count

    def take(self) -> tuple[int, Submitted]:
        """The oldest message that waits, with its count; it is under way now."""
        sent = (self.next_count(), self._queue.popleft())
        self._sent.append(sent)
        return sent

    def confirm(self, count: int) -> None:
        """Forget messages up to a count: they are delivered."""
        while self._sent and self._sent[0][0] <= count:
            self._sent.popleft()

    def delivered(self, count: int) -> None:
        """A message was delivered here, though perhaps not everywhere."""
        self._delivered = count

    def restart(self, began: int, last: Stay | None) -> list[Submitted]:
        """A new stay begins. The one before began with view `began`; `last` is what the others ordered last.

        The result are messages that were delivered here and nowhere else.
        """
        if last is not None and last.began == began:
            self.confirm(last.serial)
        lost = [submitted for count, submitted in self._sent if count <= self._delivered]
        again = [submitted for count, submitted in self._sent if count > self._delivered]
        self._queue.extendleft(reversed(again))
        self._sent.clear()
        self._delivered = self.count = 0
        return lost

    def give_up(self) -> list[Submitted]:
        """Forget the messages that are under way."""
        lost = [submitted for _, submitted in self._sent]
        self._sent.clear()
        return lost
