"""Runs of services from disk: their answers are checked by execution, and their values by search."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.trace.values import HISTORY, VALUES
from tests.cli.conftest import Command
from tests.cli.served_runs import served

__all__ = ["served"]  # a fixture


def test_check_executes_the_operations_again(ordercast: Command, served: tuple[Path, Path]) -> None:
    honest, broken = served
    assert ordercast("check", honest).code == 0
    said = ordercast("check", honest.parent, "--json")
    assert said.code == 1
    assert {found["property"] for found in said.json()["violations"]} == {"answers"}
    assert {found["run"] for found in said.json()["violations"]} == {broken.name}


def test_without_values_only_places_are_judged(ordercast: Command, served: tuple[Path, Path]) -> None:
    _, broken = served
    (broken / HISTORY / VALUES).unlink()
    assert ordercast("check", broken).code == 0


def test_values_of_another_run_are_not_those_of_the_trace(
    ordercast: Command, served: tuple[Path, Path]
) -> None:
    honest, _ = served
    path = honest / HISTORY / VALUES
    table = pq.ParquetFile(path).read()
    operations = pa.array([b"", *table["operation"].to_pylist()[1:]], pa.binary())
    pq.write_table(table.set_column(1, table.schema.field(1), operations), path)
    said = ordercast("check", honest)
    assert said.code == 2 and "the history does not have the operation" in said.err


def test_history_judges_a_folder_by_values(ordercast: Command, served: tuple[Path, Path]) -> None:
    honest, broken = served
    said = ordercast("history", honest.parent, "--json")
    assert said.code == 1
    found = {one["file"]: one["linearizable"] for one in said.json()["histories"]}
    assert found == {str(honest): True, str(broken): False}
    told = next(one["counterexample"] for one in said.json()["histories"] if one["counterexample"])
    assert told["operation"]["source"].startswith("message ")


def test_a_run_that_keeps_no_values_has_no_history(ordercast: Command, served: tuple[Path, Path]) -> None:
    honest, _ = served
    (honest / HISTORY / VALUES).unlink()
    said = ordercast("history", honest)
    assert said.code == 2 and "history = true" in said.err
