"""The simulated data centre of Hydra's section 7.4 (NSDI 2023) as a scenario, and what is measured in it.

From the paper: a three-layer FatTree of 2,560 servers and 112 switches, 1 Gb/s to servers and 10 Gb/s
elsewhere; background traffic of all servers as Poisson processes; 16 groups of three receivers; a few servers
that send periodic multicasts, each to a group chosen at random; one or eight rack switches that sequence. Its
simulator was NS3, which has no model of CPUs, so there is none here: only the network takes time.

The paper prints no sizes, rates or loads. These are ours. They were set by what the paper says of one
sequencer, before eight were tried; nothing is fitted to a ratio of the two. So what it says of one sequencer
is used up: it is a calibration (`docs/protocols/hydra.md`).

- **The shape.** 16 cores and 32 aggregation switches are a FatTree of 8 pods; 64 racks of 40 servers make up
  the rest. So a rack has four uplinks.
- **Packets** of multicasts and of background traffic have about 1,500 bytes. A link takes 1 us besides, and
  its queue holds 1 MiB.
- **Background traffic** is a tenth of what a server can send, which keeps all links below 20%.
- **Full load**, where links are measured: 0.75 Gb/s of multicasts at each receiver. The copies then take
  36 Gb/s out of a single sequencer, which is with the background just what the uplinks of its rack carry: as
  flows do not spread evenly over them, several are full. 16 senders share the load.
- **Light load**, where latencies under congestion are measured: 0.1 Gb/s, so that bursts alone congest.
- **Bursts** come with twice the rate of the links into the rack, for 1 ms and with 0.5 ms in between on
  average. With these, a single sequencer is more than 13 times slower in the median, as in the paper.
- **Flushes** are periodic, the protocol without its options (section 4.3.3), every 50 us: about as long as a
  message takes through an idle network. That is 0.13 Gb/s at a receiver, of eight sequencers. Their periods
  begin together, as they join together; at times of their own, the median of eight is about an eighth higher.
- **Congestion-aware routing** measures round trips every 100 us, a few times in a burst.

Each copy of a multicast is a packet from the sequencer on: the sequencer's switch makes the copies.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from ordercast.core import MILLISECOND, LocalError, Nanos, Plan
from ordercast.scenario.spec import BackgroundSpec, BurstSpec, LinksSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim.build import SWITCH, build_workload, build_world
from ordercast.sim.fat_tree import FatTree
from ordercast.sim.links import Link, LinkNetwork, Vertex
from ordercast.sim.run import Run
from ordercast.sim.world import World
from ordercast.trace import Kind

GROUPS, RECEIVERS, SENDERS = 16, 3, 16
PAYLOAD_BYTES, PACKET_BYTES = 1_400, 1_500
BACKGROUND_LOAD = 0.1
FLUSH_NS, PROBE_NS = 50_000, 100_000
FULL_GBPS, LIGHT_GBPS = 0.75, 0.1
"""Of multicasts, at each receiver."""
BURST_GBPS, BURST_ON_US, BURST_OFF_US = 80.0, 1_000.0, 500.0
QUEUE_KIB, PROPAGATION_US = 1_024.0, 1.0

JOIN_MS = 5.0
"""Time to set out: sequencers get their numbers, and senders learn of them. Nothing else is sent."""
WARM_MS = 2.0
"""Traffic before the measurement begins."""
DRAIN_MS = 1.5
"""Time to arrive for what was submitted last."""

Route: TypeAlias = Literal["random", "congestion"]


def data_centre(
    *, sequencers: int, route: Route, receiver_gbps: float, bursts: bool, measured_ms: float, seed: int
) -> Scenario:
    """A run in the data centre; with bursts, they go to the rack of the first sequencer."""
    packets_per_s = receiver_gbps * 1e9 / (PACKET_BYTES * 8)
    rate = packets_per_s * GROUPS / SENDERS
    messages = round(rate * SENDERS * (WARM_MS + measured_ms) / 1e3)
    links = LinksSpec(
        topology="fat-tree",
        host_gbps=1.0,
        fabric_gbps=10.0,
        propagation_us=PROPAGATION_US,
        queue_kib=QUEUE_KIB,
    )
    background = BackgroundSpec(load=BACKGROUND_LOAD, bytes=PACKET_BYTES, start_ms=JOIN_MS)
    options = {
        "kind": "switch",
        "sequencers": sequencers,
        "flush": "periodic",
        "repair": False,
        "flush_ns": FLUSH_NS,
        "route": route,
        "probe_ns": PROBE_NS,
    }
    scenario = Scenario(
        protocol="hydra",
        seed=seed,
        groups=GROUPS,
        receivers=RECEIVERS,
        senders=SENDERS,
        options=options,
        network=NetworkSpec(latency=links, background=background),
        workload=WorkloadSpec(
            kind="periodic", messages=messages, rate_per_s=rate, jitter=0.1, bytes=PAYLOAD_BYTES
        ),
    )
    return with_bursts(scenario, scenario.plan()) if bursts else scenario


def with_bursts(scenario: Scenario, plan: Plan) -> Scenario:
    """The same with bursts towards the rack of the first sequencer."""
    first = next(node.host for node in plan.nodes if node.role == SWITCH)
    burst = BurstSpec(host=first, gbps=BURST_GBPS, on_us=BURST_ON_US, off_us=BURST_OFF_US)
    background = msgspec.structs.replace(scenario.network.background or BackgroundSpec(), burst=burst)
    network = msgspec.structs.replace(scenario.network, background=background)
    return msgspec.structs.replace(scenario, network=network)


class Observed(msgspec.Struct, frozen=True):
    """What a run showed between the warm-up and the last submission."""

    aggregation: list[float]
    """Utilisation of each link between racks and aggregation switches, the highest first."""
    core: list[float]
    """The same of the links between aggregation switches and cores."""
    latencies_ns: list[int]
    """From submission to each delivery, ascending."""
    delivered: float
    """Share of what was submitted, at all its receivers."""


def observe(scenario: Scenario, measured_ms: float, plan: Plan | None = None) -> Observed:
    """Run it and measure; another plan may take the place of the protocol's own."""
    world = build_world(scenario, plan or scenario.plan())
    world.run(round(JOIN_MS * MILLISECOND))
    build_workload(scenario, world).start()
    world.run(world.now + round(WARM_MS * MILLISECOND))
    start, tree = world.now, _tree(world)
    layers = (tree.aggregation_links(), tree.core_links())
    before = [_sent(links, start) for links in layers]
    world.run(start + round(measured_ms * MILLISECOND))
    end = world.now
    aggregation, core = (
        sorted(((_sent(links, end) - sent) / (end - start)).tolist(), reverse=True)
        for links, sent in zip(layers, before, strict=True)
    )
    world.run(end + round(DRAIN_MS * MILLISECOND))
    _check(scenario, world)
    latencies, submitted = _latencies(world, start, end)
    return Observed(aggregation, core, latencies, len(latencies) / max(1, submitted * RECEIVERS))


def _tree(world: World) -> FatTree:
    network = world.network
    if not isinstance(network, LinkNetwork) or not isinstance(network.topology, FatTree):
        raise LocalError("the data centre is a FatTree")
    return network.topology


def _sent(links: Mapping[tuple[Vertex, Vertex], Link], now: Nanos) -> np.ndarray:
    return np.array([link.sent_ns(now) for link in links.values()])


def _latencies(world: World, start: Nanos, end: Nanos) -> tuple[list[int], int]:
    """Latencies of the messages submitted in an interval, ascending, and how many these messages are."""
    latencies, submitted = [], 0
    for time, _, _, kind, _, _, _, since, *_ in world.rows:
        if isinstance(since, int) and isinstance(time, int) and start <= since < end:
            if kind is Kind.SUBMIT:
                submitted += 1
            elif kind is Kind.DELIVER:
                latencies.append(time - since)
    return sorted(latencies), submitted


def _check(scenario: Scenario, world: World) -> None:
    """The run is cut off, so nothing is said of its end; but what was delivered must keep the promises."""
    run = Run(scenario, world, 0, "it was cut off", "deliveries missing")
    if run.violations:
        raise LocalError(f"a promise was broken: {run.violations[0]}")
