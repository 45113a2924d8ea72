"""Any folder of runs has a report: live, simulated, copied and damaged ones together."""

import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.judge import verdict
from ordercast.pipeline import schemas
from ordercast.pipeline.folder import report_folder
from ordercast.pipeline.tables import read_table
from ordercast.pipeline.traces import Survey, survey
from ordercast.report.stored_tables import StoredTables
from ordercast.scenario.spec import to_scenario
from ordercast.sim import Scenario, simulate
from ordercast.trace import Kind, events_of, find_runs, read_run
from tests.cli.conftest import Command, ordercast
from tests.live.recording import plan_of, record

__all__ = ["ordercast"]  # a fixture


CLOCK_NS = 1_700_000_000_000_000_000
SCHEMAS = {
    "runs": schemas.RUNS,
    "nodes": schemas.NODES,
    "verdicts": schemas.VERDICTS,
    "latency": schemas.LATENCY,
    "latency_histogram": schemas.HISTOGRAM,
    "point_latency": schemas.POINT_LATENCY,
    "throughput": schemas.THROUGHPUT,
    "rates": schemas.RATES,
    "node_deliveries": schemas.NODE_DELIVERIES,
    "recoveries": schemas.RECOVERIES,
    "activity": schemas.ACTIVITY,
    "window_latency": schemas.WINDOW_LATENCY,
    "node_latency": schemas.NODE_LATENCY,
    "distribution": schemas.DISTRIBUTION,
    "changes": schemas.CHANGES,
}


def crashing(seed: int = 3) -> Scenario:
    """A receiver crashes and comes back, under a load that goes on."""
    faults = [{"kind": "crash", "at_ms": 20, "host": 1}, {"kind": "restart", "at_ms": 60, "host": 1}]
    content = {"protocol": "atomic_multicast", "seed": seed, "senders": 2, "settle_ms": 200, "fault": faults}
    return to_scenario({**content, "workload": {"messages": 200, "rate_per_s": 2000}})


