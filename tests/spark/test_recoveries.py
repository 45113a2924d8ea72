"""The time to recover is counted from the fault, for each receiver, and is null where there was none."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from ordercast.core import MILLISECOND, Guarantees, message_id
from ordercast.pipeline.recoveries import recoveries, recoveries_of
from ordercast.pipeline.schemas import RECOVERIES
from ordercast.scenario.faults import Crash, FaultSpec, Heal, Partition, Restart, SetClock
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import (
    Event,
    Kind,
    NodeDescription,
    RunDescription,
    StoredRun,
    build_table,
    find_runs,
    write_run,
)
from tests.spark.frames import stored, traces_frame, types

MS = MILLISECOND


def hand_written(
    folder: Path,
    faults: list[FaultSpec],
    deliveries: list[tuple[int, int, int]],
    source: str = "test",
    lives: Sequence[Event] = (),
) -> StoredRun:
    """A run of receivers 0 and 1, each on a host of its own; deliveries are (node, at, submitted)."""
    events = list(lives)
    for number, sent in enumerate(sorted({sent for _, _, sent in deliveries})):
        message = message_id(2, number)
        events.append(Event(sent * MS, sent * MS, 2, Kind.SUBMIT, message, (0,), None, sent * MS))
        for node, at, submitted in deliveries:
            if submitted == sent:
                events.append(Event(at * MS, at * MS, node, Kind.DELIVER, message, (0,), None, sent * MS))
    events.sort(key=lambda event: event.time_ns)
    scenario = Scenario(protocol="unordered", fault=tuple(faults))
    description = RunDescription(
        run="hand",
        source=source,
        protocol="unordered",
        guarantees=Guarantees(),
        nodes=tuple(NodeDescription(node, "role", node) for node in range(4)),
        groups={0: (0, 1)},
        complete=True,
        scenario=msgspec.to_builtins(scenario),
    )
    write_run(folder, description, build_table("hand", [tuple(event) for event in events]))
    (run,) = find_runs(folder)
    return run


def test_the_crashes_of_a_live_run_are_those_of_its_trace(tmp_path: Path) -> None:
    """A host that records nothing has no date of its death, only one before it."""
    lives = [
        Event(5 * MS, 5 * MS, 1, Kind.CRASH),
        Event(60 * MS, 60 * MS, 1, Kind.RECOVER, label="lost"),
        Event(0, 0, 3, Kind.CRASH),
    ]
    planned: list[FaultSpec] = [Crash(at_ms=9, host=1), SetClock(at_ms=70, host=0, step_us=1)]
    deliveries = [(1, 5, 1), (0, 20, 1), (0, 30, 29), (1, 75, 71), (0, 80, 71)]
    run = hand_written(tmp_path / "hand", planned, deliveries, "live", lives)
    rows = {(row["kind"], row["at_ns"], row["node"]): row for row in recoveries_of(run)}
    assert list(dict.fromkeys((kind, at) for kind, at, _ in rows)) == [
        ("crash", 0),
        ("crash", 5 * MS),
        ("restart", 60 * MS),
        ("clock", 70 * MS),
    ]
    assert rows["restart", 60 * MS, 0]["detail"] == '{"kind":"restart","host":1,"state":"lost"}'
    undated, dated = rows["crash", 0, 0], rows["crash", 5 * MS, 1]
    assert (undated["dated"], undated["recovery_ns"], undated["silence_ns"]) == (False, None, None)
    # The last delivery of the host is what dates its crash, and no sign of life after it.
    assert (dated["dated"], dated["struck"], dated["recovery_ns"]) == (True, True, 70 * MS)
    assert dated["silence_ns"] == 70 * MS
    since = recoveries_of(run, start=5 * MS)
    assert [row["at_ns"] for row in since if row["kind"] == "restart"] == [55 * MS, 55 * MS]


def test_recovery_counts_messages_submitted_after_the_fault(tmp_path: Path) -> None:
    crash = Crash(at_ms=10, host=1)
    run = hand_written(
        tmp_path / "hand",
        [crash],
        # At 12, node 0 delivers what was under way: no recovery yet. The first new one comes at 45.
        [(0, 5, 1), (1, 5, 1), (0, 12, 9), (0, 45, 11), (0, 50, 49), (0, 80, 79)],
    )
    first, second = recoveries_of(run)
    assert first == {
        "fault": 0,
        "kind": "crash",
        "at_ns": 10 * MS,
        "detail": '{"kind":"crash","host":1,"at_ms":10.0}',
        "node": 0,
        "struck": False,
        "dated": True,
        "submitted": 3,
        "recovery_ns": 35 * MS,
        "silence_ns": 33 * MS,  # from 12 to 45; from 50 to 80 is shorter
    }
    assert (second["node"], second["struck"]) == (1, True)
    assert second["recovery_ns"] is None
    assert second["silence_ns"] is None


def test_a_silence_belongs_to_the_fault_in_whose_time_it_begins(tmp_path: Path) -> None:
    faults: list[FaultSpec] = [Partition(at_ms=10, sides=((0,), (1, 2))), Heal(at_ms=100)]
    run = hand_written(
        tmp_path / "hand", faults, [(0, 5, 1), (0, 110, 11), (0, 115, 101), (1, 20, 11), (1, 102, 101)]
    )
    rows = {(row["kind"], row["node"]): row for row in recoveries_of(run)}
    # Nothing came from the partition on until after the heal: the silence is the partition's.
    assert rows["partition", 0]["silence_ns"] == 100 * MS
    assert rows["partition", 0]["recovery_ns"] == 100 * MS
    assert rows["partition", 1]["recovery_ns"] == 10 * MS
    assert rows["heal", 0]["silence_ns"] == 10 * MS
    assert rows["heal", 0]["recovery_ns"] == 15 * MS
    assert rows["heal", 1]["silence_ns"] == 2 * MS
    assert [rows[kind, 0]["struck"] for kind in ("partition", "heal")] == [True, False]


def test_with_nothing_submitted_any_more_nothing_can_recover(tmp_path: Path) -> None:
    run = hand_written(tmp_path / "hand", [SetClock(at_ms=50, host=0, step_us=7)], [(0, 5, 1), (1, 60, 1)])
    rows = recoveries_of(run)
    assert [row["submitted"] for row in rows] == [0, 0]
    assert [row["recovery_ns"] for row in rows] == [None, None]
    assert [row["silence_ns"] for row in rows] == [None, 10 * MS]


def test_recoveries_of_simulated_runs(spark: SparkSession, tmp_path: Path) -> None:
    workload = WorkloadSpec(kind="closed", messages=1_000, timeout_ms=20)
    faults = (Crash(at_ms=10, host=0), Restart(at_ms=200, host=0))
    crashed = Scenario(
        protocol="atomic_multicast", senders=2, workload=workload, fault=faults, seed=7, settle_ms=500
    )
    calm = Scenario(protocol="atomic_multicast", senders=2, workload=workload, seed=8)
    _, folders = stored([crashed, calm], tmp_path)
    frame = recoveries(traces_frame(spark, folders))
    assert types(frame.schema) == types(RECOVERIES)
    rows = {(row["kind"], row["node"]): row for row in frame.collect()}
    assert len(rows) == 2 * 3
    assert {row["run"] for row in rows.values()} == {folders[0].name}
    # The others elect a leader after 25 to 50 ms of silence; the host itself is back after 190.
    for node in (1, 2):
        assert 20 * MS < rows["crash", node]["recovery_ns"] < 150 * MS
        assert rows["crash", node]["silence_ns"] > 20 * MS
    assert rows["crash", 0]["struck"] is True
    assert rows["crash", 0]["recovery_ns"] >= 190 * MS
    assert rows["restart", 0]["recovery_ns"] is not None
