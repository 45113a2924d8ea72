"""Deliveries that wait behind a state which is on its way. Their order is the order of their delivery."""

from collections.abc import Callable

from ordercast.core import Carrier, Delivery, Joined, Notice, State

HELD_BYTES_MAX = 64 << 20
"""How many bytes of messages a newcomer holds at most, while it gets a state."""


class Held:
    """A queue of deliveries."""

    __slots__ = ("_queue", "bytes")

    def __init__(self) -> None:
        self._queue: list[Delivery] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def overflows(self) -> bool:
        """Whether more is held than may be."""
        return self.bytes > HELD_BYTES_MAX

    def add(self, delivery: Delivery) -> None:
        """Let something wait behind all others."""
        self._queue.append(delivery)
        self.bytes += _size(delivery)

    def insert(self, state: State) -> None:
        """A state came: its place is behind the notice that its group was joined."""
        joined = Joined(state.group, state.config)
        self._queue.insert(self._queue.index(joined) + 1, state)

    def remove(self, unwanted: Callable[[Delivery], bool]) -> list[Delivery]:
        """Take some deliveries out, and return them."""
        removed = [one for one in self._queue if unwanted(one)]
        self._queue = [one for one in self._queue if not unwanted(one)]
        self.bytes -= sum(map(_size, removed))
        return removed

    def take(self, waits: Callable[[Notice], bool]) -> list[Delivery]:
        """Take out everything up to the first notice that still has to wait."""
        end = next(
            (place for place, one in enumerate(self._queue) if isinstance(one, Notice) and waits(one)),
            len(self._queue),
        )
        taken, self._queue = self._queue[:end], self._queue[end:]
        self.bytes -= sum(map(_size, taken))
        return taken


def _size(delivery: Delivery) -> int:
    return len(delivery.payload) if isinstance(delivery, Carrier) else 0
