"""Messages that an application has handed over and a protocol has not taken yet, in packets.

What piles up while a host is busy leaves together: messages to the same groups are put into one packet until
it is full. One message alone makes a packet of its own.
"""

from collections import deque
from collections.abc import Sequence

from ordercast.core import Groups, MessageId, Nanos
from ordercast.core.bundle import BUNDLE_MESSAGES_MAX, HEAD_BYTES, bundle_size

_EACH = bundle_size(0)


class Packet:
    """Messages that will leave together."""

    __slots__ = ("first", "groups", "payloads", "room", "times")

    def __init__(self, groups: Groups, first: MessageId, room: int) -> None:
        self.groups = groups
        self.first = first
        self.room = room
        self.times: list[Nanos] = []
        self.payloads: list[bytes] = []


class Backlog:
    """The packets of one sender."""

    __slots__ = (
        "_packet_bytes",
        "bytes_max",
        "messages",
        "next_message",
        "packets",
        "waiting",
    )

    def __init__(self, first: MessageId, packet_bytes: int, bytes_max: int) -> None:
        self.next_message = first
        """The identity of the next message."""
        self._packet_bytes = packet_bytes - HEAD_BYTES
        self.bytes_max = bytes_max
        self.packets: deque[Packet] = deque()
        self.messages = 0
        self.waiting = 0
        """Bytes of all messages here, with what they take in a packet."""

    @property
    def full(self) -> bool:
        """Whether a sender should wait before it hands over more."""
        return self.waiting >= self.bytes_max

    def add(self, groups: Groups, now: Nanos, payloads: Sequence[bytes]) -> MessageId:
        """Take messages for these groups; returns the identity of the first."""
        first = message = self.next_message
        packet = self.packets[-1] if self.packets and self.packets[-1].groups == groups else None
        room = packet.room if packet is not None else 0
        for payload in payloads:
            cost = _EACH + len(payload)
            if room < cost or packet is None or len(packet.payloads) >= BUNDLE_MESSAGES_MAX:
                if packet is not None:
                    packet.room = room
                packet = Packet(groups, message, self._packet_bytes)
                self.packets.append(packet)
                room = self._packet_bytes
            room -= cost
            self.waiting += cost
            packet.payloads.append(payload)
            packet.times.append(now)
            message += 1
        if packet is not None:
            packet.room = room
        self.messages += message - first
        self.next_message = message
        return first

    def pop(self) -> Packet:
        """The first packet has gone."""
        packet = self.packets.popleft()
        self.messages -= len(packet.payloads)
        self.waiting -= self._packet_bytes - packet.room
        return packet
