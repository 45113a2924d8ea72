"""The two free numbers of Hydra's testbed, from an outside publication, and the CPU time of order, from ours.

The paper prints no cost of a packet and no latency of a link. Both come from one other publication, by a rule
that was written down before anything was measured with it:

1. The publication gives both numbers for the NIC of the paper (Mellanox ConnectX-5), for UDP over Ethernet
   through one switch, with a polling stack that bypasses the kernel, on one core. So the two fit together.
2. A packet costs half of the CPU time of a request: at either end, a request is one packet in and one out.
3. A round trip is four packets at CPUs and four links. What the packets leave of it is that of the links.

The publication is eRPC (Kalia, Kaminsky, Andersen: Datacenter RPCs can be General and Fast, NSDI 2019). One
core handles up to 10 million small RPCs a second (abstract; README of erpc-io/eRPC: "~10M RPCs/sec with one
CPU core"), and one RPC takes 2.3 us (README: "round-trip RPC latency with UDP over Ethernet").

No claim of the paper was used, so nothing of it is used up for calibration. `docs/protocols/hydra.md` has a
second measurement of a round trip, what was known beforehand, and what other numbers would give.

*Order* is what a receiver does for a message beyond its packets. It was measured once, on our own receivers
of one group of three at saturation, against the bare receiver of unordered multicast, before it was charged:
`python -m benchmarks.ordering`. There it is a multiple of what the bare receiver needs for a packet. The
testbed charges the same multiple of its own packet, for each message that a receiver delivers.
"""

from collections.abc import Mapping

import msgspec

from ordercast.core import MICROSECOND, SECOND, Nanos

RPCS_PER_S = 10_000_000
"""Of one core, by eRPC."""
ROUND_TRIP_NS: Nanos = 2_300
"""Of one small RPC, by eRPC."""
PACKETS_OF_A_ROUND_TRIP = LINKS_OF_A_ROUND_TRIP = 4

PACKETS_OF_ORDER: Mapping[str, float] = {"unordered": 0.0, "hydra": 2.65, "atomic_multicast": 14.8}
"""For each protocol the CPU time of order for a message, in packets; of its busiest receiver."""


class Hardware(msgspec.Struct, frozen=True):
    """What hosts and links of a testbed cost."""

    packet_ns: Nanos
    """CPU time of a packet, in or out."""
    link_us: float
    """Latency of a link; a packet from host to host takes two."""

    def order_ns(self, protocol: str) -> Nanos:
        """CPU time of order for each message that a receiver delivers."""
        return round(PACKETS_OF_ORDER[protocol] * self.packet_ns)


def hardware_of(rpcs_per_s: int, round_trip_ns: Nanos) -> Hardware:
    """The rule above."""
    packet_ns = SECOND // (2 * rpcs_per_s)
    links_ns = round_trip_ns - PACKETS_OF_A_ROUND_TRIP * packet_ns
    return Hardware(packet_ns, links_ns / LINKS_OF_A_ROUND_TRIP / MICROSECOND)


PUBLISHED = hardware_of(RPCS_PER_S, ROUND_TRIP_NS)
"""50 ns for a packet, and 0.525 us for a link."""
