"""The job of a sweep: scenarios to traces, and to the tables `scenarios`, `runs` and `violations`.

A sweep has its own folder, and `sweep.json` there describes the sweep. A sweep may be stopped at any moment.
When it is started again, it continues and ends with the same tables.
"""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.core import LocalError
from ordercast.judge import Violation
from ordercast.pipeline.progress import Report, silent, watched
from ordercast.pipeline.schemas import FINDING, RUNS, SCENARIOS, VIOLATIONS
from ordercast.pipeline.simulate import basis_of, clear_unfinished, simulate
from ordercast.pipeline.sweep_file import Sweep
from ordercast.pipeline.tables import read_table, write_table

ASKED = "sweep.json"
_LOCK = ".lock"
TASKS_A_CORE = 16
"""Enough tasks per core that no core is idle for long while another runs a last large task."""
RUNS_A_TASK_MAX = 16
MESSAGES_A_TASK = 4000
"""About half a second of simulation: a task costs some milliseconds, and its current run may be lost."""


class Asked(msgspec.Struct, frozen=True):
    """Which sweep a folder belongs to."""

    sweep: str
    runs: int
    digest: str
    """Of all rows of `scenarios`."""


class SweepTables(NamedTuple):
    """The tables of a sweep's folder."""

    scenarios: DataFrame
    runs: DataFrame
    violations: DataFrame


def run_sweep(spark: SparkSession, sweep: Sweep, out: Path, report: Report = silent) -> SweepTables:
    """Run what is not there yet of a sweep into its folder, and write its tables."""
    out = out.absolute()  # the executors have working folders of their own
    with claimed(out, sweep):
        basis = basis_of(sweep.files)
        clear_unfinished(out)
        rows = [row._asdict() for row in sweep.rows]
        table = pa.Table.from_pylist(rows, schema=to_arrow_schema(SCENARIOS))
        write_table(spark.createDataFrame(table), out, "scenarios", ["place"])
        scenarios = read_table(spark, out, "scenarios", SCENARIOS)
        tasks = task_count(len(rows), _messages(sweep), spark.sparkContext.defaultParallelism)
        # Not every file system tells other machines of a lock.
        lock = out / _LOCK if (spark.sparkContext.master or "").startswith("local") else None
        simulated = simulate(scenarios, out, tasks=tasks, basis=basis, lock=lock).persist()
        try:
            with watched(spark.sparkContext, "simulating", len(rows), report):
                simulated.count()
            write_table(simulated.select(*RUNS.names), out, "runs", ["place"])
            write_table(_violations(simulated), out, "violations", ["run", "judge", "step"])
        finally:
            simulated.unpersist()
    return sweep_tables(spark, out)


def sweep_tables(spark: SparkSession, out: Path) -> SweepTables:
    """The tables of a sweep that came to its end."""
    return SweepTables(
        read_table(spark, out, "scenarios", SCENARIOS),
        read_table(spark, out, "runs", RUNS),
        read_table(spark, out, "violations", VIOLATIONS),
    )


SHOWN_MAX = 50
"""How many failures and findings an outcome lists; the tables have all."""


class SweepOutcome(msgspec.Struct, frozen=True):
    """The main numbers of a sweep, and its first failures and violations."""

    runs: int
    protocols: dict[str, dict[str, int]]
    """Runs by protocol and status."""
    failures: list[tuple[str, str]]
    """Runs that raised, and what."""
    findings: int
    violations: list[tuple[str, Violation]]

    def count(self, status: str) -> int:
        """Runs of this status."""
        return sum(counts.get(status, 0) for counts in self.protocols.values())


def outcome_of(tables: SweepTables) -> SweepOutcome:
    """The outcome of a sweep."""
    counted = tables.runs.groupBy("protocol", "status").count().orderBy("protocol", "status").collect()
    protocols: dict[str, dict[str, int]] = {}
    for protocol, status, count in counted:
        protocols.setdefault(protocol, {})[status] = count
    failed = tables.runs.where("status = 'failed'").orderBy("place").select("run", "error")
    order = ("run", "judge", "step", "property", "detail")
    found = tables.violations.orderBy(*order)
    return SweepOutcome(
        sum(row["count"] for row in counted),
        protocols,
        [(run, error) for run, error in failed.take(SHOWN_MAX)],
        tables.violations.count(),
        [(row["run"], _violation(row)) for row in found.take(SHOWN_MAX)],
    )


def _violation(row: Row) -> Violation:
    return msgspec.convert({name: row[name] for name in FINDING.names}, Violation)


def task_count(runs: int, messages: int, cores: int) -> int:
    """Into how many tasks to deal runs with so many messages in all; small runs share one."""
    by_size = MESSAGES_A_TASK * runs // max(1, messages)
    by_number = runs // (TASKS_A_CORE * cores)
    return max(1, -(-runs // max(1, min(by_size, by_number, RUNS_A_TASK_MAX))))


class _Workload(msgspec.Struct):
    messages: int


class _Load(msgspec.Struct):
    """The part of a scenario that tells how much work a run is."""

    workload: _Workload


def _messages(sweep: Sweep) -> int:
    decoder = msgspec.json.Decoder(_Load)
    return sum(decoder.decode(row.scenario).workload.messages for row in sweep.rows)


@contextmanager
def claimed(out: Path, sweep: Sweep) -> Iterator[None]:
    """Lock the folder for this process and this sweep."""
    wanted = Asked(sweep.name, len(sweep.rows), _digest(sweep))
    try:
        if out.exists() and not out.is_dir():
            raise LocalError(f"{out}: not a folder")
        if out.is_dir() and any(out.iterdir()) and not (out / _LOCK).exists():
            raise LocalError(f"{out}: this folder has other files; a sweep needs its own folder")
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / _LOCK).open("w")
    except OSError as error:
        raise LocalError(f"cannot use the folder {out}: {error.strerror or error}") from error
    with lock:
        try:
            # The system releases the lock when this process ends for any reason.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LocalError(f"{out}: another sweep is running in this folder") from None
        _sign(out / ASKED, wanted)
        yield


def _sign(path: Path, wanted: Asked) -> None:
    """Write which sweep the folder belongs to, or check that it belongs to this one."""
    if path.exists():
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Asked)
        except (OSError, msgspec.MsgspecError) as error:
            raise LocalError(f"{path}: not a valid description of a sweep: {error}") from error
        if found != wanted:
            raise LocalError(
                f"{path.parent}: this folder belongs to another sweep, '{found.sweep}' with {found.runs} "
                "runs, or to an older version of this one; choose another folder"
            )
        return
    try:
        partial = path.with_name(f".{path.name}")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(wanted), indent=2))
        partial.replace(path)
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error.strerror}") from error


def _digest(sweep: Sweep) -> str:
    digest = hashlib.sha256()
    for row in sweep.rows:
        digest.update(msgspec.json.encode(row))
    return digest.hexdigest()


def _violations(simulated: DataFrame) -> DataFrame:
    """A row for every finding of the oracles."""
    each = simulated.select(
        "run", "protocol", "seed", f.lit("oracles").alias("judge"), f.explode("findings").alias("one")
    )
    return each.select(
        "run", "protocol", "seed", "judge", *(f.col("one")[name].alias(name) for name in FINDING.names)
    )
