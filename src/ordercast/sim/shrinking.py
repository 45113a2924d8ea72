"""Makes a failing scenario smaller, until what is left is needed to break the same promise.

The search removes faults and messages by delta debugging, then hosts and groups, then all that makes a
scenario special: its network, its clocks, its options. It keeps every change after which the same property is
still violated, and goes round until nothing more can be removed or the budget is spent. The same scenario
shrinks in the same way each time. A change also changes which random numbers a packet meets; so a change that
concerns the whole run is tried with a few seeds.

The settling time stays as it is: with a shorter one, a message that comes a little late would pass for one
that never comes, and the scenario would fail with a mended protocol too.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from ordercast.core import FAILED, LocalError, Nanos, Plan
from ordercast.judge import Violation
from ordercast.scenario.changes import ChangeSpec, Join, Leave
from ordercast.scenario.contract import beyond_contract
from ordercast.scenario.faults import FaultSpec
from ordercast.scenario.listed import list_submissions
from ordercast.scenario.part import part_of
from ordercast.scenario.simpler import simpler, squeezed
from ordercast.scenario.spec import Scenario, SubmissionSpec, WorkloadSpec
from ordercast.scenario.submission import Submission
from ordercast.scenario.swarm import MakePlan
from ordercast.sim.run import Run, simulate
from ordercast.trace import PACKETS, Event, Kind

TRIES = 2000
"""How many runs a search may take unless it is told otherwise."""
SEEDS = 4
"""With how many seeds a change of the whole run is tried."""
FEW = 30
"""From how many messages or faults on a removal is tried with several seeds: before, runs take longer."""

T = TypeVar("T")
_replace = msgspec.structs.replace


class Size(NamedTuple):
    """How large a run is."""

    events: int
    """Rows of the trace, without packets."""
    packets: int
    """Rows about packets, if they are recorded."""
    messages: int
    faults: int
    hosts: int
    lasted_ns: Nanos


class Shrunk(NamedTuple):
    """The smallest failing scenario so far."""

    scenario: Scenario
    violation: Violation
    before: Size
    after: Size
    reason: str
    """Who waits for whom at the end of the run, if the violation shows only there."""
    tries: int
    """How many runs it took."""
    finished: bool
    """Whether nothing more can be removed; otherwise the budget was spent."""


Report = Callable[[Scenario, int], None]
"""Called with the smallest scenario so far and the number of runs, whenever one of them changes."""


def shrink(
    scenario: Scenario,
    make_plan: MakePlan | None = None,
    *,
    violated: str | None = None,
    tries: int = TRIES,
    enough: Callable[[], bool] = lambda: False,
    report: Report = lambda scenario, tries: None,
) -> Shrunk:
    """Shrink a failing scenario. `LocalError` if it does not fail, or not by the property `violated`.

    `make_plan` makes the plans instead of the scenario's protocol. The search ends early after `tries` runs,
    or when `enough` says so.
    """
    return _Search(scenario, make_plan, violated, tries, enough, report).run()


def size_of(scenario: Scenario, make_plan: MakePlan | None = None) -> tuple[Run, Size]:
    """A run of a scenario with its packets, and its size."""
    run = simulate(_replace(scenario, packets=True), _plan(scenario, make_plan))
    packets = sum(row[_KIND] in PACKETS for row in run.rows)
    messages = sum(row[_KIND] is Kind.SUBMIT for row in run.rows)
    hosts = len({node.host for node in run.description.nodes})
    return run, Size(len(run.rows) - packets, packets, messages, len(scenario.fault), hosts, run.duration_ns)


def measured(scenario: Scenario, best: Scenario, violated: str | None, tries: int) -> Shrunk:
    """The result of a search that was left after so many runs, with the smallest scenario that it had."""
    run, before = size_of(scenario)
    found = _first(run, violated)
    last, after = size_of(best)
    kept = _first(last, found.property)
    return Shrunk(best, kept, before, after, last.reason(kept), tries, finished=False)


_KIND = Event._fields.index("kind")


class _Spent(Exception):
    """The budget of the search is spent."""


class _Search:
    def __init__(
        self,
        scenario: Scenario,
        make_plan: MakePlan | None,
        violated: str | None,
        tries: int,
        enough: Callable[[], bool],
        report: Report,
    ) -> None:
        self._make_plan = make_plan
        self._best = _replace(scenario, packets=False)
        self._tries = 0
        self._tries_max = tries
        self._enough = enough
        self._report = report
        self._known: dict[bytes, bool] = {}
        run, self._before = size_of(scenario, make_plan)
        found = _first(run, violated)
        self._property = found.property
        self._place = _place(run)
        self._allowed = set(run.beyond_contract)
        self._run = run

    def run(self) -> Shrunk:
        """Search until nothing more can be removed, or the budget is spent."""
        try:
            self._list_messages()
            while self._round():
                pass
            finished = True
        except _Spent:
            finished = False
        run, after = size_of(self._best, self._make_plan)
        found = _first(run, self._property)
        return Shrunk(self._best, found, self._before, after, run.reason(found), self._tries, finished)

    def _round(self) -> bool:
        """Try to remove and to simplify everything once; return whether that helped."""
        before = self._best
        self._fewer_messages()
        self._fewer_faults()
        _minimize(self._best.changes, self._with_changes)
        self._fewer_nodes()
        self._simpler()
        for shorter in squeezed(self._best):
            if self._take(shorter):
                break
        return self._best != before

    # What is removed

    def _list_messages(self) -> None:
        """List the messages of the run, so that each can be removed by itself."""
        plan = _plan(self._best, self._make_plan)
        submissions = [
            Submission(event.time_ns, event.node, event.groups or (), event.size or 0)
            for event in self._run.events()
            if event.kind is Kind.SUBMIT and not event.label
        ]
        listed = list_submissions(submissions, plan)
        self._take(_replace(self._best, workload=WorkloadSpec(kind="listed", submission=listed)), SEEDS)

    def _fewer_messages(self) -> None:
        spec = self._best.workload
        if spec.kind == "listed":
            _minimize(spec.submission, self._with_submissions)
            return
        while spec.messages > 1 and self._take(
            _replace(self._best, workload=_replace(spec, messages=spec.messages // 2)), SEEDS
        ):
            spec = self._best.workload

    def _with_submissions(self, listed: tuple[SubmissionSpec, ...]) -> bool:
        fewer = _replace(self._best.workload, submission=listed)
        return self._take(_replace(self._best, workload=fewer), _seeds(listed))

    def _fewer_faults(self) -> None:
        _minimize(self._best.fault, self._with_faults)

    def _with_faults(self, faults: tuple[FaultSpec, ...]) -> bool:
        return self._take(_replace(self._best, fault=faults), _seeds(faults))

    def _with_changes(self, changes: tuple[ChangeSpec, ...]) -> bool:
        join = tuple(one for one in changes if isinstance(one, Join))
        leave = tuple(one for one in changes if isinstance(one, Leave))
        return self._take(_replace(self._best, join=join, leave=leave), _seeds(changes))

    def _fewer_nodes(self) -> None:
        for group in reversed(range(len(self._best.deployment().groups))):
            self._take_part(groups=(group,))
        for node in reversed(range(self._best.deployment().receivers)):
            self._take_part(receivers=(node,))
        for place in reversed(range(self._best.senders)):
            self._take_part(senders=(place,))
        if self._best.colocated:
            self._take_part(apart=True)

    def _take_part(self, **without: object) -> None:
        try:
            part = part_of(self._best, self._plan_of, **without)  # type: ignore[arg-type]
        except LocalError:  # the protocol does not allow so few
            return
        if part is not None:
            self._take(part, 2 * SEEDS)

    def _simpler(self) -> None:
        """Put one setting after the other back to its default."""
        tried = 0
        while tried < len(changes := list(simpler(self._best))):
            self._take(changes[tried], SEEDS)
            tried += 1

    # Runs

    def _take(self, candidate: Scenario, seeds: int = 1) -> bool:
        """Keep a scenario if it fails in the same way with one of a few seeds; return whether it does."""
        if candidate == self._best:
            return False
        for seed in range(candidate.seed, candidate.seed + seeds):
            if self._fails(_replace(candidate, seed=seed)):
                self._best = _replace(candidate, seed=seed)
                self._report(self._best, self._tries)
                return True
        return False

    def _fails(self, candidate: Scenario) -> bool:
        key = msgspec.json.encode(candidate)
        if key not in self._known:
            self._known[key] = self._try(candidate)
        return self._known[key]

    def _try(self, candidate: Scenario) -> bool:
        if self._tries >= self._tries_max or self._enough():
            raise _Spent
        self._tries += 1
        self._report(self._best, self._tries)
        try:
            plan = self._plan_of(candidate)
            if not self._allowed.issuperset(beyond_contract(candidate, plan)):
                return False
            run = simulate(candidate, plan)
        except LocalError:  # it cannot be run
            return False
        same = any(found.property == self._property for found in run.violations)
        return same and (self._property != FAILED or _place(run) == self._place)

    def _plan_of(self, scenario: Scenario) -> Plan:
        return _plan(scenario, self._make_plan)


def _plan(scenario: Scenario, make_plan: MakePlan | None) -> Plan:
    return make_plan(scenario.deployment()) if make_plan else scenario.plan()


def _seeds(items: tuple[object, ...]) -> int:
    return SEEDS if len(items) <= FEW else 1


def _first(run: Run, violated: str | None) -> Violation:
    """The violation to keep: the first one, or the first one of the property that was named."""
    if not run.violations:
        raise LocalError("the scenario keeps every promise, so there is nothing to shrink")
    found = [one for one in run.violations if violated in (None, one.property)]
    if not found:
        names = ", ".join(sorted({one.property for one in run.violations}))
        raise LocalError(f"the scenario does not violate {violated}; it violates: {names}")
    return found[0]


def _place(run: Run) -> str:
    """The line of code where the protocol failed; empty if it did not."""
    return run.description.failure.place if run.description.failure else ""


def _minimize(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool]) -> None:
    """Delta debugging: remove as many items as possible, in ever smaller pieces, while the rest fails."""
    size = len(items)
    while size:
        start, before = 0, len(items)
        while start < len(items):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items = rest
            else:
                start += size
        size = size if size == 1 and len(items) < before else size // 2
