"""Calls the functions that cases name, each in a Spark task, and never repeats a finished call.

Each result is kept in its own file below `<out>/calls`. The file appears there by a rename and names the
version of the code that made it. So a job that was stopped continues where it stopped, and a job with changed
code starts from the beginning.
"""

import hashlib
import importlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from ordercast.core import LocalError, exception_text
from ordercast.pipeline.cases import Case, CaseResult, CaseValues
from ordercast.pipeline.package import PACKAGE

CALLS = "calls"
_ROWS = "name string, outcome binary"


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave."""

    basis: str
    values: CaseValues = CaseValues(numbers={})
    error: str | None = None


def call_functions(spark: SparkSession, cases: Sequence[Case], out: Path) -> list[CaseResult]:
    """The results of the cases that name a function, in their order."""
    wanted = {case.name(): case for case in cases if case.function}
    if not wanted:
        return []
    folder = out / CALLS
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"cannot write to {folder}: {error.strerror or error}") from error
    heaviest_first = sorted(wanted.items(), key=lambda item: -item[1].weight)
    rows = [(place, name, msgspec.json.encode(case)) for place, (name, case) in enumerate(heaviest_first)]
    frame = spark.createDataFrame(rows, "place int, name string, case binary")
    one_by_one = frame.repartitionByRange(len(rows), "place")  # tasks begin in the order of their ranges
    called = one_by_one.mapInArrow(_CallTask(str(folder.absolute()), source_digest()), _ROWS).collect()
    outcomes = {row["name"]: msgspec.json.decode(bytes(row["outcome"]), type=CallOutcome) for row in called}
    return [_result(case, name, outcomes[name]) for name, case in wanted.items()]


def _result(case: Case, name: str, outcome: CallOutcome) -> CaseResult:
    status = "failed" if outcome.error is not None else "kept"
    return CaseResult(
        case=case,
        name=name,
        status=status,
        error=outcome.error,
        values=outcome.values.numbers,
        records=outcome.values.records,
    )


def source_digest() -> str:
    """A digest of all our code: a function may use any of it."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class _CallTask:
    """What a task does."""

    def __init__(self, folder: str, basis: str) -> None:
        self._folder = folder
        self._basis = basis

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                case = msgspec.json.decode(row["case"], type=Case)
                outcome = msgspec.json.encode(self._outcome(row["name"], case))
                yield pa.RecordBatch.from_pydict({"name": [row["name"]], "outcome": [outcome]})

    def _outcome(self, name: str, case: Case) -> CallOutcome:
        path = Path(self._folder) / f"{name}.json"
        try:
            found = msgspec.json.decode(path.read_bytes(), type=CallOutcome)
        except (OSError, msgspec.MsgspecError):
            found = None
        if found is not None and found.basis == self._basis:
            return found
        try:
            outcome = CallOutcome(basis=self._basis, values=call(case))
        except Exception as error:
            # A failure is not kept: without memory or a file now, the call may succeed the next time.
            return CallOutcome(basis=self._basis, error=exception_text(error))
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_bytes(msgspec.json.encode(outcome))
        partial.replace(path)
        return outcome


def call(case: Case) -> CaseValues:
    """Call the function of a case, here and now; the numbers that it returns must be finite."""
    module, _, name = case.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    returned: CaseValues | dict[str, Any] = function(**case.parameters, **case.arguments, seed=case.seed)
    told = returned if isinstance(returned, CaseValues) else CaseValues(numbers=returned)
    numbers = {str(key): float(value) for key, value in told.numbers.items()}
    for key, value in numbers.items():
        if not math.isfinite(value):
            raise LocalError(f"{case.function} returned {value} as '{key}'; it must be a finite number")
    return CaseValues(numbers=numbers, records=told.records)
