"""The job of a reproduction: takes experiments, and makes claims, figures, tables and a report.

All scenarios of all experiments are one sweep. So a run that several experiments need is simulated once, and
a job that was stopped continues where it stopped. Cases with functions are called separately. Then each
experiment evaluates its own results on the driver, because the results are small.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ordercast.core import SECOND, LocalError
from ordercast.pipeline import schemas
from ordercast.pipeline.cases import Case, CaseResult, Results, sweep_of
from ordercast.pipeline.claims import (
    Claim,
    ClaimResult,
    Measurement,
    broken,
    claim_rows,
    judged,
    unmeasured,
    write_claims,
)
from ordercast.pipeline.figures import figure_rows, write_figures
from ordercast.pipeline.functions import call_functions
from ordercast.pipeline.job import verify_sweep
from ordercast.pipeline.measure import measure, measure_clients
from ordercast.pipeline.progress import Progress, Report, silent
from ordercast.pipeline.sweep import run_sweep
from ordercast.pipeline.tables import write_table
from ordercast.report.build import report
from ordercast.report.figures import Figure
from ordercast.report.stored_tables import Row, StoredTables


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements and figures that an experiment makes from its results."""

    measurements: tuple[Measurement, ...]
    figures: tuple[Figure, ...] = ()


class Work(NamedTuple):
    """An experiment that is ready to run."""

    name: str
    title: str
    source: str
    claims: tuple[str, ...]
    """The ids of the claims that it measures."""
    cases: Sequence[Case]
    evaluate: Callable[[Results], Evaluation]


class Reproduction(NamedTuple):
    """The result of a reproduction."""

    claims: list[ClaimResult]
    report: Path
    broken: int
    """Cases that broke a promise or failed."""


def reproduce(
    spark: SparkSession, works: Sequence[Work], claims: Sequence[Claim], out: Path, progress: Report = silent
) -> Reproduction:
    """Measure the claims with the experiments given, into a folder of their own."""
    start = time.monotonic()
    cases = [case for work in works for case in work.cases]
    sweep = sweep_of("reproduction", cases)
    run_sweep(spark, sweep, out, progress)
    if sweep.rows:
        verify_sweep(spark, out, progress)
        progress(Progress("measuring", 0, 1, 0.0))
        measure(spark, out)
        measure_clients(spark, out)
    found = {result.name: result for result in call_functions(spark, cases, out)}
    stored = stored_values(StoredTables(out))
    results = [Results(_result(case, found, stored) for case in work.cases) for work in works]
    evaluations = [_evaluate(work, each) for work, each in zip(works, results, strict=True)]
    judgements: dict[str, ClaimResult] = {}
    for work, each, evaluation in zip(works, results, evaluations, strict=True):
        judgements |= _judge(work, each, evaluation, claims)
    judged_claims = [judgements.get(claim.id) or unmeasured(claim) for claim in claims]
    drawn = _drawn(works, evaluations)
    rows: dict[str, tuple[StructType, list[dict[str, Any]]]] = {
        "cases": (schemas.CASES, _case_rows(works, results)),
        "experiments": (schemas.EXPERIMENTS, _experiment_rows(works, results)),
        "figures": (schemas.FIGURES, figure_rows(drawn)),
        "claims": (schemas.CLAIMS, claim_rows(claims, judged_claims)),
    }
    for name, (schema, content) in rows.items():
        table = pa.Table.from_pylist(content, schema=to_arrow_schema(schema))
        write_table(spark.createDataFrame(table), out, name, ["place"])
    write_figures(drawn, out)
    write_claims(judged_claims, out, time.monotonic() - start)
    count = sum(len(_broken(each)) for each in results)
    return Reproduction(judged_claims, report(out), count)


