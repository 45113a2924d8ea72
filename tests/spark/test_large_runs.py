"""A run that does not fit into a worker's memory is judged by its parts, or refused with a clear line."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.traces import PROMISED, make_table, write_trace
from ordercast.core import Agreement, Causality, Gaps
from ordercast.pipeline import free_memory, verify
from ordercast.pipeline.free_memory import free_bytes
from ordercast.trace import Kind, read_run, write_run
from tests.spark.small_worker import judge_by_parts

MESSAGES = 60_000
ROWS_A_GROUP = 15_000


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return numbered(tmp_path / "small", 500, 100)


def numbered(folder: Path, messages: int, rows_a_group: int) -> Path:
    """A run of six times so many events as Hydra leaves them: each delivery has the number of its message."""
    write_trace(folder.parent, folder.name, 0, seed=1)
    promised = msgspec.structs.replace(
        PROMISED, agreement=Agreement.NOTIFIED, causality=Causality.NONE, gaps=Gaps.NOTIFIED, uniform=False
    )
    description = msgspec.structs.replace(read_run(folder).description, guarantees=promised)
    write_run(folder, description, with_numbers(make_table(folder.name, messages, seed=1)))
    return cut(folder, rows_a_group)


def with_numbers(table: pa.Table) -> pa.Table:
    """Each delivery gets the clock of its stamp as number."""
    clocks = table["stamp_clock"].combine_chunks()
    numbered = pc.is_valid(clocks).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(numbered)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(
        pa.array(offsets), clocks.drop_null(), mask=pa.array(~numbered), type=pa.list_(pa.int64())
    )
    at = table.column_names.index("numbers")
    return table.set_column(at, table.schema.field("numbers"), lists)


def cut(folder: Path, rows_a_group: int) -> Path:
    """Give the run small row groups."""
    path = folder / "events.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=rows_a_group)
    return folder


def taken_by(folder: Path, part_rows: int) -> int:
    """The memory that a worker takes to judge a run that kept its promises."""
    words = [sys.executable, "-m", "tests.spark.small_worker", str(folder), str(part_rows)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert (answer["error"], answer["findings"]) == (None, [])
    return int(answer["taken"])


def test_a_run_with_numbers_needs_the_memory_of_a_part_only(tmp_path: Path) -> None:
    run = numbered(tmp_path / "run", MESSAGES, ROWS_A_GROUP)
    assert 3 * taken_by(run, ROWS_A_GROUP) < taken_by(run, 0)


def broken(folder: Path, column: str, value: object) -> Path:
    """The same run, with another value in the row of a delivery."""
    run = read_run(folder)
    table = run.table()
    row = table["kind"].to_pylist().index(str(Kind.DELIVER), len(table) // 2)
    values = table[column].to_pylist()
    values[row] = value
    at = table.column_names.index(column)
    table = table.set_column(
        at, table.schema.field(column), pa.array(values, table.schema.field(column).type)
    )
    write_run(folder, run.description, table)
    return cut(folder, 100)


def judged(folder: Path) -> tuple[str, set[str]]:
    """Why the run could not be judged, and the properties that it breaks."""
    (row,) = judge_by_parts(folder, 100).to_pylist()
    return row["error"] or "", {found["property"] for found in row["findings"]}


def give_memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(verify, "free_bytes", lambda: free)


def test_a_run_that_must_be_judged_whole_is_refused_if_there_is_too_little_memory(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(small, "numbers", [5])
    give_memory(monkeypatch, 1_000_000)
    error, found = judged(small)
    assert "all its 3000 events together, because the numbers of a lane are not regular" in error
    assert "about 0.0014 GB of memory, and the task may take 0.001 GB" in error
    assert not found
    give_memory(monkeypatch, 1 << 30)
    assert judged(small) == ("", {"stamp", "stamp-owner", "drop-detection"})


def test_what_an_excerpt_shows_is_told_although_there_is_too_little_memory_for_the_rest(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(small, "digest", 7)
    assert judged(small) == ("", {"integrity"})
    give_memory(monkeypatch, 1_000_000)
    assert judged(small) == ("", {"integrity"})


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 800 kB\n")
    monkeypatch.setattr(free_memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "CGROUP", tmp_path)
    assert free_bytes() == 800 * 1024
    (tmp_path / "memory.current").write_text("100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes() == 800 * 1024
    (tmp_path / "memory.max").write_text("150000\n")
    assert free_bytes() == 50_000
    (tmp_path / "memory.max").write_text("50000\n")
    assert free_bytes() == 0
    (tmp_path / "meminfo").unlink()
    (tmp_path / "memory.max").unlink()
    assert free_bytes() is None
