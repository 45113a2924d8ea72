"""Lists the traces of a folder: one row per run, simulated or live."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.core import RemoteError
from ordercast.core.time import TIME_OF_DAY
from ordercast.pipeline.schemas import NODES, TRACES
from ordercast.trace import RunDescription, StoredRun, find_runs, read_run
from ordercast.trace.survey import NamedRun, UnreadableRun, survey_folder


class Survey(NamedTuple):
    """The content of a folder: rows of TRACES and of NODES, and the runs that could not be read."""

    traces: pa.Table
    nodes: pa.Table
    unreadable: list[UnreadableRun]


def traces(spark: SparkSession, root: Path) -> DataFrame:
    """TRACES of all runs at or below a folder."""
    return spark.createDataFrame(list_traces(root))


def list_traces(root: Path) -> pa.Table:
    """The same before Spark has started; an error if there is no trace, or one that cannot be read."""
    return traces_table(NamedRun(run.description.run, run) for run in find_runs(root.absolute()))


def traces_table(runs: Iterable[NamedRun]) -> pa.Table:
    """TRACES of these runs."""
    return pa.Table.from_pylist([_row(*named) for named in runs], schema=to_arrow_schema(TRACES))


def survey(root: Path) -> Survey:
    """All runs at or below a folder; what is wrong with some does not hide the others.

    An error if there is none that can be read.
    """
    runs, unreadable = survey_folder(root.absolute())
    if not runs:
        more = f" (and {len(unreadable) - 1} more)" if len(unreadable) > 1 else ""
        raise RemoteError(f"{unreadable[0].reason}{more}")
    nodes = [row for name, run in runs for row in _node_rows(name, run)]
    return Survey(
        traces_table(runs),
        pa.Table.from_pylist(nodes, schema=to_arrow_schema(NODES)),
        unreadable,
    )


def _row(name: str, run: StoredRun) -> dict[str, object]:
    description = run.description
    return {
        "run": name,
        "folder": str(run.folder),
        "protocol": description.protocol,
        "seed": table_seed(description),
        "source": description.source,
        "complete": description.complete,
        "events": run.rows,
        "start_ns": start_of(run),
    }


def table_seed(description: RunDescription) -> int | None:
    """The seed of a run in a table; None for a seed beyond 64 bits with sign, which no column holds."""
    seed = description.seed
    return seed if seed is not None and -(1 << 63) <= seed < 1 << 63 else None


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
