"""The two free numbers of LLFT's testbed, from publications about plain TCP.

The paper names its machines (14 HP blade servers with two Xeons of 2 GHz, Ubuntu 9.04, 1 Gbit/s Ethernet).
What is known of its figures is only what its text says of them: ratios, and no latency or throughput of
plain TCP. So what a packet and a link cost comes from outside, by a rule that was written down before
anything was measured with it:

1. *A packet* costs what the rule of thumb of its time gives for a full one: TCP needs 1 Hz of CPU for each
   bit per second (Foong, Huff, Hum, Patwardhan, Regnier: TCP performance re-visited, ISPASS 2003, who
   measured Linux on Xeons). A full packet carries 1,448 bytes, so at 2 GHz it takes 5.79 us, in or out.
   Most of that does not depend on the size, so a small packet costs the same.
2. *A link* costs what then is missing from a published round trip: one byte each way by TCP between two
   servers takes 34.3 us (29,150 transactions per second of `netperf -t TCP_RR` over 10 Gbit/s Ethernet,
   from the manual of netperf, Hewlett-Packard, chapter 6). A round trip is four packets at CPUs and four
   links; a link here is a NIC, a cable and half a switch, with the interrupt.
3. *Bytes* cost the time on the wire of a 1 Gbit/s Ethernet, with all headers, the preamble and the gap
   between frames; the switch stores a frame before it passes it on.

A datagram of LLFT costs the same CPU as a segment of TCP, and so does a multicast. No claim of LLFT's paper
was used, and nothing of LLFT was measured for it. What the code of LLFT itself costs is not charged: in the
simulator it differs from TCP by what it sends and by whom it waits for.
"""

import msgspec

from ordercast.core import MICROSECOND, SECOND, Nanos

HERTZ = 2_000_000_000
"""Of the testbed's CPUs."""
CYCLES_A_BIT = 1
"""Of TCP, by the rule of thumb."""
SEGMENT_BYTES = 1_448
"""A full segment of TCP with timestamps."""
ROUND_TRIPS_PER_S = 29_150
"""Of one byte each way by TCP."""
PACKETS_OF_A_ROUND_TRIP = LINKS_OF_A_ROUND_TRIP = 4
FRAME_BYTES_MIN = 84
"""On the wire: the smallest frame with its preamble and the gap behind it."""


class Costs(msgspec.Struct, frozen=True):
    """What hosts and links of a testbed cost."""

    packet_ns: Nanos
    """CPU time of a packet, in or out."""
    link_us: float
    """Latency of a link besides the bytes; a packet from host to host takes two."""


def costs_of(cycles_a_bit: float, round_trip_us: float, gbps: float) -> Costs:
    """The rule above, from the round trip of a small packet between two hosts with a cable between them."""
    packet_us = cycles_a_bit * SEGMENT_BYTES * 8 / HERTZ * SECOND / MICROSECOND
    frames_us = 2 * FRAME_BYTES_MIN * 8 / gbps / MICROSECOND
    links_us = round_trip_us - PACKETS_OF_A_ROUND_TRIP * packet_us - frames_us
    return Costs(round(packet_us * MICROSECOND), round(links_us / LINKS_OF_A_ROUND_TRIP, 2))


PUBLISHED = costs_of(CYCLES_A_BIT, SECOND / MICROSECOND / ROUND_TRIPS_PER_S, 10.0)
"""5.792 us for a packet, and 2.75 us for a link."""
SLOW_LINKS = costs_of(CYCLES_A_BIT, 46.298, 1.0)
"""From another round trip: by UDP between two servers with Xeons and 1 Gbit/s cards (Li: An Investigation
into Transport Protocols and Data Transport Applications Over High Performance Networks, University College
London, 2006, Figure A.8)."""
GRID = (
    PUBLISHED,
    Costs(PUBLISHED.packet_ns // 2, PUBLISHED.link_us),
    Costs(PUBLISHED.packet_ns * 2, PUBLISHED.link_us),
    SLOW_LINKS,
)
"""The published numbers decide the claims. With the others, notes tell what the claims would be."""
QUICK_GRID = (PUBLISHED, SLOW_LINKS)
