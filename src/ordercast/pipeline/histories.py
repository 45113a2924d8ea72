"""Histories of services at scale: Spark tasks search an order by values, one task for each run and key.

A first pass reads the runs and says how many keys each has. Tasks read the values themselves, as they read
traces, and say whether there is an order. Only where there is none, the driver searches that key again, for
the counterexample.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from time import monotonic
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, IntegerType, StringType, StructField, StructType

from ordercast.core import OrdercastError
from ordercast.judge.histories import Counterexample, Found, History, Judgement, Value, search
from ordercast.judge.histories.transactions import (
    Transaction,
    TransactionJudgement,
    Transactions,
    judge_transactions,
)
from ordercast.pipeline.traces import open_run
from ordercast.scenario.run_history import history_of_stored

_FOLDERS = StructType([StructField("folder", StringType(), False)])
_KEYS = StructType(
    [
        StructField("folder", StringType(), False),
        StructField("place", IntegerType(), False),  # of the key in the history; -1: see `error`
        StructField("operations", IntegerType(), False),
        StructField("model", StringType(), False),
        StructField("error", StringType()),
    ]
)
_SEARCHED = StructType([*_KEYS, StructField("linearizable", BooleanType())])

LIST_MODEL = "list-append"


class Limits(NamedTuple):
    """When a task gives up on a key."""

    seconds: float
    placements: int


class JudgedHistory(NamedTuple):
    """What the tasks found about a run."""

    folder: str
    model: str
    operations: int
    judgement: Judgement | TransactionJudgement
    error: str = ""


def judge_histories(spark: SparkSession, folders: list[str], limits: Limits) -> list[JudgedHistory]:
    """Judge the histories of the runs in these folders, in this order."""
    table = pa.table({"folder": folders}, schema=to_arrow_schema(_FOLDERS))
    keys = spark.createDataFrame(table).repartition(max(1, len(folders))).mapInArrow(_list_keys, _KEYS)
    rows = keys.collect()
    keyed = [row.asDict() for row in rows if row["place"] >= 0]
    listed = pa.Table.from_pylist(keyed, schema=to_arrow_schema(_KEYS))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _search_keys(batches, limits)

    searched = []
    if keyed:
        dealt = spark.createDataFrame(listed).repartition(len(keyed))
        searched = dealt.mapInArrow(work, _SEARCHED).collect()
    errors = {row["folder"]: row["error"] for row in rows if row["error"]}
    models = {row["folder"]: row["model"] for row in rows}
    return [
        JudgedHistory(
            folder,
            models.get(folder, ""),
            sum(row["operations"] for row in rows if row["folder"] == folder),
            Judgement(None) if folder in errors else _put_together(folder, _of(folder, searched), limits),
            errors.get(folder, ""),
        )
        for folder in folders
    ]


def _of(folder: str, rows: list[Any]) -> list[Any]:
    """The rows of a folder, in the order of its keys."""
    return sorted((row for row in rows if row["folder"] == folder), key=lambda row: int(row["place"]))


def _put_together(folder: str, rows: list[Any], limits: Limits) -> Judgement | TransactionJudgement:
    """The judgement on a whole history, from those on its keys. Transactions have no keys by themselves; if
    their order has no cycle, nothing more is to be said."""
    if any(row["model"] == LIST_MODEL for row in rows):
        is_sound = all(row["linearizable"] for row in rows)
        return TransactionJudgement(()) if is_sound else judge_transactions(_transactions(folder))
    for row in rows:
        if row["linearizable"] is False:
            key, found = _search(folder, row["place"], limits)
            return Judgement(False, None if found.stuck is None else Counterexample(key, found.stuck))
    undecided = [row["place"] for row in rows if row["linearizable"] is None]
    if undecided:
        keys = list(_operations(folder).parts())
        return Judgement(None, None, tuple(keys[place] for place in undecided))
    return Judgement(True)


@lru_cache(maxsize=4)
def _history(folder: str) -> History | Transactions:
    return history_of_stored(open_run(folder))


def _operations(folder: str) -> History:
    history = _history(folder)
    assert isinstance(history, History)
    return history


def _transactions(folder: str) -> Sequence[Transaction]:
    history = _history(folder)
    assert isinstance(history, Transactions)
    return history.transactions


def _parts(folder: str) -> Iterator[dict[str, object]]:
    """What is judged by itself: operations by key, and transactions all together."""
    history = _history(folder)
    if isinstance(history, Transactions):
        yield {"place": 0, "model": LIST_MODEL, "operations": len(history.transactions)}
        return
    for place, part in enumerate(history.parts().values()):
        yield {"place": place, "model": history.model.name, "operations": len(part)}


def _list_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The keys of runs."""
    for batch in batches:
        for folder in batch.column("folder").to_pylist():
            try:
                found = [part | {"folder": folder} for part in _parts(folder)]
            except OrdercastError as error:
                nothing: dict[str, object] = {"place": -1, "operations": 0, "model": ""}
                found = [nothing | {"folder": folder, "error": str(error)}]
            yield pa.RecordBatch.from_pylist(found, schema=to_arrow_schema(_KEYS))


def _search_keys(batches: Iterator[pa.RecordBatch], limits: Limits) -> Iterator[pa.RecordBatch]:
    """What a task does with a key of a run."""
    for batch in batches:
        for row in batch.to_pylist():
            found = {"linearizable": _judged(row["folder"], row["place"], row["model"], limits)}
            yield pa.RecordBatch.from_pylist([row | found], schema=to_arrow_schema(_SEARCHED))


def _judged(folder: str, place: int, model: str, limits: Limits) -> bool | None:
    """Whether there is an order of the operations on a key, or of all transactions."""
    if model == LIST_MODEL:
        return judge_transactions(_transactions(folder)).strict_serializable
    return _search(folder, place, limits)[1].linearizable


def _search(folder: str, place: int, limits: Limits) -> tuple[Value, Found]:
    """Search an order of the operations on a key."""
    history = _operations(folder)
    key, operations = list(history.parts().items())[place]
    deadline = monotonic() + limits.seconds
    return key, search(history.model, operations, lambda _: monotonic() < deadline, limits.placements)
