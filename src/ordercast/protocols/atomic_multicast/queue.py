"""Messages in the order in which a receiver will deliver them (Hydra section 7.1, last step).

Each message not delivered stands in a heap at the lowest place it can still get: its final number,
or the own group's timestamp while the final number is not known. The first is delivered when its
final number is known and the group's clock has reached it, for then no later timestamp can be
lower.

Final numbers are unique and delivered in ascending order, so the last one delivered says, after a
restart, of each message whether it was delivered before.
"""

from heapq import heappop, heappush, heapreplace

import msgspec

from ordercast.core import Groups, Nanos
from ordercast.protocols.atomic_multicast.messages import Key, Mark


class Entry(msgspec.Struct):
    """A message in the log that is not delivered here, or not settled in the log."""

    key: Key
    groups: Groups
    payload: bytes
    proposal: Mark
    """The timestamp of the own group."""
    settled: bool
    """The final number follows from the own group's log; at once, if there is no other group."""
    final: Mark | None = None
    delivered: bool = False
    asked: bool = False
    """The client wants to hear when it is settled."""
    attempts: int = 0
    """How often it has been overdue."""
    since: Nanos = 0

    def allows(self, final: Mark) -> bool:
        """Whether a final number is possible: the highest of several timestamps, or the only one."""
        if len(self.groups) == 1:
            return final == self.proposal
        return final >= self.proposal and final[1] in self.groups


class Queue:
    """Messages that wait, and the place of the last one delivered."""

    __slots__ = ("_heap", "delivered", "entries")

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.delivered: Mark = (0, 0)
        """The place of the last message delivered; clocks start at 1."""
        self._heap: list[tuple[Mark, Key]] = []

    def add(self, entry: Entry) -> None:
        """A message has got its timestamp."""
        self.entries[entry.key] = entry
        if not entry.delivered:
            heappush(self._heap, (entry.proposal, entry.key))

    def discard(self, entry: Entry) -> None:
        """Forget a message if all is done with it."""
        if entry.delivered and entry.settled:
            del self.entries[entry.key]

    def take(self, clock: int) -> list[Entry]:
        """The messages whose turn has come, given the group's clock."""
        ready, heap = [], self._heap
        while heap:
            place, key = heap[0]
            entry = self.entries[key]
            final = entry.final
            if final is None:
                break
            if final > place:
                heapreplace(heap, (final, key))
                continue
            if final[0] > clock:
                break
            heappop(heap)
            entry.delivered = True
            if final > self.delivered:
                self.delivered = final
                ready.append(entry)
            self.discard(entry)
        return ready

    def first(self) -> Entry | None:
        """The message that all others wait for."""
        return self.entries[self._heap[0][1]] if self._heap else None

    def waiting(self) -> int:
        """How many messages are not delivered."""
        return len(self._heap)
