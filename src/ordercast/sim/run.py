"""From a scenario to a judged run.

A run has two phases. First the workload and the faults of the scenario happen: whatever comes of it
must be safe. Then the run goes on until everything is delivered. If nothing more is delivered for the
scenario's settling time, the network's loss, duplication and reordering stop, if there are any; if then
again nothing comes for so long, what is missing is taken as missing for good. The promises about the end are
judged, unless the world at the end is one in which the protocol did not promise to go on.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Literal
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.check import Violation, verdict
from ordercast.core import (
    MILLISECOND,
    SECOND,
    Explanation,
    Fault,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Plan,
)
from ordercast.sim import faults
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.crashes import by_role, returns, too_many
from ordercast.sim.network import Conditions
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import World
from ordercast.trace import (
    Event,
    Kind,
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


Ending = Literal["settled", "settled after healing", "deliveries missing"]
"""How a run ended: everything expected came under the conditions of the scenario, or only after they had
become good, or never."""


class Summary(msgspec.Struct, frozen=True):
    """A run in numbers. ``delivered`` counts deliveries at all receivers together, and
    ``throughput_per_s`` the different messages delivered, by second of virtual time.
    """

    protocol: str
    seed: int
    trace_hash: str
    events: int
    submitted: int
    delivered: int
    dropped: int
    violations: list[Violation]
    latency_ns: dict[str, int | None]
    throughput_per_s: float
    duration_ns: Nanos
    complete: bool
    ending: Ending
    packets_lost: int
    overflowed: int
    """Packets that found the queue of a host's CPU full."""
    refused: int
    """Messages that a sender's application could not hand over, because too many waited."""
    timed_out: int
    """Messages whose answers a closed-loop client stopped waiting for."""


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
        self.beyond_contract = _beyond_contract(scenario, world.plan)
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
            if event.node == node and event.kind is Kind.DELIVER and event.message is not None
        ]

    def summary(self) -> Summary:
        """The run in numbers."""
        kinds = self.table.column("kind").combine_chunks()
        counts = {kind: pc.sum(pc.equal(kinds.dictionary_decode(), kind)).as_py() or 0 for kind in Kind}
        delivered = self.table.filter(pc.equal(kinds.dictionary_decode(), Kind.DELIVER))
        # What a protocol made up carries no message, and was never submitted.
        delivered = delivered.filter(pc.is_valid(delivered.column("submitted_ns")))
        times, submitted = (delivered.column(name).to_numpy() for name in ("time_ns", "submitted_ns"))
        return Summary(
            protocol=self.description.protocol,
            seed=self.scenario.seed,
            trace_hash=self.description.trace_hash or "",
            events=len(self.table),
            submitted=counts[Kind.SUBMIT],
            delivered=counts[Kind.DELIVER],
            dropped=counts[Kind.DROP],
            violations=self.violations,
            latency_ns=_percentiles(times - submitted),
            throughput_per_s=_throughput(delivered, times, submitted),
            duration_ns=self.duration_ns,
            complete=self.description.complete,
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


def _beyond_contract(scenario: Scenario, plan: Plan) -> list[Fault]:
    network, clocks, kinds = scenario.network, scenario.clocks, [type(fault) for fault in scenario.fault]
    # Infrastructure may come back as the plan says, whatever the guarantees say of receivers.
    restarts = [
        fault.state
        for fault in scenario.fault
        if isinstance(fault, faults.Restart) and fault.state not in returns(plan, fault.host)
    ]
    happened = {
        Fault.LOSS: network.loss > 0,
        Fault.DUPLICATION: network.duplication > 0,
        Fault.REORDERING: network.reordering > 0,
        Fault.PARTITION: faults.Partition in kinds,
        Fault.CRASH: faults.Crash in kinds,
        Fault.RESTART: "saved" in restarts,
        Fault.AMNESIA: "lost" in restarts,
        Fault.PAUSE: faults.Pause in kinds,
        Fault.CLOCK: clocks.skew_us > 0 or clocks.drift_ppm > 0 or faults.SetClock in kinds,
    }
    return [fault for fault, struck in happened.items() if struck and fault not in plan.guarantees.tolerates]


def _percentiles(latencies: np.ndarray) -> dict[str, int | None]:
    names = ("p50", "p90", "p99", "max")
    if not len(latencies):
        return dict.fromkeys(names)
    values = np.percentile(latencies, (50, 90, 99, 100), method="higher")
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def _throughput(delivered: pa.Table, times: np.ndarray, submitted: np.ndarray) -> float:
    if not len(times) or times.max() == submitted.min():
        return 0.0
    messages: int = pc.count_distinct(delivered.column("message")).as_py()
    return round(messages * SECOND / int(times.max() - submitted.min()), 3)


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
            if event.kind is Kind.DROP:
                self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))
            elif event.kind in (Kind.DELIVER, Kind.OUT_OF_ORDER):
                self._seen.add((event.node, event.message))
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
    if world.network.blocked:
        return "a partition was still in force"
    plan = world.plan
    for group, members in plan.groups.items():
        down = _down(world, members)
        if too_many(plan.guarantees.crashes, len(down), len(members)):
            return f"of group {group}, nodes {', '.join(map(str, down))} were down"
    for role, nodes in by_role(plan).items():
        down = _down(world, [node.id for node in nodes])
        if nodes[0].fails and too_many(nodes[0].fails, len(down), len(nodes)):
            named = ", ".join(map(str, down))
            return f"of {len(nodes)} nodes with the role {role}, too many were down: {named}"
    return ""


def _down(world: World, nodes: Iterable[NodeId]) -> list[NodeId]:
    return [node for node in nodes if not world.envs[node].host.up]
