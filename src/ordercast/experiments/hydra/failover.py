"""A sequencer fails (NSDI 2023, section 7.5, Figure 9), in the form of plain groupcasts.

One group of three receivers, and sources that submit at a constant rate, far below saturation: what matters
is when deliveries stop and go on. A switch sequencer is killed.

*Hydra* has two sequencers. Receivers suspect a sequencer that they have not heard of for 30 ms, remove it and
go on with the other.

*One sequencer* stands for the network serialisation of Eris: the same protocol with a single sequencer and a
spare one, which is not reachable until the network is rerouted. Its host is down from the start, and comes up
100 ms after the 30 ms of detection. Then the configuration service adds it as it adds any sequencer.

*Downtime* is the longest time without a delivery at any receiver, from the last one before the failure on.
Messages sent to the dead sequencer are lost: Hydra promises no delivery, and applications send them again.
"""

from itertools import pairwise
from statistics import median

from ordercast.core import MILLISECOND, SECOND, HostId, Nanos, Plan
from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.bench import check, ready_world
from ordercast.experiments.hydra.calibration import Hardware
from ordercast.experiments.hydra.results import MODEL, PAPER, compared
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import HYDRA, MESSAGES_MAX, hydra_options, testbed
from ordercast.report.figures import Axis, Curve, Figure, Point
from ordercast.scenario.spec import WorkloadSpec
from ordercast.sim.build import build_workload
from ordercast.sim.world import World
from ordercast.trace import Kind

CLAIM = "hydra.failover.downtime_vs_eris"
MANY, ONE = "Hydra", "one sequencer"
SENDERS, RATE_PER_S = 4, 5_000.0
BEFORE, AFTER = 20, 180
"""Bins of a millisecond around the failure."""
DETECTION, REROUTING = 30 * MILLISECOND, 100 * MILLISECOND
DOWNTIME, SLOW = "downtime_ms", "below_half_ms"


def measure(*, system: str, packet_ns: int, link_us: float, seed: int) -> dict[str, float]:
    """Messages delivered in each millisecond around the failure, and for how long none was."""
    sequencers, hardware = 2 if system == MANY else 1, Hardware(packet_ns, link_us)
    scenario = testbed(
        HYDRA,
        seed=seed,
        workload=WorkloadSpec(kind="periodic", messages=MESSAGES_MAX, rate_per_s=RATE_PER_S, jitter=0.1),
        clients=SENDERS,
        options=hydra_options(
            sequencers=sequencers, spares=0 if system == MANY else 1, suspect_ns=DETECTION, target=sequencers
        ),
        hardware=hardware,
    )
    first, *spare = _switches(scenario.plan())
    world = ready_world(scenario, down=spare if system == ONE else (), order_ns=hardware.order_ns(HYDRA))
    start = world.now
    failure = start + BEFORE * MILLISECOND
    world.scheduler.at(failure, world.crash, first)
    if system == ONE:
        world.scheduler.at(failure + DETECTION + REROUTING, world.restart, spare[0])
    build_workload(scenario, world).start()
    world.run(failure + AFTER * MILLISECOND)
    check(scenario, world)
    bins = _bins(world, start)
    normal = median(bins[1:BEFORE])
    slow = sum(count < normal / 2 for count in bins[BEFORE:])
    values = {f"bin_{index:03}": float(count) for index, count in enumerate(bins)}
    return values | {
        DOWNTIME: _downtime(world, failure) / MILLISECOND,
        SLOW: float(slow),
        "seconds": (world.now - start) / SECOND,
    }


def _switches(plan: Plan) -> list[HostId]:
    return [node.host for node in plan.nodes if node.role == "switch"]


def _bins(world: World, start: Nanos) -> list[int]:
    """Messages by the millisecond in which they were first delivered."""
    bins, seen = [0] * (BEFORE + AFTER), set()
    for time, _, _, kind, message, *_ in world.rows:
        if kind is Kind.DELIVER and isinstance(time, int) and message not in seen:
            seen.add(message)
            bins[min(len(bins) - 1, (time - start) // MILLISECOND)] += 1
    return bins


def _downtime(world: World, failure: Nanos) -> Nanos:
    """The longest time without a delivery at any receiver, of those that end after the failure."""
    longest = 0
    for group in world.plan.groups.values():
        for receiver in group:
            times = [
                row[0]
                for row in world.rows
                if row[3] is Kind.DELIVER and row[2] == receiver and isinstance(row[0], int)
            ]
            gaps = [after - before for before, after in pairwise([*times, world.now]) if after > failure]
            longest = max(longest, *gaps)
    return longest


def cases(effort: Effort) -> list[Case]:
    """Both systems."""
    return [
        Case(
            parameters={"system": system},
            seed=seed,
            function="ordercast.experiments.hydra.failover:measure",
        )
        for system in (MANY, ONE)
        for seed in range(effort.seeds)
    ]


def evaluate(results: Results) -> Evaluation:
    """Throughput over time, and the ratio of downtimes."""
    by = results.by("system")
    downtimes = {
        system: dict(zip(each.seeds, each.values(DOWNTIME), strict=True)) for system, each in by.items()
    }
    ratios = {seed: downtimes[ONE][seed] / downtime for seed, downtime in downtimes[MANY].items()}
    said = ", ".join(f"{system} {median(downtimes[system].values()):.1f} ms" for system in (MANY, ONE))
    slow = ", ".join(f"{system} {median(by[system].values(SLOW)):.0f} ms" for system in (MANY, ONE))
    figure = Figure(
        id="hydra-9",
        title="Throughput over time when a sequencer fails",
        caption=f"After Figure 9 of {PAPER}, with plain groupcasts: one group of three, a sequencer killed "
        f"at time 0. Messages that are delivered together after a failure had waited at receivers. {MODEL}",
        x=Axis(label="time since the failure (ms)"),
        y=Axis(label="messages delivered per millisecond", low=0.0),
        curves=tuple(
            Curve(label=str(system), points=_points(each), marks=False) for system, each in by.items()
        ),
    )
    note = (
        f"downtime: {said}, of which 130 ms are given (30 of detection, 100 of rerouting);"
        f" below half of the normal rate: {slow}"
    )
    return Evaluation(measurements=(compared(CLAIM, ratios, note),), figures=(figure,))


def _points(results: Results) -> tuple[Point, ...]:
    """The median over seeds, bin by bin."""
    return tuple(
        Point(float(index - BEFORE), median(results.values(f"bin_{index:03}")))
        for index in range(BEFORE + AFTER)
    )


EXPERIMENTS = (
    on_testbed(
        name="hydra-9",
        title="A sequencer fails",
        source=f"{PAPER}, section 7.5, Figure 9",
        claims=(CLAIM,),
        cases=cases,
        evaluate=evaluate,
    ),
)
