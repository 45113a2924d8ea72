"""A scenario on real processes, from the first host to the verdict.

As in the simulator there are two phases. First the workload and the faults happen. Then the run goes on until
everything is delivered, or nothing was delivered for the scenario's settling time, which is longer on a busy
machine. In that case loss, duplication and reordering stop, if there are any. If again nothing comes for that
time, the missing messages count as missing for good.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa

from ordercast.core import MILLISECOND, SECOND, Consistency, Groups, HostId, LocalError, Nanos, Plan
from ordercast.judge import locks_left, verdict
from ordercast.lab.trial.account import Circumstances, LiveAccount, hosts_hit, outage_limit, take_account
from ordercast.lab.trial.account_rules import Complaint
from ordercast.lab.trial.diary import read_diaries, values_of
from ordercast.lab.trial.differences import ignored
from ordercast.lab.trial.messages import Report
from ordercast.lab.trial.operations_account import OperationsAccount, account_operations
from ordercast.lab.trial.setting import Setting, hosts_of
from ordercast.lab.trial.silence import Silence, silences
from ordercast.lab.trial.stage import Stage
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.host.recording.spool_to_parquet import finish_run, spool_folder
from ordercast.net.transports.address import free_ports
from ordercast.scenario.clock import clocks_of
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.contract import beyond_contract, check_changes, check_faults
from ordercast.scenario.ending import ending_of, hindrance_of, may_branch
from ordercast.scenario.faults import Crash, Disk, SetClock
from ordercast.scenario.lacking import only_crashed_lack
from ordercast.scenario.operations import total_of
from ordercast.scenario.receipts import Receipts, receipts_wanted
from ordercast.scenario.schedule import schedule
from ordercast.scenario.settling import SettlingRun
from ordercast.scenario.spec import ClocksSpec, Scenario, run_name
from ordercast.scenario.summary import Summary, sum_up
from ordercast.trace import Kind, events_of, find_runs, trace_hash
from ordercast.trace.store import DESCRIPTION
from ordercast.trace.values import write_values

STEP_S = 0.02
HEAD_START: Nanos = 100 * MILLISECOND
"""Time between the command to begin and the beginning, so that all hosts get the command before."""
LATE_STEPS = 8
"""How often in a row a host may have to wait for a CPU while it comes back: to start, to load its state, to
find its peers, to hear of the configuration, and to ask for what it missed."""
TIME_MAX_S = 600.0
"""A run that takes longer is given up."""

Progress = Callable[[int, int], None]
"""Called now and then with the number of messages submitted so far and wanted in all."""


class LiveRun:
    """A finished live run: its trace, and what the checks found in it."""

    def __init__(self, folder: Path, conducted: "Conductor") -> None:
        (stored,) = find_runs(folder)
        scenario, plan = conducted.scenario, conducted.plan
        self.scenario = scenario
        self.table: pa.Table = stored.table()
        self.description = msgspec.structs.replace(stored.description, trace_hash=trace_hash(self.table))
        judged = verdict(self.description, events_of(self.table))
        self.violations, self.suppressed = judged.violations, judged.suppressed
        self.holes = judged.holes
        self.hindrance = conducted.hindrance
        self.beyond_contract = beyond_contract(scenario, plan)
        self.ignored = ignored(scenario)
        """The parts of the scenario that a live run ignores, in words."""
        self.late_ns = conducted.total("late_ns", of_all=max)
        """The largest delay of a submission against its schedule."""
        clocks = clocks_of(scenario, hosts_of(plan))
        ahead = {host: clock.read(0) for host, clock in clocks.items()}
        start = conducted.started_ns
        self.crashes = tuple(conducted.stage.crashes)
        """When which host was killed."""
        self.silences: list[Silence] = silences(self.table, plan, self.crashes, start, ahead)
        self.account, self.operations = conducted.accounts()
        """What the applications saw, independently of the trace; and what clients of a service saw."""
        sharded = plan.service is not None and plan.service.sharding is not None
        self.locks_left = locks_left(events_of(self.table)) if sharded else None
        """How many transactions hold locks at the end; None if there are no shards."""
        open_ended = bool(scenario.changes) or may_branch(scenario, plan)
        missing = not open_ended and _missing(self.table, plan) > 0
        only_crashed = missing and only_crashed_lack(plan, events_of(self.table))
        self.ending = ending_of(missing=missing, healed=conducted.healed, only_crashed=only_crashed)
        self._conducted = conducted

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """The promises that were broken by the accounts of the applications."""
        return (*self.account.complaints, *(self.operations.complaints if self.operations else ()))

    def summary(self) -> Summary:
        """The run in numbers; ``overflowed`` counts messages for which a link had no room."""
        total = self._conducted.total
        return sum_up(
            self.description,
            self.table,
            self.violations,
            seed=self.scenario.seed,
            duration_ns=self._conducted.duration_ns,
            ending=self.ending,
            packets_lost=total("lost"),
            overflowed=total("overflowed"),
            refused=total("refused"),
            timed_out=total("timed_out"),
        )


def run_live(
    scenario: Scenario, out: Path | None = None, progress: Progress | None = None
) -> tuple[LiveRun, Path | None]:
    """Run a scenario on real processes and judge it; the trace stays in `out`, if that is given."""
    plan = scenario.plan()
    check_faults(scenario, hosts_of(plan))
    check_changes(scenario, plan)
    _check_length(scenario, plan)
    name = f"live-{run_name(scenario, plan)}"
    with TemporaryDirectory(prefix="ordercast-") as work:
        traces = out or Path(work) / "traces"
        _clear(traces / name)
        conducted = Conductor(scenario, plan, name, Path(work), traces)
        conducted.conduct(progress)
        complete = not conducted.hindrance
        content: dict[str, Any] = msgspec.to_builtins(scenario)
        clocks = _one_clock(scenario, plan)
        folder = finish_run(traces, plan, name, complete=complete, one_clock=clocks, scenario=content)
        if scenario.history and plan.service is not None:
            write_values(folder, values_of(read_diaries(conducted.stage.setting.diaries)))
        return LiveRun(folder, conducted), folder if out else None


class Conductor(SettlingRun):
    """Leads a scenario through its phases."""

    STEP = round(STEP_S * SECOND)
    LINGER = 100 * MILLISECOND
    LIMIT = round(TIME_MAX_S * SECOND)

    def __init__(self, scenario: Scenario, plan: Plan, name: str, work: Path, traces: Path) -> None:
        self.scenario = scenario
        self.plan = plan
        ids = hosts_of(plan)
        ports = free_ports(2 * len(ids))
        setting = Setting(
            scenario=scenario,
            run=name,
            folder=str(work),
            traces=str(traces.absolute()),
            ports=dict(zip(ids, ports, strict=False)),
            answer_ports=dict(zip(ids, ports[len(ids) :], strict=True)),
            epoch_ns=time.time_ns(),
        )
        create_keys(setting.key_file)
        setting.diaries.mkdir()
        self.stage = Stage(setting, plan)
        self.started_ns: Nanos = 0
        """The wall clock when the workload began."""
        self.duration_ns: Nanos = 0
        self.healed = False
        """Whether some deliveries came only after the network was repaired."""
        self.hindrance = ""
        self._reports: list[Report] = []

    def conduct(self, progress: Progress | None) -> None:
        """Run the scenario to its end; no process is left behind in any case."""
        stage = self.stage
        try:
            stage.open()
            begin = time.monotonic_ns() + HEAD_START
            self.started_ns = time.time_ns() + HEAD_START
            stage.begin(begin)
            finished = self._act(begin, progress)
            self.healed = self.settle(patience_of(self.scenario, stage.hosts.reports()))
            self.duration_ns = time.monotonic_ns() - begin
            self.hindrance = self._hindrance(finished=finished)
            stuck = stage.hosts.stop()
            self._reports = stage.hosts.reports()
            if stuck:
                raise LocalError(f"host {stuck[0]} did not stop, so its trace is incomplete")
        finally:
            stage.hosts.close()

    def total(self, name: str, of_all: Callable[[list[int]], int] = sum) -> int:
        """The sum of a figure over all hosts and lives."""
        return of_all([getattr(report, name) for report in self._reports] or [0])

    def accounts(self) -> tuple[LiveAccount, OperationsAccount | None]:
        """The accounts of the run, when it is over: of messages, and of calls if there is a service."""
        stage, scenario = self.stage, self.scenario
        told = Circumstances(
            crashes=stage.crashes,
            up=frozenset(stage.hosts.up),
            hit=hosts_hit(scenario.fault),
            limit_ns=outage_limit(scenario, self.plan),
            complete=not self.hindrance,
            bundled=scenario.bundle_bytes > 0,
            total=total_of(scenario),
            moving=frozenset(change.node for change in scenario.changes),
        )
        diaries = read_diaries(stage.setting.diaries)
        return take_account(self.plan, diaries, told), account_operations(self.plan, diaries, told)

    def _act(self, begin: Nanos, progress: Progress | None) -> bool:
        """Run the workload and the faults; returns whether the workload came to its end."""
        stage, scenario = self.stage, self.scenario
        strikes = sorted((*scenario.fault, *scenario.changes), key=lambda strike: strike.at_ns)
        end = max((fault.ends_ns for fault in scenario.fault), default=0)
        wanted = self.scenario.workload.messages
        while True:
            now = time.monotonic_ns() - begin
            stage.resume_due(begin + now)
            while strikes and strikes[0].at_ns <= now:
                strikes.pop(0).strike(stage)
            if not strikes and now >= end and stage.next_resume_ns is None and self._done():
                return True
            if now > TIME_MAX_S * SECOND:
                return False
            nexts = [strike.at_ns for strike in strikes[:1]]
            nexts += [due - begin for due in (stage.next_resume_ns,) if due is not None]
            wait_s = min([STEP_S, *((due - now) / SECOND for due in nexts)])
            stage.hosts.hear(max(0.0, wait_s))
            if progress:
                submitted = sum(sum(report.submitted.values()) for report in stage.hosts.reports())
                progress(min(submitted, wanted), wanted)

    def _done(self) -> bool:
        """Whether the senders that are up have submitted all messages."""
        newest = [self.stage.hosts.newest(host) for host in self.stage.hosts.up]
        return all(report is not None and report.done for report in newest)

    @property
    def now(self) -> Nanos:
        """The machine's monotonic clock."""
        return time.monotonic_ns()

    @property
    def arrived(self) -> int:
        """Deliveries, announced drops and answers that hosts have reported."""
        reports = self.stage.hosts.reports()
        return sum(report.delivered + report.dropped + report.answered for report in reports)

    @property
    def complete(self) -> bool:
        """Whether the reports say that everything was delivered.

        Deliveries that a killed host did not report are unknown. So is who delivers a message, if receivers
        join and leave, or discard what some delivered; then only silence shows the end.
        """
        open_ended = self.scenario.changes or may_branch(self.scenario, self.plan)
        if open_ended or any(isinstance(fault, Crash | Disk) for fault in self.scenario.fault):
            return False
        reports = self.stage.hosts.reports()
        waiting = sum(report.waiting for report in reports)
        return not waiting and self.arrived >= sum(report.expected for report in reports)

    @property
    def calm(self) -> bool:
        """Whether the network loses, doubles and delays nothing on purpose."""
        return self.stage.calm

    def set_conditions(self, conditions: Conditions) -> None:
        """Change the impairment of datagrams from now on."""
        self.stage.set_conditions(conditions)

    def go_on(self, until: Nanos) -> None:
        """Listen to the hosts for a while."""
        while (rest := until - time.monotonic_ns()) > 0:
            self.stage.hosts.hear(rest / SECOND)

    def _hindrance(self, *, finished: bool) -> str:
        up = set(self.stage.hosts.up)
        down = {node.id for node in self.plan.nodes if node.host not in up}
        return hindrance_of(self.plan, down, finished=finished, cut=bool(self.stage.blocked))


