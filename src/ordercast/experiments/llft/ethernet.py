"""A switched Ethernet: frames, wire time, one queue for each direction of each cable, and true multicasts.

A message travels in as many frames as it needs. It leaves its host at the rate of the cable, when all that
left before is gone; the switch stores a frame before it passes it on, and passes on the frames of a message
while others still arrive. A multicast leaves its host once, and the switch copies it, as it does for IP
multicast. Queues do not overflow. The CPU is charged for a message, not for a frame: the frames of a large
one are handled while others are still on the wire, which is longer.
"""

from random import Random

from ordercast.core import MICROSECOND, SECOND, HostId, Nanos
from ordercast.scenario.conditions import Conditions
from ordercast.sim.network import Network, Packet
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.world import PACKET_OVERHEAD_BYTES

MTU = 1_500
IP_BYTES, UDP_BYTES, TCP_BYTES = 20, 8, 32
FRAMING_BYTES = 38
"""Preamble, header, checksum, and the gap behind a frame."""
PAYLOAD_MIN = 46
"""Of a frame; shorter ones are filled up."""
GIGABIT = 1_000_000_000


class Ethernet(Network):
    """All hosts at one switch."""

    needs_size = True

    def __init__(self, scheduler: Scheduler, rng: Random, link_us: float, transport_bytes: int) -> None:
        """`transport_bytes` is the header of TCP or UDP."""
        super().__init__(scheduler, rng, Conditions())
        self._link_ns: Nanos = round(link_us * MICROSECOND)
        self._headers = IP_BYTES + transport_bytes
        self._up_free: dict[HostId, Nanos] = {}
        self._down_free: dict[HostId, Nanos] = {}
        self._last: tuple[HostId, Nanos, object] | None = None
        """The last message that left: its host, when it was sent, and what it is."""
        self._last_start: Nanos = 0

    def steady(self) -> None:
        """Do nothing: packets on the same way never overtake each other."""

    def wire_ns(self, size: int) -> tuple[Nanos, Nanos, Nanos]:
        """The time on a cable of a message of so many bytes: its first frame, its last one, and all."""
        room = MTU - self._headers
        full, rest = divmod(size, room)
        sizes = [room] if full else []
        sizes += [rest] if rest or not full else []
        first, last = (self._frame_ns(sizes[place]) for place in (0, -1))
        return first, last, full * self._frame_ns(room) + (last if rest or not full else 0)

    def _frame_ns(self, size: int) -> Nanos:
        return (max(PAYLOAD_MIN, size + self._headers) + FRAMING_BYTES) * 8 * SECOND // GIGABIT

    def carry(self, departure: Nanos, packet: Packet) -> bool:
        """Send the packet to the switch, and on from there."""
        self.scheduler.at(departure, self._leave, departure, packet)
        return True

    def _leave(self, departure: Nanos, packet: Packet) -> None:
        """Put a message on the cable; the further copies of a multicast are on it already."""
        host, message = packet.link[0], packet.args[-1]
        first, _, all_frames = self.wire_ns(packet.size - PACKET_OVERHEAD_BYTES)
        last = self._last
        if last is None or last[:2] != (host, departure) or last[2] is not message:
            start = max(departure, self._up_free.get(host, 0))
            self._up_free[host] = start + all_frames
            self._last, self._last_start = (host, departure, message), start
        begin = self._last_start + first + self._link_ns
        self.scheduler.at(begin, self._pass_on, packet)

    def _pass_on(self, packet: Packet) -> None:
        """The first frame is at the switch."""
        now, host = self.scheduler.now, packet.link[1]
        first, last, all_frames = self.wire_ns(packet.size - PACKET_OVERHEAD_BYTES)
        start = max(now, self._down_free.get(host, 0))
        # The last frame cannot leave the switch before it has come there.
        end = max(start + all_frames, now + all_frames - first + last)
        self._down_free[host] = end
        self.scheduler.push(end + self._link_ns + packet.service_ns, packet.action, packet.args)
