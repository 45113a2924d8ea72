"""Lists the traces of a folder: one row per run, simulated or live."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.core import OrdercastError, RemoteError
from ordercast.core.time import TIME_OF_DAY
from ordercast.pipeline.schemas import NODES, TRACES
from ordercast.trace import StoredRun, find_runs, read_run, run_folders


class DamagedRun(NamedTuple):
    """A run that cannot be read, and why."""

    name: str
    reason: str


class Survey(NamedTuple):
    """The content of a folder: rows of TRACES and of NODES, and the runs that could not be read."""

    traces: pa.Table
    nodes: pa.Table
    damaged: list[DamagedRun]


def traces(spark: SparkSession, root: Path) -> DataFrame:
    """TRACES of all runs at or below a folder."""
    return spark.createDataFrame(list_traces(root))


def list_traces(root: Path) -> pa.Table:
    """The same before Spark has started; an error if there is no trace, or one that cannot be read."""
    rows = [_row(run.description.run, run) for run in find_runs(root.absolute())]
    return pa.Table.from_pylist(rows, schema=to_arrow_schema(TRACES))


def survey(root: Path) -> Survey:
    """All runs at or below a folder; what is wrong with some does not hide the others.

    An error if there is none that can be read.
    """
    root = root.absolute()
    runs, damaged = [], []
    for folder in run_folders(root):
        try:
            run = read_run(folder)
            run.open_segments()
            runs.append(run)
        except OrdercastError as error:
            damaged.append(DamagedRun(_place(folder, root), str(error)))
    if not runs:
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        raise RemoteError(f"{damaged[0].reason}{more}")
    names = _names(runs, root)
    rows = [_row(name, run) for name, run in zip(names, runs, strict=True)]
    nodes = [row for name, run in zip(names, runs, strict=True) for row in _node_rows(name, run)]
    return Survey(
        pa.Table.from_pylist(rows, schema=to_arrow_schema(TRACES)),
        pa.Table.from_pylist(nodes, schema=to_arrow_schema(NODES)),
        damaged,
    )


def _names(runs: Sequence[StoredRun], root: Path) -> list[str]:
    """The name of each run; its path if two runs have the same name because one was copied."""
    counts = Counter(run.description.run for run in runs)
    return [
        run.description.run if counts[run.description.run] == 1 else _place(run.folder, root) for run in runs
    ]


def _place(folder: Path, root: Path) -> str:
    return root.name if folder == root else str(folder.relative_to(root))


def _row(name: str, run: StoredRun) -> dict[str, object]:
    description = run.description
    return {
        "run": name,
        "folder": str(run.folder),
        "protocol": description.protocol,
        "seed": description.seed,
        "source": description.source,
        "complete": description.complete,
        "events": sum(segment.rows for segment in run.open_segments()),
        "start_ns": start_of(run),
    }


def start_of(run: StoredRun) -> int:
    """The start of a run's times: 0, or its first event if clocks were real."""
    times = [time for segment in run.open_segments() if (time := segment.first_ns()) is not None]
    first = min(times, default=0)
    return first if first >= TIME_OF_DAY else 0


def _node_rows(name: str, run: StoredRun) -> list[dict[str, object]]:
    counts: Counter[str] = Counter()
    rows: list[dict[str, object]] = []
    for node in run.description.nodes:
        groups = [group for group, members in run.description.groups.items() if node.id in members]
        about = {"run": name, "node": node.id, "role": node.role, "host": node.host, "groups": groups}
        rows.append(about | {"name": f"{node.role}-{counts[node.role]}"})
        counts[node.role] += 1
    return rows


def open_run(folder: str) -> StoredRun:
    """The run in a folder that a row of TRACES names."""
    return read_run(Path(folder))
