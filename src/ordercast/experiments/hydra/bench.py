"""Runs on Hydra's testbed that are cut off, and what is counted in them.

Runs begin when the configuration service has a leader and all sequencers their numbers, warm up, and are
counted for a while. Waiting for the end, as other runs do, would mean to wait for heartbeats and timeouts of
many milliseconds, where a run of a few hundred microseconds has already seen thousands of messages. Nothing
is said of the end of such a run, but what was delivered must have kept all promises.
"""

from collections.abc import Collection
from statistics import fmean, median_low

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, HostId, LocalError, Nanos
from ordercast.experiments.hydra.testbed import HYDRA, hydra_options, microbenchmark
from ordercast.scenario.spec import Scenario
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.run import Run
from ordercast.sim.world import World
from ordercast.trace import Kind

RATE, LATENCY, MEAN = "messages_per_s", "p50_ns", "mean_ns"

_READY_ROLES = ("sender", "switch", "sequencer")
_READY_MAX: Nanos = 1 * SECOND


def ready_world(scenario: Scenario, down: Collection[HostId] = ()) -> World:
    """A world in which messages can be sent: everybody who must know of a sequencer does.

    Some hosts may be down from the start.
    """
    plan = scenario.plan()
    world = build_world(scenario, plan)
    for host in down:
        world.crash(host)
    nodes = [node.id for node in plan.nodes if node.role in _READY_ROLES and node.host not in down]
    while True:
        world.run(world.now + MILLISECOND)
        explained = world.explain()
        if not any(explained[node].waits for node in nodes):
            return world
        if world.now > _READY_MAX:
            raise LocalError("the deployment did not start")


def check(scenario: Scenario, world: World) -> None:
    """Raise an error if a promise was broken by what was delivered so far."""
    run = Run(scenario, world, 0, "it was cut off", "deliveries missing")
    if run.violations:
        raise LocalError(f"a promise was broken: {run.violations[0]}")


def closed_loop(
    *,
    system: str,
    groups: int,
    receivers: int,
    clients: int,
    seed: int,
    warm_us: float,
    measured_us: float,
    clients_a_host: int = 1,
    sequencers: int = 2,
    flush: str = "",
    flush_ns: int = -1,
    skew_us: float = 0.0,
) -> dict[str, float]:
    """What closed-loop clients complete by second, and how long it takes them: the microbenchmark.

    Without a flush policy Hydra has its own default; for the baselines it means nothing.
    """
    scenario = microbenchmark(
        system,
        clients=clients // clients_a_host,
        seed=seed,
        groups=groups,
        receivers=receivers,
        outstanding=clients_a_host,
        options=hydra_options(sequencers=sequencers, flush=flush, flush_ns=flush_ns)
        if system == HYDRA
        else {},
        skew_us=skew_us,
    )
    world = ready_world(scenario)
    build_workload(scenario, world).start()
    world.run(world.now + round(warm_us * MICROSECOND))
    start = world.now
    world.run(start + round(measured_us * MICROSECOND))
    latencies = [
        time - submitted
        for time, _, _, kind, _, _, _, submitted, *_ in world.rows
        if kind is Kind.COMPLETE and isinstance(submitted, int) and isinstance(time, int) and time > start
    ]
    check(scenario, world)
    if not latencies:
        raise LocalError("no client completed a message")
    seconds = (world.now - start) / SECOND
    return {
        RATE: len(latencies) / seconds,
        LATENCY: median_low(latencies),
        MEAN: fmean(latencies),
        "seconds": seconds,
    }
