"""The backlog: messages that an application has submitted and the protocol has not taken yet.

A message gets its identity when it is submitted. Messages to the same groups that pile up while a host is
busy go into one packet, until it is full. A single message makes a packet too.
"""

import sys
from collections import deque
from collections.abc import Sequence

from ordercast.core import Groups, LocalError, Member, MessageId, Nanos
from ordercast.core.bundle import BUNDLE_MESSAGES_MAX, HEAD_BYTES, bundle_size, pack_bundle

ALONE = 0
"""A packet size with which each message gets its own packet."""

_EACH = bundle_size(0)


class Packet:
    """Messages that will leave together."""

    __slots__ = ("first", "groups", "payloads", "room", "times")

    def __init__(
        self, groups: Groups, first: MessageId, room: int, times: list[Nanos], payloads: list[bytes]
    ) -> None:
        self.groups = groups
        self.first = first
        self.room = room
        self.times = times
        self.payloads = payloads


class Backlog:
    """The packets of one sender."""

    __slots__ = (
        "_bytes_max",
        "_messages_max",
        "_packet_bytes",
        "messages",
        "next_message",
        "packets",
        "waiting",
    )

    def __init__(
        self,
        first: MessageId,
        packet_bytes: int,
        *,
        bytes_max: int = sys.maxsize,
        messages_max: int = sys.maxsize,
    ) -> None:
        self.next_message = first
        """The identity of the next message."""
        self._packet_bytes = packet_bytes - HEAD_BYTES
        self._bytes_max = bytes_max
        self._messages_max = messages_max
        self.packets: deque[Packet] = deque()
        self.messages = 0
        self.waiting = 0
        """Bytes that all messages here take in packets."""

    @property
    def full(self) -> bool:
        """Whether a sender should wait before it submits more."""
        return self.waiting >= self._bytes_max or self.messages >= self._messages_max

    def add(self, groups: Groups, now: Nanos, payloads: Sequence[bytes]) -> MessageId:
        """Take messages for these groups; return the identity of the first."""
        first = message = self.next_message
        packet = self.packets[-1] if self.packets and self.packets[-1].groups == groups else None
        room = packet.room if packet is not None else 0
        for payload in payloads:
            cost = _EACH + len(payload)
            if room < cost or packet is None or len(packet.payloads) >= BUNDLE_MESSAGES_MAX:
                if packet is not None:
                    packet.room = room
                packet = Packet(groups, message, self._packet_bytes, [], [])
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

    def add_one(self, groups: Groups, now: Nanos, payload: bytes) -> MessageId:
        """Take one message, faster than `add` does; return its identity."""
        message = self.next_message
        self.next_message = message + 1
        self.messages += 1
        cost = _EACH + len(payload)
        self.waiting += cost
        packets = self.packets
        if packets:
            last = packets[-1]
            if last.room >= cost and last.groups == groups and len(last.payloads) < BUNDLE_MESSAGES_MAX:
                last.room -= cost
                last.times.append(now)
                last.payloads.append(payload)
                return message
        packets.append(Packet(groups, message, self._packet_bytes - cost, [now], [payload]))
        return message

    def offer(self, member: Member) -> bytes | None:
        """Offer the first packet to a protocol; return its bytes, or None if the window is full."""
        packet = self.packets.popleft()  # first: messages that are submitted meanwhile go into another packet
        packed = pack_bundle(packet.first, packet.times, packet.payloads)
        taken = member.submit(packet.groups, packed)
        if taken:
            self.messages -= len(packet.payloads)
            self.waiting -= self._packet_bytes - packet.room
            return packed
        if taken is None:
            raise LocalError(f"submit() of {type(member).__name__} must return True or False, not None")
        self.packets.appendleft(packet)
        return None

    def clear(self) -> None:
        """Forget all messages; their identities are not used again."""
        self.packets.clear()
        self.messages = self.waiting = 0
