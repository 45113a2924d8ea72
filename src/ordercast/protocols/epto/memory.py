"""Which events have been handed over, in bounded memory.

Delivery in the order of keys needs no memory but the last key: whatever is above it was not delivered, and
whatever is below it must not be any more. Only who hands over late events, tagged (section 8.2), must know
which of those below it were delivered. Keys are remembered up to a number; the oldest are forgotten, and all
up to the last forgotten one count as handed over: a very late event is not delivered at all, never twice.
"""

from collections import deque
from heapq import heappop, heappush

from ordercast.protocols.epto.messages import Key


class Memory:
    """The keys that were handed over, as far back as they are remembered."""

    __slots__ = ("_in_order", "_keys", "_late", "_limit", "floor")

    def __init__(self, limit: int, floor: Key) -> None:
        self._limit = limit
        self._in_order: deque[Key] = deque()
        self._late: list[Key] = []
        self._keys: set[Key] = set()
        self.floor = floor
        """Up to here everything counts as handed over."""

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key <= self.floor or key in self._keys

    def add(self, key: Key) -> None:
        """An event was delivered in its place."""
        self._in_order.append(key)
        self._keys.add(key)
        if len(self._keys) > self._limit:
            self._forget()

    def add_late(self, key: Key) -> None:
        """An event was handed over after its place had passed."""
        heappush(self._late, key)
        self._keys.add(key)
        if len(self._keys) > self._limit:
            self._forget()

    def _forget(self) -> None:
        """Drop the oldest keys, a good part at once."""
        keep = self._limit * 3 // 4
        in_order, late = self._in_order, self._late
        while len(self._keys) > keep:
            from_late = late and (not in_order or late[0] < in_order[0])
            key = heappop(late) if from_late else in_order.popleft()
            self._keys.discard(key)
            self.floor = key