def by_real_clocks(folder: Path) -> None:
    """Make the times of a recorded run those that real clocks would have shown."""
    for path in folder.glob("*.parquet"):
        table = pq.ParquetFile(path).read()
        for name in ("time_ns", "clock_ns", "submitted_ns"):
            moved = pc.add(table[name], pa.scalar(CLOCK_NS, pa.int64()))
            table = table.set_column(table.column_names.index(name), table.schema.field(name), moved)
        pq.write_table(table, path)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A live run, a simulated one and its copy, one with flipped bytes, one that was cut off."""
    root = tmp_path_factory.mktemp("runs")
    run = simulate(crashing())
    by_real_clocks(record(run, plan_of(run), root / "live"))
    simulated = simulate(crashing(4)).write(root / "simulated")
    shutil.copytree(simulated, root / "copied" / simulated.name)
    damaged = simulate(crashing(5)).write(root)
    path = damaged / "events.parquet"
    content = bytearray(path.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 400] = bytes(400)
    path.write_bytes(content)
    cut = simulate(crashing(6)).write(root)
    (cut / "run.json").unlink()
    return root


@pytest.fixture(scope="module")
def surveyed(root: Path) -> Survey:
    return survey(root)


def test_a_survey_names_what_it_cannot_read_and_has_the_rest(root: Path, surveyed: Survey) -> None:
    rows = {row["run"]: row for row in surveyed.traces.to_pylist()}
    live = next(row for row in rows.values() if row["source"] == "live")
    assert live["start_ns"] >= CLOCK_NS and live["seed"] is None
    assert {row["start_ns"] for row in rows.values() if row["source"] == "simulator"} == {0}
    copies = [name for name in rows if name.startswith(("copied/", "simulated/"))]
    assert len(copies) == 2, "two that call themselves the same are named by their places"
    (damaged,) = surveyed.unreadable
    assert damaged.name.startswith("atomic_multicast-6-") and "the run was cut off" in damaged.reason


@pytest.fixture(scope="module")
def reported(_spark_of_session: SparkSession, root: Path, surveyed: Survey) -> Path:
    """The folder of the report."""
    return report_folder(_spark_of_session, surveyed, root, root / "report").parent


def test_the_tables_have_their_schemas(spark: SparkSession, reported: Path) -> None:
    for name, schema in SCHEMAS.items():
        assert read_table(spark, reported, name, schema).columns == schema.names
        assert StoredTables(reported).rows(name), name


def test_a_folder_is_judged_measured_and_shown(root: Path, reported: Path) -> None:
    tables = StoredTables(reported)
    runs = {run["run"]: run for run in tables.rows("runs")}
    failed = [run for run in runs.values() if run["status"] == "failed"]
    assert len(runs) == 5 and len(failed) == 2
    assert any("not a readable Parquet file" in run["error"] for run in failed)
    for run in runs.values():
        if run["status"] == "failed":
            continue
        stored = read_run(root / run["folder"])
        judged = verdict(stored.description, events_of(stored.table())).violations
        assert (run["status"] == "violated") == bool(judged)
        kinds = pc.value_counts(stored.table()["kind"].cast(pa.string())).to_pylist()
        counts = {each["values"]: each["counts"] for each in kinds}
        assert run["source"] == stored.description.source
        assert (run["submitted"], run["delivered"]) == (counts[Kind.SUBMIT], counts[Kind.DELIVER])
        assert 0 < run["duration_ns"] < 10**12, "since the start, not since 1970"
    text = (reported / "report.html").read_text()
    assert text.count("Messages submitted and delivered") >= 3 and "the run was cut off" in text


@pytest.mark.deep
def test_the_tables_count_from_the_start_of_a_live_run(reported: Path, surveyed: Survey) -> None:
    """The same run, simulated and as live hosts wrote it down, has the same crashes and deliveries."""
    live = next(row for row in surveyed.traces.to_pylist() if row["source"] == "live")
    tables = StoredTables(reported)
    found = [row for row in tables.rows("recoveries") if row["run"] == live["run"]]
    kinds = list(dict.fromkeys((row["fault"], row["kind"]) for row in found))
    assert kinds == [(0, "crash"), (1, "restart")]
    crash, restart = (next(row for row in found if row["fault"] == fault) for fault in (0, 1))
    assert crash["dated"] and 0 < crash["at_ns"] <= 20_000_000 < restart["at_ns"] < 100_000_000
    assert msgspec.json.decode(crash["detail"]) == {"kind": "crash", "host": 1}
    delivered = sum(row["events"] for row in tables.rows("activity") if row["run"] == live["run"]
                    and row["kind"] == "deliver")  # fmt: skip
    assert delivered == next(run["delivered"] for run in tables.rows("runs") if run["run"] == live["run"])
    names = {row["name"] for row in tables.rows("nodes") if row["run"] == live["run"]}
    assert {"receiver-0", "receiver-2", "client-0"} <= names


def test_a_report_inside_a_folder_is_no_trace(root: Path, reported: Path, surveyed: Survey) -> None:
    assert reported.is_relative_to(root) and any((reported / "tables").rglob("*.parquet"))
    assert survey(root).unreadable == surveyed.unreadable
    assert survey(root).traces == surveyed.traces


@pytest.mark.deep
@pytest.mark.usefixtures("here")
def test_the_command_reports_on_a_single_run(ordercast: Command, root: Path, tmp_path: Path) -> None:
    (run,) = (root / "simulated").iterdir()
    outcome = ordercast("report", run, "--out", tmp_path / "page", "--master", "local[2]", "--json")
    assert outcome.code == 0, outcome.err
    told = outcome.json()
    assert told["report"] == str(tmp_path / "page" / "report.html")
    assert (told["runs"], told["failed"], told["failures"]) == (1, 0, [])
    assert [found.folder for found in find_runs(run)] == [run], "nothing was put beside the events"
    again = ordercast("report", tmp_path / "page", "--json")
    assert again.json() == told, "from the tables, without the traces"


@pytest.mark.deep
@pytest.mark.usefixtures("here")
def test_the_command_names_what_it_could_not_read(ordercast: Command, root: Path, tmp_path: Path) -> None:
    (cut,), (live,) = root.glob("atomic_multicast-6-*"), (root / "live").iterdir()
    shutil.copytree(cut, tmp_path / "runs" / cut.name)
    alone = ordercast("report", tmp_path / "runs")
    assert alone.code == 2 and "the run was cut off" in alone.err
    shutil.copytree(live, tmp_path / "runs" / live.name)
    outcome = ordercast("report", tmp_path / "runs", "--master", "local[2]")
    assert outcome.code == 1
    assert f"note: {cut.name}: " in outcome.err and "the run was cut off" in outcome.err
    assert outcome.out.strip() == str(tmp_path / "runs" / "report" / "report.html")


def test_what_is_wrong_is_told_before_spark_starts(ordercast: Command, tmp_path: Path) -> None:
    empty = ordercast("report", tmp_path)
    assert empty.code == 2 and "no trace there" in empty.err
    nowhere = ordercast("report", tmp_path / "nowhere")
    assert nowhere.code == 2 and "no such folder" in nowhere.err
    master = ordercast("report", tmp_path, "--master", "nonsense")
    assert master.code == 2 and "is not a Spark master" in master.err
