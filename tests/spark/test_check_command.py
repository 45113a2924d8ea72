"""`ordercast check --master`: the same answers as without it, from Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Command, ordercast
from tests.cli.test_check import (
    Rewrite,
    duplicate,
    forget_column,
    lose,
    rewrite,
    run_folder,
    swap,
    traces,
    truncate,
    unsubmit,
)
from tests.deep import deep_after

__all__ = ["ordercast", "traces"]  # fixtures


@pytest.mark.usefixtures("here")
def test_both_judges_answer_alike(ordercast: Command, traces: Path) -> None:
    for change, seed in ((swap, 1), (duplicate, 2)):
        alone, on_spark = (
            ordercast("check", run_folder(traces, seed), *words, "--json")
            for words in ((), ("--master", "local[2]"))
        )
        assert (alone.code, on_spark.code) == (0, 0)
        assert on_spark.json() | {"altered": [], "out_of_order": 0} == alone.json()
        rewrite(traces, change, seed)
    for words in ((), ("--master", "local[2]")):
        outcome = ordercast("check", traces, *words, "--json")
        found = {(v["run"], v["property"]) for v in outcome.json()["violations"]}
        assert outcome.code == 1
        assert found == {
            (run_folder(traces, 1).name, "total-order"),
            (run_folder(traces, 2).name, "integrity"),
        }


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "found", "node"),
    deep_after(1, [(lose, "agreement", 0), (unsubmit, "integrity", None), (swap, "total-order", 1)]),
)
def test_an_altered_trace_is_found_out(
    ordercast: Command, traces: Path, change: Rewrite, found: str, node: int | None
) -> None:
    rewrite(traces, change)
    outcome = ordercast("check", traces, "--master", "local[2]")
    assert outcome.code == 1
    assert f"{found} violated in {run_folder(traces, 1).name}" in outcome.out
    assert node is None or f"node {node} " in outcome.out or f"nodes {node}" in outcome.out


def mistype(folder: Path) -> None:
    path = folder / "events.parquet"
    table = pq.ParquetFile(path).read()
    index = table.column_names.index("digest")
    words = pa.array(["not a number"] * len(table))
    pq.write_table(table.set_column(index, pa.field("digest", pa.string()), words), path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("damage", "wanted"),
    [
        (truncate, "not a readable Parquet file"),
        (forget_column, "no column digest"),
        (mistype, "column digest has the wrong type"),
    ],
)
def test_a_damaged_trace_is_one_clear_line(
    ordercast: Command, traces: Path, damage: Callable[[Path], None], wanted: str
) -> None:
    damage(run_folder(traces, 1))
    outcome = ordercast("check", traces, "--master", "local[2]", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    assert len(outcome.err.strip().splitlines()) == 1
    assert wanted in outcome.err


def test_what_is_wrong_is_told_before_spark_starts(ordercast: Command, tmp_path: Path, traces: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = ordercast("check", tmp_path / "empty", "--master", "local[2]")
    assert empty.code == 2 and "no trace there" in empty.err
    nobody = ordercast("check", run_folder(traces, 1), "--master", "spark://127.0.0.1:1")
    assert nobody.code == 2 and len(nobody.err.strip().splitlines()) == 1
    assert "no Spark master answers" in nobody.err
