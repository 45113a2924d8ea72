"""`ordercast check --master`: the same answers as without it, from Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Command, ordercast
from tests.cli.test_check import SWAPPED, duplicate, forget_column, rewrite_run, run_folder, swap, traces
from tests.cli.test_mixed_folder import check_verdicts, mixed

__all__ = ["mixed", "ordercast", "traces"]  # fixtures


@pytest.mark.usefixtures("here")
def test_both_judges_answer_alike(ordercast: Command, traces: Path) -> None:
    for change, seed in ((swap, 1), (duplicate, 2)):
        alone, on_spark = (
            ordercast("check", run_folder(traces, seed), *words, "--json")
            for words in ((), ("--master", "local[2]"))
        )
        assert (alone.code, on_spark.code) == (0, 0)
        assert on_spark.json() | {"out_of_order": 0} == alone.json()
        rewrite_run(traces, change, seed)
    for words in ((), ("--master", "local[2]")):
        outcome = ordercast("check", traces, *words, "--json")
        found = {(v["run"], v["property"]) for v in outcome.json()["violations"]}
        assert outcome.code == 1
        assert found == {
            *((run_folder(traces, 1).name, name) for name in SWAPPED),
            (run_folder(traces, 2).name, "integrity"),
        }


@pytest.mark.usefixtures("here")
def test_every_verdict_is_told(ordercast: Command, mixed: Path) -> None:
    check_verdicts(ordercast, mixed, "--master", "local[2]")


def mistype(folder: Path) -> None:
    path = folder / "events.parquet"
    table = pq.ParquetFile(path).read()
    index = table.column_names.index("digest")
    words = pa.array(["not a number"] * len(table))
    pq.write_table(table.set_column(index, pa.field("digest", pa.string()), words), path)


@pytest.mark.usefixtures("here")
def test_unreadable_traces_are_a_clear_line_each(ordercast: Command, traces: Path) -> None:
    wanted = {forget_column: "no column digest", mistype: "column digest has the wrong type"}
    for seed, damage in enumerate(wanted, 1):
        damage(run_folder(traces, seed))
    outcome = ordercast("check", traces, "--master", "local[2]", "--json")
    assert outcome.code == 2
    lines = outcome.err.strip().splitlines()
    assert [words in line for words, line in zip(wanted.values(), lines, strict=True)] == [True, True]
    assert [run["verdict"] for run in outcome.json()["verdicts"]] == ["unreadable", "unreadable"]


def test_what_is_wrong_is_told_before_spark_starts(ordercast: Command, tmp_path: Path, traces: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = ordercast("check", tmp_path / "empty", "--master", "local[2]")
    assert empty.code == 2 and "no trace there" in empty.err
    nobody = ordercast("check", run_folder(traces, 1), "--master", "spark://127.0.0.1:1")
    assert nobody.code == 2 and len(nobody.err.strip().splitlines()) == 1
    assert "no Spark master answers" in nobody.err
