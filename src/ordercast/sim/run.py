"""Runs a scenario and judges the run.

A run has two phases, and a third if it is judged for liveness. In the first, the workload and the faults of
the scenario happen; the protocol must stay safe. In the second, the run goes on until everything is
delivered. If nothing is delivered for the scenario's settling time, the network's loss, duplication and
reordering are switched off, if there are any. If again nothing comes for that time, the missing deliveries
count as missing for good. Then the promises about the end are judged, unless the run ended under conditions
in which the protocol does not promise to make progress. In the third phase each sender that is up submits a
probe to each group, on a network that loses nothing.
"""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa

from ordercast.core import (
    FAILED,
    MILLISECOND,
    Consistency,
    Explanation,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Plan,
    ProtocolFailed,
    ProtocolFailure,
    chain_text,
    follow,
    message_sender,
)
from ordercast.judge import END_OF_RUN, Replay, Violation, verdict
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.contract import beyond_contract
from ordercast.scenario.ending import Ending, ending_of, hindrance_of, may_branch
from ordercast.scenario.lacking import only_crashed_lack
from ordercast.scenario.receipts import Receipts
from ordercast.scenario.settling import TIME_MAX, SettlingRun
from ordercast.scenario.spec import Scenario, run_name
from ordercast.scenario.stretches import pace_of, stretches_of
from ordercast.scenario.summary import Summary, sum_up
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.collector import collector_paused
from ordercast.sim.probing import LINGER, STEP, Probing
from ordercast.sim.workload import Workload
from ordercast.sim.world import World
from ordercast.trace import (
    ORDERED,
    Event,
    RunDescription,
    build_table,
    describe,
    trace_hash,
    write_run,
)
from ordercast.trace.values import Values, write_values

Progress = Callable[[int, int], None]
"""Called from time to time with the number of messages submitted so far and the total number."""


class Run:
    """A finished run: its trace, and the findings of the judge."""

    def __init__(
        self,
        scenario: Scenario,
        world: World,
        timed_out: int,
        hindrance: str,
        ending: Ending,
        failure: ProtocolFailure | None = None,
        *,
        probed: bool = False,
    ) -> None:
        self.scenario = scenario
        self.hindrance = hindrance
        """Why the promises about the end could not be judged; empty if they were."""
        self.ending = ending
        self.rows = world.rows
        self.carried = world.carried
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
            stretches=stretches_of(scenario, world.plan, world.now),
            probed=probed,
            scenario=msgspec.to_builtins(scenario),
            failure=failure,
        )
        self.replay = replay_of(world)
        self.values = Values(world.calls.operations, world.calls.results)
        """What clients of a service called and were answered."""
        judged = verdict(self.description, self.events(), replay=self.replay)
        self.violations, self.suppressed = judged.violations, judged.suppressed
        self.holes = judged.holes
        self.beyond_contract = beyond_contract(scenario, world.plan)
        """Faults of the scenario that the protocol does not promise to tolerate."""
        self.waits: dict[NodeId, Explanation] = {} if failure else world.explain()

    def events(self) -> list[Event]:
        """The trace, row by row."""
        return [Event._make(row) for row in self.rows]

    def reason(self, found: Violation) -> str:
        """Who waits for whom, up to the cause, from a node that a violation at the end of the run names.

        Empty if the violation shows before the end, or if nothing waits at these nodes.
        """
        if found.step != END_OF_RUN:
            return ""
        waits = {node: explanation.waits for node, explanation in self.waits.items()}
        roles = {node.id: node.role for node in self.description.nodes}
        for node in (*reversed(found.nodes), *map(message_sender, found.messages)):
            if waits.get(node):
                return chain_text(follow(node, waits[node][0], waits), roles)
        return ""

    def order(self, node: NodeId) -> list[MessageId]:
        """The messages that a node delivered, in its order."""
        return [
            event.message
            for event in self.events()
            if event.node == node and event.kind in ORDERED and event.message is not None
        ]

    def summary(self) -> Summary:
        """The numbers of the run."""
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
        """Write the trace to disk, into a new folder inside this one."""
        target = folder / self.description.run
        if self.scenario.history and self.replay is not None:
            write_values(target, self.values)
        write_run(target, self.description, self.table)
        return target


def replay_of(world: World) -> Replay | None:
    """The operations of a world, if it has a service."""
    service = world.plan.service
    return None if service is None else Replay(service, world.calls.operations)


