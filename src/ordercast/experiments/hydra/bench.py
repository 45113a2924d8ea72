"""Runs on Hydra's testbed that are cut off, and what is counted in them.

Runs begin when the configuration service has a leader and all sequencers their numbers, warm up, and are
counted for a while. Waiting for the end, as other runs do, would mean to wait for heartbeats and timeouts of
many milliseconds, where a run of a few hundred microseconds has already seen thousands of messages. Nothing
is said of the end of such a run, but what was delivered must have kept all promises.
"""

from collections.abc import Callable, Collection
from functools import partial
from statistics import fmean, median_low

import msgspec

from ordercast.core import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    Groups,
    HostId,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    format_ns,
)
from ordercast.scenario.clock import Clock
from ordercast.scenario.spec import Scenario
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.collector import collector_paused
from ordercast.sim.run import Run
from ordercast.sim.workload import Workload
from ordercast.sim.world import World
from ordercast.trace import Kind

Completed = Callable[[World, int], list[Nanos]]
"""The latencies of what was completed among the rows from the given one on."""

_READY_ROLES = ("sender", "client", "switch", "sequencer")
_READY_MAX: Nanos = 1 * SECOND
_SLICE: Nanos = 5 * MICROSECOND
"""How long a run goes on before its completions are counted again."""
_COUNTED_MAX: Nanos = 200 * MILLISECOND
ROUNDS_OF_WARMING, ROUNDS_COUNTED = 1, 3
"""Messages of each client at least; in its first round it meets queues that are not full yet."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted in a run with some number of clients."""

    clients: int
    messages_per_s: float
    """Completed: all receivers have answered, or the client of a service has its answer."""
    p50_ns: float
    """The median latency at clients."""
    mean_ns: float
    seconds: float
    """Of virtual time, counted."""


@collector_paused()
def ready_world(
    scenario: Scenario, *, down: Collection[HostId] = (), order_ns: Nanos = 0, skew_us: float = 0.0
) -> World:
    """A world in which messages can be sent: everybody who must know of a sequencer does.

    Some hosts may be down from the start.
    """
    plan = scenario.plan()
    world = build_world(scenario, plan)
    spread_clocks(world, skew_us)
    charge_order(world, order_ns)
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


def spread_clocks(world: World, skew_us: float) -> None:
    """Set the sequencers' clocks ahead by equal steps, from none for the first to the skew for the last.

    So the largest difference between any two of them is the skew, as in the paper's appendix A.1.
    """
    sequencers = sequencer_nodes(world) if skew_us else []
    for place, node in enumerate(sequencers):
        share = place / max(1, len(sequencers) - 1)
        world.envs[node].clock = Clock(round(skew_us * MICROSECOND * share))


def sequencer_nodes(world: World) -> list[NodeId]:
    """The nodes that stamp messages, on switches or on hosts."""
    return [node.id for node in world.plan.nodes if node.role in ("switch", "sequencer")]


def charge_order(world: World, order_ns: Nanos) -> None:
    """Charge a host for each message that it delivers, besides its packets, and before it answers."""
    hosts = [env.host for env in world.envs]

    def on_delivery(node: NodeId, message: MessageId, groups: Groups) -> None:
        hosts[node].charge(order_ns)

    if order_ns:
        world.observers.append(on_delivery)


@collector_paused()
def check(scenario: Scenario, world: World) -> None:
    """Raise an error if a promise was broken by what was delivered so far."""
    run = Run(scenario, world, 0, "it was cut off", "deliveries missing")
    if run.violations:
        raise LocalError(f"a promise was broken: {run.violations[0]}")


@collector_paused()
def count(
    scenario: Scenario,
    world: World,
    *,
    clients: int,
    messages: int,
    least_us: float = 0.0,
    most: Nanos = _COUNTED_MAX,
    workload: Workload | None = None,
    completed: Completed | None = None,
) -> Counted:
    """Let closed-loop clients warm up, then count so many messages, for so long at least and at most.

    The workload is that of the scenario, and a message is completed when it is answered, unless others are
    given.
    """
    (workload or build_workload(scenario, world)).start()
    done = completed or partial(latencies_of, kind=Kind.REPLY if scenario.service else Kind.COMPLETE)
    _run_until(world, done, max(messages // 4, ROUNDS_OF_WARMING * clients), 0, most)
    start, wanted = world.now, max(messages, ROUNDS_COUNTED * clients)
    latencies = _run_until(world, done, wanted, round(least_us * MICROSECOND), most)
    check(scenario, world)
    seconds = (world.now - start) / SECOND
    return Counted(
        clients=clients,
        messages_per_s=len(latencies) / seconds,
        p50_ns=median_low(latencies),
        mean_ns=fmean(latencies),
        seconds=seconds,
    )


def _run_until(world: World, done: Completed, messages: int, least: Nanos, most: Nanos) -> list[Nanos]:
    """Go on until so many messages are completed, for this time at least; returns their latencies."""
    seen, start = len(world.rows), world.now
    latencies: list[Nanos] = []
    while len(latencies) < messages or world.now - start < least:
        world.run(world.now + _SLICE)
        latencies += done(world, seen)
        seen = len(world.rows)
        if world.now - start > most:
            raise LocalError(
                f"only {len(latencies)} of {messages} messages were completed in {format_ns(most)}"
            )
    return latencies


def latencies_of(world: World, first: int, *, kind: Kind) -> list[Nanos]:
    """From submission to each event of a kind, among the rows from the given one on."""
    return [
        time - submitted
        for time, _, _, what, _, _, _, submitted, *_ in world.rows[first:]
        if what is kind and isinstance(submitted, int) and isinstance(time, int)
    ]
