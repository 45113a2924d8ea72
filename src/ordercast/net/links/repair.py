"""Keeps messages that were sent in fragments for a while, so that hosts can ask for lost fragments again.

Only fragments are repeated, and only for a limited time. A message that is lost as a whole is left to the
protocols, which know whether it is still useful.
"""

from collections import OrderedDict
from dataclasses import dataclass

from ordercast.core import SECOND, HostId, Nanos
from ordercast.net.links.datagram import Missing

KEPT_BYTES_MAX = 16 << 20
"""Bytes that are kept of all messages together; the oldest message is dropped first."""
KEPT_NS: Nanos = 2 * SECOND
"""How long a message is kept after it was sent, or asked for."""
REPEATS = 2
"""How often a fragment of a message is repeated, per host on average; a greedy peer gets no more."""


@dataclass(slots=True)
class _Kept:
    hosts: tuple[HostId, ...]
    frames: list[bytes]
    size: int
    touched: Nanos
    repeats: int
    """Frames that may still be repeated."""


class Fragmented:
    """The fragmented messages that this host sent lately."""

    __slots__ = ("_messages", "_size")

    def __init__(self) -> None:
        self._messages: OrderedDict[int, _Kept] = OrderedDict()
        self._size = 0

    def keep(self, message: int, hosts: tuple[HostId, ...], frames: list[bytes], now: Nanos) -> None:
        """Keep the frames of a message that goes to these hosts."""
        if message in self._messages:
            self._drop(message)  # the numbers have gone round
        size = sum(map(len, frames))
        self._messages[message] = _Kept(hosts, frames, size, now, REPEATS * len(hosts) * len(frames))
        self._size += size
        while self._size > KEPT_BYTES_MAX:
            self._drop(next(iter(self._messages)))

    def asked(self, host: HostId, missing: Missing, now: Nanos) -> list[bytes]:
        """The frames that a host asks for, without those that were not for it or are no longer kept."""
        kept = self._messages.get(missing.message)
        if kept is None or host not in kept.hosts:
            return []
        kept.touched = now
        self._messages.move_to_end(missing.message)
        found = [kept.frames[place] for place in missing.places if place < len(kept.frames)][: kept.repeats]
        kept.repeats -= len(found)
        return found

    def forget_old(self, now: Nanos) -> None:
        """Forget messages that nobody has asked for in time."""
        while self._messages:
            message, oldest = next(iter(self._messages.items()))
            if now - oldest.touched < KEPT_NS:
                return
            self._drop(message)

    def _drop(self, message: int) -> None:
        self._size -= self._messages.pop(message).size
