"""Made-up results of cases, for tests of the arithmetic of evaluations."""

from collections.abc import Callable, Mapping, Sequence

from ordercast.experiments import Case, Results
from ordercast.pipeline.cases import CaseResult, Record


def results(
    cases: Sequence[Case],
    values: Callable[[Case], Mapping[str, float]],
    records: Callable[[Case], list[Record]] = lambda case: [],
) -> Results:
    """The results that a function makes up for each case, and records if another makes them up."""
    return Results(
        CaseResult(
            case=case,
            name=case.name(),
            status="kept",
            error=None,
            values=dict(values(case)),
            records=records(case),
        )
        for case in cases
    )


def loads(case: Case, count: int, rate: float, wait_ns: float) -> list[Record]:
    """Records of a case: clients double from one for each group, rates grow up to the last load but one."""
    first = int(case.parameters.get("groups") or case.arguments.get("groups") or 1)
    return [
        {
            "clients": first << load,
            "messages_per_s": rate / 2 ** max(0, count - 2 - load),
            "p50_ns": wait_ns * 2**load,
            "mean_ns": wait_ns * 2**load,
            "seconds": 0.001,
        }
        for load in range(count)
    ]


def number(case: Case, name: str) -> float:
    """A parameter of a case."""
    return float(case.parameters[name])
