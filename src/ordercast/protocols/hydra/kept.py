"""Stamped packets that a sequencer or a receiver keeps for a while, to give them to receivers that lack them.

They are kept in two generations. If the young one has half of the bytes that may be kept, or half of the time
is over, it becomes the old one, and the old one is forgotten as a whole. So a packet costs one entry a group,
and to forget it costs nothing.
"""

from typing import TypeAlias

from ordercast.core import Nanos
from ordercast.protocols.hydra.messages import Groupcast

PACKET_BYTES = 512
"""What a packet counts beside its payload, so that there are never very many."""

_Key: TypeAlias = tuple[int, int, int]
"""Sequencer, group and number."""


class Kept:
    """Packets by sequencer, group and number, bounded in bytes and time."""

    __slots__ = ("_bytes", "_half_bytes", "_half_ns", "_old", "_turned_at", "_young")

    def __init__(self, bytes_max: int, keep_ns: Nanos) -> None:
        self._half_bytes = bytes_max // 2
        self._half_ns = keep_ns // 2
        self._bytes = 0
        self._turned_at: Nanos = 0
        self._young: dict[_Key, Groupcast] = {}
        self._old: dict[_Key, Groupcast] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, packet: Groupcast) -> None:
        """Keep a packet."""
        self._bytes += len(packet.payload) + PACKET_BYTES
        if self._bytes > self._half_bytes:
            self._turn_over()
            self._bytes = len(packet.payload) + PACKET_BYTES
        if len(packet.groups) == 1:
            self._young[packet.sequencer, packet.groups[0], packet.numbers[0]] = packet
        else:
            for group, number in zip(packet.groups, packet.numbers, strict=True):
                self._young[packet.sequencer, group, number] = packet

    def find(self, sequencer: int, group: int, number: int) -> Groupcast | None:
        """The packet with this number, if it is kept."""
        key = (sequencer, group, number)
        return self._young.get(key) or self._old.get(key)

    def following(self, sequencer: int, group: int, number: int) -> int | None:
        """The first number above this one whose packet is kept."""
        kept = (key[2] for key in (*self._old, *self._young) if key[:2] == (sequencer, group))
        return min((other for other in kept if other > number), default=None)

    def age(self, now: Nanos) -> None:
        """Forget what is too old."""
        if now - self._turned_at >= self._half_ns:
            self._turned_at = now
            self._turn_over()

    def _turn_over(self) -> None:
        self._old, self._young = self._young, {}
        self._bytes = 0