def stored_values(tables: StoredTables) -> dict[str, tuple[Row, dict[str, float]]]:
    """Every run with its numbers by name: those of `runs`, its latencies and its rates.

    A run has kept its promises only if both judges say so.
    """
    stored: dict[str, tuple[Row, dict[str, float]]] = {}
    for run in tables.rows("runs"):
        stored[run["run"]] = (run, _numbers(run, ""))
    for verdict in tables.rows("verdicts"):
        run, _ = stored[verdict["run"]]
        if run["status"] == "kept" and (verdict["findings"] or verdict["damage"] or verdict["error"]):
            run |= {"status": "violated", "error": verdict["error"]}
    prefixes = {"latency": "", "rates": "", "client_latency": "client_", "client_rates": "client_"}
    for table, prefix in prefixes.items():
        for row in tables.rows(table):
            stored[row["run"]][1].update(_numbers(row, prefix))
    return stored


def _numbers(row: Row, prefix: str) -> dict[str, float]:
    kept = {name: value for name, value in row.items() if name not in {"place", "seed"}}
    return {f"{prefix}{name}": float(value) for name, value in kept.items() if isinstance(value, int | float)}


def _result(
    case: Case, called: dict[str, CaseResult], stored: dict[str, tuple[Row, dict[str, float]]]
) -> CaseResult:
    name = case.name()
    if case.function:
        return msgspec.structs.replace(called[name], case=case)
    run, values = stored[name]
    return CaseResult(case=case, name=name, status=run["status"], error=run["error"], values=values)


def _broken(results: Results) -> list[CaseResult]:
    return [result for result in results.all if result.status != "kept"]


def _evaluate(work: Work, results: Results) -> Evaluation:
    """The experiment's evaluation; empty if a case has no numbers."""
    if any(result.status == "failed" for result in results.all):
        return Evaluation(measurements=())
    evaluation = work.evaluate(results)
    unknown = [each.claim for each in evaluation.measurements if each.claim not in work.claims]
    if unknown:
        raise LocalError(f"experiment '{work.name}' measures '{unknown[0]}', which is not among its claims")
    return evaluation


def _judge(
    work: Work, results: Results, evaluation: Evaluation, claims: Sequence[Claim]
) -> dict[str, ClaimResult]:
    measured = {each.claim: each for each in evaluation.measurements}
    bad = _broken(results)
    found: dict[str, ClaimResult] = {}
    for claim in claims:
        if claim.id not in work.claims:
            continue
        measurement = measured.get(claim.id)
        if bad:
            why = f"{len(bad)} of {len(results.all)} cases of '{work.name}' broke a promise or failed"
            first = bad[0].error or "see the broken promises in the report"
            found[claim.id] = broken(claim, f"{why}: {bad[0].name}: {first}", measurement)
        elif measurement is None:
            found[claim.id] = unmeasured(claim, f"experiment '{work.name}' did not measure it")
        else:
            found[claim.id] = judged(claim, measurement, results.seeds, _simulated_seconds(results))
    return found


def _simulated_seconds(results: Results) -> float | None:
    """Seconds of virtual time; a function reports its own, if it has any, as `seconds`."""
    durations = [
        result.values.get("duration_ns", result.values.get("seconds", 0.0) * SECOND) for result in results.all
    ]
    return round(sum(durations) / SECOND, 6) if any(durations) else None


def _case_rows(works: Sequence[Work], results: Sequence[Results]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for work, each in zip(works, results, strict=True):
        for result in each.all:
            case = result.case
            row = {"place": len(rows), "experiment": work.name, "case": result.name, "seed": case.seed}
            row |= {"function": case.function or None, "parameters": case.parameters_json()}
            row |= {"status": result.status, "error": result.error}
            records = msgspec.json.encode(result.records).decode()
            rows.append(row | {"values": list(result.values.items()), "records": records})
    return rows


def _experiment_rows(works: Sequence[Work], results: Sequence[Results]) -> list[dict[str, Any]]:
    return [
        {"place": place, "name": work.name, "title": work.title, "source": work.source}
        | {"cases": len(each.all), "seeds": list(each.seeds), "broken": len(_broken(each))}
        for place, (work, each) in enumerate(zip(works, results, strict=True))
    ]


def _drawn(works: Sequence[Work], evaluations: Sequence[Evaluation]) -> list[tuple[str, Figure]]:
    """All figures, with the names of their experiments."""
    return [
        (work.name, figure)
        for work, evaluation in zip(works, evaluations, strict=True)
        for figure in evaluation.figures
    ]