def simulate(scenario: Scenario, plan: Plan | None = None, progress: Progress | None = None) -> Run:
    """Run a scenario to its end and judge it. `plan` replaces the plan of the protocol."""
    return drive(scenario, build_world(scenario, plan or scenario.plan()), progress)


@collector_paused()
def drive(scenario: Scenario, world: World, progress: Progress | None = None) -> Run:
    """Run a scenario in a world that has not begun yet; a protocol that fails ends the run."""
    workload = build_workload(scenario, world)
    try:
        return _drive(scenario, world, workload, progress)
    except ProtocolFailed as error:
        hindrance = "the protocol failed"
        return Run(scenario, world, workload.timed_out, hindrance, FAILED, error.failure)


def _drive(scenario: Scenario, world: World, workload: Workload, progress: Progress | None) -> Run:
    for fault in scenario.fault:
        world.scheduler.at(fault.at_ns, fault.strike, world)
    for change in scenario.changes:
        world.scheduler.at(change.at_ns, change.strike, world.members)
    workload.start()
    last_fault = max((fault.ends_ns for fault in scenario.fault), default=0)
    last_fault = max((last_fault, *(change.at_ns for change in scenario.changes)))
    wanted = scenario.workload.messages
    while not workload.finished or world.now < last_fault:
        if world.now > TIME_MAX:
            raise LocalError("the scenario does not end within a day of virtual time")
        if not world.scheduler.pending:
            break
        world.run(max(world.now + STEP, world.scheduler.next_ns))
        if progress:
            progress(workload.budget.taken, wanted)
    settling = _Settling(world, branching=may_branch(scenario, world.plan))
    patience = round(scenario.settle_ms * MILLISECOND)
    healed = settling.settle(patience)
    missing = not settling.complete and not settling.open_ended
    only_crashed = missing and only_crashed_lack(world.plan, map(Event._make, world.rows))
    ending = ending_of(missing=missing, healed=healed, only_crashed=only_crashed)
    hindrance = _hindrance(world, finished=workload.finished)
    pace = None if hindrance else pace_of(scenario, world.plan)
    if pace is not None:
        Probing(world).run(pace.recovery_ns, patience)
    return Run(scenario, world, workload.timed_out, hindrance, ending, probed=pace is not None)


class _Settling(SettlingRun):
    """A simulated run that settles."""

    STEP = STEP
    LINGER = LINGER

    def __init__(self, world: World, *, branching: bool) -> None:
        """`branching`: the receivers of a group may split, and discard what some of them delivered."""
        self._world = world
        self._branching = branching
        self._replicated = world.plan.guarantees.consistency is not Consistency.NONE
        self._receipts = Receipts(replicated=self._replicated)
        self._next = 0

    @property
    def now(self) -> Nanos:
        """Virtual time."""
        return self._world.now

    @property
    def arrived(self) -> int:
        """Deliveries, announced drops and answers, repeated ones included."""
        return self._world.delivered + self._world.dropped + self._world.calls.answered

    @property
    def complete(self) -> bool:
        """Whether everything expected has been delivered or announced as dropped."""
        world = self._world
        short = self.arrived < world.expected and not self._replicated
        if short or self.open_ended:
            return False
        for row in islice(world.rows, self._next, None):
            self._receipts.note(Event._make(row))
        self._next = len(world.rows)
        return len(self._receipts) >= world.expected

    @property
    def open_ended(self) -> bool:
        """Whether nobody can tell what is to be delivered, so that a run settles when it is quiet.

        Receivers join and leave, or branches are discarded.
        """
        return self._branching or self._world.members.changed

    @property
    def calm(self) -> bool:
        """Whether the network loses, duplicates and delays no packet."""
        return self._world.network.calm

    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""
        self._world.set_conditions(conditions)

    @property
    def stuck(self) -> bool:
        """Whether no more events are due."""
        return not self._world.scheduler.pending

    def go_on(self, until: Nanos) -> None:
        """Let virtual time pass."""
        self._world.run(until)


def _hindrance(world: World, *, finished: bool) -> str:
    """Why the run is not complete; empty if it is."""
    down = {env.me for env in world.envs if not env.host.up}
    return hindrance_of(world.plan, down, finished=finished, cut=bool(world.network.blocked))
