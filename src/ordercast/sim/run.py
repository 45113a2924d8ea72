"""From a scenario to a judged run.

A run has two phases. First the workload and the faults of the scenario happen: whatever comes of it
must be safe. Then the run goes on until everything is delivered. If nothing more is delivered for the
scenario's settling time, the network's loss, duplication and reordering stop, if there are any; if then
again nothing comes for so long, what is missing is taken as missing for good. The promises about the end are
judged, unless the world at the end is one in which the protocol did not promise to go on.
"""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from zlib import crc32

import msgspec
import pyarrow as pa

from ordercast.core import MILLISECOND, SECOND, Explanation, LocalError, MessageId, Nanos, NodeId, Plan
from ordercast.judge import verdict
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.contract import beyond_contract, hindrance_of
from ordercast.sim.network import Conditions
from ordercast.sim.scenario import Scenario
from ordercast.sim.summary import Ending, Summary, sum_up
from ordercast.sim.world import World
from ordercast.trace import (
    CARRYING,
    ORDERED,
    SETTLING,
    Event,
    RunDescription,
    build_table,
    describe,
    trace_hash,
    write_run,
)

STEP: Nanos = 10 * MILLISECOND
LINGER: Nanos = 50 * MILLISECOND
"""How long a run goes on after all is delivered, so that a stray duplicate shows."""
TIME_MAX: Nanos = 24 * 3600 * SECOND

Progress = Callable[[int, int], None]
"""Called now and then with the number of messages submitted so far and wanted in all."""


def run_name(scenario: Scenario, plan: Plan) -> str:
    """The name of a run of this scenario, which its folder has too.

    Runs of different scenarios with the same seed must not take each other's folder.
    """
    content = msgspec.json.encode(msgspec.structs.replace(scenario, packets=False), order="sorted")
    return f"{plan.protocol}-{scenario.seed}-{crc32(content):08x}"


class Run:
    """A finished run: its trace, and what the checks found in it."""

    def __init__(
        self, scenario: Scenario, world: World, timed_out: int, hindrance: str, ending: Ending
    ) -> None:
        self.scenario = scenario
        self.hindrance = hindrance
        """Why the promises about the end could not be judged; empty if they were."""
        self.ending = ending
        self.rows = world.rows
        self.duration_ns = world.now
        self.packets_lost = world.network.lost
        self.overflowed = sum(host.overflowed for host in world.hosts.values())
        self.refused = world.refused
        self.timed_out = timed_out
        name = run_name(scenario, world.plan)
        described = describe(
            world.plan, run=name, source="simulator", seed=scenario.seed, complete=not hindrance
        )
        self.table: pa.Table = build_table(name, self.rows)
        self.description: RunDescription = msgspec.structs.replace(
            described,
            trace_hash=trace_hash(self.table),
            scenario=msgspec.to_builtins(scenario),
        )
        judged = verdict(self.description, self.events())
        self.violations, self.suppressed = judged.violations, judged.suppressed
        self.holes = judged.holes
        self.beyond_contract = beyond_contract(scenario, world.plan)
        """Faults of the scenario that the protocol does not claim to bear."""
        self.waits: dict[NodeId, Explanation] = world.explain()

    def events(self) -> list[Event]:
        """The trace, row by row."""
        return [Event._make(row) for row in self.rows]

    def order(self, node: NodeId) -> list[MessageId]:
        """The messages that a node delivered, in its order."""
        return [
            event.message
            for event in self.events()
            if event.node == node and event.kind in ORDERED and event.message is not None
        ]

    def summary(self) -> Summary:
        """The run in numbers."""
        return sum_up(
            self.description,
            self.table,
            self.violations,
            seed=self.scenario.seed,
            duration_ns=self.duration_ns,
            ending=self.ending,
            packets_lost=self.packets_lost,
            overflowed=self.overflowed,
            refused=self.refused,
            timed_out=self.timed_out,
        )

    def write(self, folder: Path) -> Path:
        """Put the trace on disk, in a folder of its own below this one."""
        target = folder / self.description.run
        write_run(target, self.description, self.table)
        return target


def simulate(scenario: Scenario, plan: Plan | None = None, progress: Progress | None = None) -> Run:
    """Run a scenario to its end and judge it; another plan may take the place of the protocol's own."""
    return drive(scenario, build_world(scenario, plan or scenario.plan()), progress)


def drive(scenario: Scenario, world: World, progress: Progress | None = None) -> Run:
    """Run a scenario in a world that has not begun yet."""
    workload = build_workload(scenario, world)
    for fault in scenario.fault:
        world.scheduler.at(fault.at_ns, fault.strike, world)
    workload.start()
    last_fault = max((fault.ends_ns for fault in scenario.fault), default=0)
    wanted = scenario.workload.messages
    while not workload.finished or world.now < last_fault:
        if world.now > TIME_MAX:
            raise LocalError("the scenario does not end within a day of virtual time")
        if not world.scheduler.pending:
            break
        world.run(max(world.now + STEP, world.scheduler.next_ns))
        if progress:
            progress(wanted - workload.remaining, wanted)
    patience, arrivals = round(scenario.settle_ms * MILLISECOND), _Arrivals(world)
    ending: Ending = "settled"
    if not _settle(world, patience, arrivals):
        calm = world.network.calm
        world.network.set_conditions(Conditions())
        settled = not calm and _settle(world, patience, arrivals)
        ending = "settled after healing" if settled else "deliveries missing"
    hindrance = _hindrance(world) if workload.finished else "the workload had not come to its end"
    return Run(scenario, world, workload.timed_out, hindrance, ending)


class _Arrivals:
    """Counts what came to receivers, each thing once, however often a node delivered it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: set[tuple[object, ...]] = set()
        self._next = 0

    def complete(self) -> bool:
        """Whether everything expected has been delivered, or its loss announced."""
        world = self._world
        if world.delivered + world.dropped < world.expected:
            return False
        for row in islice(world.rows, self._next, None):
            event = Event._make(row)
            if event.kind in CARRYING:
                self._seen.add((event.node, event.message))
            elif event.kind in SETTLING:
                self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))
        self._next = len(world.rows)
        return len(self._seen) >= world.expected


def _settle(world: World, patience: Nanos, arrivals: _Arrivals) -> bool:
    """Go on until everything expected has been delivered, or nothing has been for so long."""
    start, progress, since = world.now, -1, world.now
    while not arrivals.complete():
        if world.delivered + world.dropped != progress:
            progress, since = world.delivered + world.dropped, world.now
        tired = world.now - since >= patience or world.now - start > TIME_MAX
        if tired or not world.scheduler.pending:
            return False
        world.run(min(since + patience, world.now + STEP))
    world.run(world.now + LINGER)
    return True


def _hindrance(world: World) -> str:
    """Why the world, as it is at the end, is not one in which the protocol promised to go on."""
    down = {env.me for env in world.envs if not env.host.up}
    return hindrance_of(world.plan, down, cut=bool(world.network.blocked))