def patience_of(scenario: Scenario, reports: Sequence[Report]) -> Nanos:
    """How long nothing may come before it counts as missing: longer if the machine is so busy that hosts
    submitted late, because a host that comes back is late then, too."""
    late = max((report.late_ns for report in reports), default=0)
    return round(scenario.settle_ms * MILLISECOND) + LATE_STEPS * late


def _one_clock(scenario: Scenario, plan: Plan) -> tuple[tuple[HostId, ...], ...]:
    """All hosts are on one machine, unless their clocks are made to differ."""
    differ = scenario.clocks != ClocksSpec() or any(isinstance(fault, SetClock) for fault in scenario.fault)
    return () if differ else (tuple(hosts_of(plan)),)


def _check_length(scenario: Scenario, plan: Plan) -> None:
    """Refuse a scenario that takes too long, before it begins."""
    ends = [*(fault.ends_ns for fault in scenario.fault), *(one.at_ns for one in scenario.changes)]
    last: Nanos = max(ends, default=0)
    if scenario.workload.kind != "closed":
        for submission in schedule(scenario, plan):
            last = max(last, submission.at_ns)
            if last > TIME_MAX_S * SECOND:
                break
    if last > TIME_MAX_S * SECOND:
        raise LocalError(f"the scenario lasts longer than {TIME_MAX_S:g} s, the limit of a live run")


def _clear(folder: Path) -> None:
    """Remove an earlier run of the same name."""
    spools = spool_folder(folder)
    try:
        for path in [folder / DESCRIPTION, *folder.glob("*.parquet"), *spools.glob("*")]:
            path.unlink(missing_ok=True)
        if spools.is_dir():
            spools.rmdir()
    except OSError as error:
        raise LocalError(f"cannot write the trace to {folder}: {error.strerror or error}") from error


def _missing(table: pa.Table, plan: Plan) -> int:
    """About how many deliveries are missing without a drop notification."""
    expected = 0
    receipts = Receipts(replicated=plan.guarantees.consistency is not Consistency.NONE)
    receivers: dict[Groups, int] = {}
    for event in events_of(table):
        if event.kind is Kind.SUBMIT:
            groups = event.groups or ()
            if groups not in receivers:
                receivers[groups] = len({node for group in groups for node in plan.groups[group]})
            serves = plan.service is not None
            expected += receipts_wanted(receivers[groups], event.label, serves=serves)
        else:
            receipts.note(event)
    return max(0, expected - len(receipts))
