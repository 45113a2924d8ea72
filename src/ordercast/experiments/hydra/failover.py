"""A sequencer fails (NSDI 2023, section 7.5, Figure 9): HydraTxn and Eris, as set up for Figure 6.

15 shards of three, and clients that begin transactions of single keys at a constant rate, far below
saturation: what matters is when answers stop and go on. A switch sequencer is killed.

*HydraTxn* has two sequencers. Replicas suspect a sequencer that they have not heard of for 30 ms, remove it
and go on with the other.

*Eris* has one, and a spare one that is not reachable until the network is rerouted: its host is down from the
start, and comes up 100 ms after the 30 ms of detection. Then the controller makes it the sequencer, and the
failure coordinator begins the next epoch.

*Downtime* is the longest time without an answer at any client, of those that end after the failure. Clients
call again after 1 ms without an answer, as in Figure 6.
"""

from itertools import pairwise
from statistics import median

import msgspec

from ordercast.core import MILLISECOND, SECOND, HostId, Nanos, Plan
from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.bench import check, ready_world
from ordercast.experiments.hydra.calibration import Hardware
from ordercast.experiments.hydra.results import PAPER, compared
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import MESSAGES_MAX
from ordercast.experiments.hydra.transaction_calibration import LIMIT, execution_ns
from ordercast.experiments.hydra.transaction_figures import MODEL
from ordercast.experiments.hydra.transaction_runs import (
    ERIS,
    HYDRA_TXN,
    SYSTEMS,
    Mix,
    drawn_by,
    options_of,
    shards_run,
)
from ordercast.report.figures import Axis, Curve, Figure, Point
from ordercast.scenario.arrivals import arrivals_of
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.workload import OpenLoop
from ordercast.sim.world import World
from ordercast.trace import Kind

CLAIM = "hydra.failover.downtime_vs_eris"
CLIENTS, RATE_PER_S = 8, 2_500.0
BEFORE, AFTER = 20, 180
"""Bins of a millisecond around the failure."""
DETECTION, REROUTING = 30 * MILLISECOND, 100 * MILLISECOND
DOWNTIME, SLOW = "downtime_ms", "below_half_ms"


def measure(*, system: str, packet_ns: int, link_us: float, seed: int) -> dict[str, float]:
    """Transactions answered in each millisecond around the failure, and for how long none was."""
    scenario = _scenario(system, Hardware(packet_ns, link_us), seed)
    first, *others = _switches(scenario.plan())
    spare = others if system == ERIS else []
    world = ready_world(scenario, down=spare)
    start = world.now
    failure = start + BEFORE * MILLISECOND
    world.scheduler.at(failure, world.crash, first)
    for host in spare:
        world.scheduler.at(failure + DETECTION + REROUTING, world.restart, host)
    _arrivals(scenario, world).start()
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


def _scenario(system: str, hardware: Hardware, seed: int) -> Scenario:
    scenario = shards_run(system, CLIENTS, seed, hardware, execute_ns=execution_ns(hardware), limit=LIMIT)
    options = options_of(system)
    if system == HYDRA_TXN:
        options["hydra"] |= {"suspect_ns": DETECTION, "target": 2}
    else:
        options |= {"suspect_ns": DETECTION, "spares": 1}
    workload = WorkloadSpec(kind="periodic", messages=MESSAGES_MAX, rate_per_s=RATE_PER_S, jitter=0.1)
    return msgspec.structs.replace(scenario, options=options, workload=workload)


def _arrivals(scenario: Scenario, world: World) -> OpenLoop:
    spec = scenario.workload
    return OpenLoop(
        world,
        Destinations.of(spec, world.plan),
        spec.messages,
        spec.bytes,
        arrivals_of(scenario, len(world.plan.senders)),
        operations=drawn_by(scenario, Mix()),
    )


def _switches(plan: Plan) -> list[HostId]:
    return [node.host for node in plan.nodes if node.role == "switch"]


def _answers(world: World) -> list[Nanos]:
    """When clients got answers."""
    return [row[0] for row in world.rows if row[3] is Kind.REPLY and isinstance(row[0], int)]


def _bins(world: World, start: Nanos) -> list[int]:
    """Answers by the millisecond in which they came."""
    bins = [0] * (BEFORE + AFTER)
    for time in _answers(world):
        bins[min(len(bins) - 1, (time - start) // MILLISECOND)] += 1
    return bins


def _downtime(world: World, failure: Nanos) -> Nanos:
    """The longest time without an answer, of those that end after the failure."""
    times = [*_answers(world), world.now]
    return max(after - before for before, after in pairwise(times) if after > failure)


def cases(effort: Effort) -> list[Case]:
    """Both systems."""
    return [
        Case(
            parameters={"system": system},
            seed=seed,
            function="ordercast.experiments.hydra.failover:measure",
        )
        for system in (HYDRA_TXN, ERIS)
        for seed in range(effort.seeds)
    ]


def evaluate(results: Results) -> Evaluation:
    """Throughput over time, and the ratio of downtimes."""
    by = results.by("system")
    downtimes = {
        system: dict(zip(each.seeds, each.values(DOWNTIME), strict=True)) for system, each in by.items()
    }
    ratios = {seed: downtimes[ERIS][seed] / downtime for seed, downtime in downtimes[HYDRA_TXN].items()}
    said = ", ".join(
        f"{SYSTEMS[str(system)]} {median(found.values()):.1f} ms" for system, found in downtimes.items()
    )
    slow = ", ".join(
        f"{SYSTEMS[str(system)]} {median(each.values(SLOW)):.0f} ms" for system, each in by.items()
    )
    figure = Figure(
        id="hydra-9",
        title="Transactions over time when a sequencer fails",
        caption=f"After Figure 9 of {PAPER}: a sequencer is killed at time 0. The rate of the clients is"
        f" constant; what is answered together after a failure had waited. {MODEL}",
        x=Axis(label="time since the failure (ms)"),
        y=Axis(label="transactions answered per millisecond", low=0.0),
        curves=tuple(
            Curve(label=SYSTEMS[str(system)], points=_points(each), marks=False)
            for system, each in by.items()
        ),
    )
    note = (
        f"downtime: {said}, of which 30 ms are given to HydraTxn (detection) and 130 to Eris (100 of"
        f" rerouting); below half of the normal rate: {slow}"
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
