"""Deliveries that wait behind a state which is on its way. Their order is the order of their delivery."""

from collections.abc import Callable

from ordercast.core import Carrier, Delivery, GroupId, Joined, Left, Notice, State

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

    def cut(self, joined: Joined, inside: set[GroupId]) -> list[Delivery]:
        """Take out that a group was joined, and what follows for no other group; return it.

        `inside` are the groups that the application is in before all that waits.
        """
        start = self._queue.index(joined)
        kept: list[Delivery] = []
        removed: list[Delivery] = []
        for place, one in enumerate(self._queue):
            if isinstance(one, Carrier):
                wanted = any(group in inside for group in one.groups)
            else:
                wanted = one.group != joined.group
                keep_up(one, inside)
            (kept if wanted or place < start else removed).append(one)
            inside -= {joined.group} if place >= start else set()
        self._queue = kept
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


def keep_up(notice: Notice, inside: set[GroupId]) -> None:
    """Keep up which groups an application is in."""
    if isinstance(notice, Joined):
        inside.add(notice.group)
    elif isinstance(notice, Left):
        inside.discard(notice.group)


def _size(delivery: Delivery) -> int:
    return len(delivery.payload) if isinstance(delivery, Carrier) else 0
