"""A worker judges a run, whole or by parts, and says what that took; run alone, as a program."""

import json
import sys
from pathlib import Path

import pyarrow as pa

from ordercast.judge.columns import STORED
from ordercast.pipeline.traces import list_traces
from ordercast.pipeline.verify import _cut_runs, _judge_runs, _judge_summaries, _sum_up
from ordercast.trace import read_run

KEY = 0x5EED


def rows_to_judge(folder: Path) -> pa.Table:
    """What Spark hands to tasks."""
    return list_traces(folder).select(["run", "folder", "events"])


def judge_by_parts(folder: Path, part_rows: int) -> pa.Table:
    """What the tasks of Spark do one after the other."""
    parts = _cut_runs(iter(rows_to_judge(folder).to_batches()), part_rows)
    return _judge_summaries(pa.Table.from_batches(_sum_up(parts, KEY)), part_rows)


def judge_whole(folder: Path) -> pa.Table:
    """What one task of Spark does."""
    return pa.Table.from_batches(_judge_runs(iter(rows_to_judge(folder).to_batches())))


def peak_bytes() -> int:
    """The most memory that this process had so far; what `getrusage` says may be that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main(folder: Path, part_rows: int) -> None:
    read_run(folder).open_segments()[0].read(STORED, range(1))  # load what is loaded late
    before = peak_bytes()
    verdict = judge_by_parts(folder, part_rows) if part_rows else judge_whole(folder)
    (row,) = verdict.to_pylist()
    print(json.dumps({"taken": peak_bytes() - before, "error": row["error"], "findings": row["findings"]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
