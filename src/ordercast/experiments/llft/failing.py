"""Runs in which the primary crashes, and what is read from their traces.

The times come from the packets of the replica that takes over:

- *detection*: from the crash to its first `ProposePrimary`;
- *view change*: from there to its first `NewPrimaryView`. Then its view is determined: all members that it
  proposed have accepted. With two replicas there is nobody whose acceptance it needs;
- *recovery*: from the first `ProposePrimary` to the first `NewPrimaryView` that says where its view begins.
  By then the clients have told what they know of the old primary, and the replica has done all that it had
  done. This is the sum of view change latency and virtual synchrony latency (section VI.C).

*Outage* is what a client sees: the longest time between two of its answers.
"""

from itertools import pairwise
from random import Random
from statistics import median

import msgspec

from ordercast.core import MILLISECOND, SECOND, LocalError, Nanos, NodeId
from ordercast.experiments.hydra.bench import check
from ordercast.experiments.llft.calibration import Costs
from ordercast.experiments.llft.testbed import LLFT, scenario_of, started
from ordercast.replication.llft.messages import Accept, NewPrimaryView, ProposePrimary
from ordercast.sim.build import build_workload
from ordercast.sim.world import World
from ordercast.trace import Kind

LOADED_NS = 15 * MILLISECOND
"""How long clients call before the primary crashes."""
CRASH_SPAN_NS = 5 * MILLISECOND
"""It crashes at any time between two heartbeats."""
PATIENCE_NS = 400 * MILLISECOND
STEP_NS = 5 * MILLISECOND
SIZE = 1_024


class Change(msgspec.Struct, frozen=True):
    """What happened after the crash, in nanoseconds."""

    detection_ns: Nanos
    view_change_ns: Nanos
    recovery_ns: Nanos
    waited_for: int
    """How many acceptances the new primary waited for before its view was determined."""


def fail(*, replicas: int, clients: int, packet_ns: int, link_us: float, seed: int) -> dict[str, float]:
    """Let the primary crash, with so many clients that call; with none, there is one that never calls."""
    scenario = scenario_of(LLFT, replicas=replicas, clients=max(1, clients), size=SIZE, seed=seed)
    world = started(scenario, Costs(packet_ns, link_us), packets=True)
    if clients:
        build_workload(scenario, world).start()
    crash = world.now + LOADED_NS + Random(f"{seed}/crash").randrange(CRASH_SPAN_NS)
    world.scheduler.at(crash, world.crash, 0)
    found: Change | None = None
    while found is None or (clients and not _all_answered(world, clients, crash + found.detection_ns)):
        if world.now > crash + PATIENCE_NS:
            raise LocalError(f"no new primary served all clients within {PATIENCE_NS // MILLISECOND} ms")
        world.run(world.now + STEP_NS)
        found = found or change_of(world, crash)
    check(scenario, world)
    values = {name: float(value) for name, value in msgspec.structs.asdict(found).items()}
    values["seconds"] = (world.now - crash) / SECOND
    if clients:
        values["outage_ns"] = median(outages(world, crash).values())
    return values


def change_of(world: World, crash: Nanos) -> Change | None:
    """What the packets of the new primary tell; None if its view has not begun yet."""
    detected = elected = None
    waited_for = 0
    for place in sorted(world.carried):
        row, message = world.rows[place], world.carried[place]
        time, node, sends = row[0], row[2], row[3] is Kind.SEND
        assert isinstance(time, int)
        if detected is None:
            if sends and isinstance(message, ProposePrimary):
                if time < crash:
                    raise LocalError("a primary was suspected before it crashed")
                detected, new = time, node
        elif node != new:
            continue
        elif elected is None and isinstance(message, Accept) and row[3] is Kind.RECEIVE:
            waited_for += 1
        elif sends and isinstance(message, NewPrimaryView):
            elected = time if elected is None else elected
            if message.final:
                return Change(detected - crash, elected - detected, time - detected, waited_for)
    return None


def _answers(world: World) -> dict[NodeId, list[Nanos]]:
    answers: dict[NodeId, list[Nanos]] = {}
    for row in world.rows:
        if row[3] is Kind.REPLY and isinstance(row[0], int) and isinstance(row[2], int):
            answers.setdefault(row[2], []).append(row[0])
    return answers


def _all_answered(world: World, clients: int, since: Nanos) -> bool:
    """Whether each client has an answer of the new primary."""
    last = [times[-1] for times in _answers(world).values()]
    return len(last) == clients and min(last) > since


def outages(world: World, crash: Nanos) -> dict[NodeId, Nanos]:
    """For each client, the longest time between two answers that ends after the crash."""
    return {
        node: max(after - before for before, after in pairwise(times) if after > crash)
        for node, times in _answers(world).items()
    }
