"""Disks that fail below real processes: hosts stop, stay down or come back as new, and keep all promises."""

import pytest

from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.scenario.faults import DAMAGES, Crash, Disk, DiskTrouble, FaultSpec, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import LOST, SAVED, Kind, events_of
from tests.deep import deep_after

VICTIM = 1
FLOW = WorkloadSpec(messages=240, rate_per_s=60)


def with_bad_disk(
    protocol: str, what: DiskTrouble, workload: WorkloadSpec = FLOW, later_ms: int = 0, **options: object
) -> LiveRun:
    """Three receivers with a sender each; the disk of one has a trouble while messages flow, or later."""
    faults: tuple[FaultSpec, ...] = (
        Disk(at_ms=300 + later_ms, host=VICTIM, what=what, for_ms=0 if what in DAMAGES else 300),
        *((Crash(at_ms=400 + later_ms, host=VICTIM),) if what in DAMAGES else ()),
        Restart(at_ms=700 + later_ms, host=VICTIM),
    )
    scenario = Scenario(
        protocol=protocol,
        senders=3,
        colocated=True,
        options=options,
        workload=workload,
        settle_ms=1_000,
        fault=faults,
    )
    run, _ = run_live(scenario)
    return run


def life(run: LiveRun) -> list[tuple[Kind, str | None]]:
    """How the receiver with the bad disk went and came back."""
    ends = (Kind.CRASH, Kind.RECOVER)
    return [(row.kind, row.label) for row in events_of(run.table) if row.node == VICTIM and row.kind in ends]


@pytest.mark.parametrize(
    ("protocol", "what"),
    deep_after(2, [("epto", "wiped"), ("hydra", "wiped"), ("epto", "cut"), ("epto", "lost-writes")]),
)
def test_a_receiver_without_its_state_comes_back_as_new(protocol: str, what: DiskTrouble) -> None:
    run = with_bad_disk(protocol, what, durable=True)
    assert run.violations == []
    back = [label for kind, label in life(run) if kind is Kind.RECOVER]
    assert back
    if what == "wiped":  # a cut may take only pages of the log that are old, and that nobody needs
        assert {*back} == {LOST}
    delivered = [
        row.message for row in events_of(run.table) if row.kind is Kind.DELIVER and row.node == VICTIM
    ]
    assert len(delivered) == len({*delivered}) > 20


@pytest.mark.parametrize("what", deep_after(0, ["wiped", "cut", "lost-writes"]))
def test_a_receiver_that_must_remember_stays_down(what: DiskTrouble) -> None:
    # A write that is lost counts if it was acknowledged, so the host is killed when it writes nothing.
    few = WorkloadSpec(messages=12, rate_per_s=60)
    run = with_bad_disk("atomic_multicast", what, workload=few, later_ms=1_000)
    assert run.violations == []
    assert life(run)[-1] == (Kind.CRASH, None)
    assert {label for kind, label in life(run) if kind is Kind.RECOVER} <= {LOST}


@pytest.mark.parametrize("what", deep_after(1, ["full", "io-error", "read-only"]))
def test_a_host_whose_disk_refuses_writes_stops_and_goes_on_where_it_was(what: DiskTrouble) -> None:
    run = with_bad_disk("atomic_multicast", what)
    assert run.violations == []
    assert life(run) == [(Kind.CRASH, None), (Kind.RECOVER, SAVED)]


@pytest.mark.deep
def test_a_slow_disk_holds_up_and_breaks_nothing() -> None:
    run = with_bad_disk("atomic_multicast", "slow")
    assert run.violations == []
    assert life(run) == []
