"""Made-up results of cases, for tests of the arithmetic of evaluations."""

from collections.abc import Callable, Mapping, Sequence

from ordercast.experiments import Case, Results
from ordercast.pipeline.cases import CaseResult


def results(cases: Sequence[Case], values: Callable[[Case], Mapping[str, float]]) -> Results:
    """The results that a function makes up for each case."""
    return Results(
        CaseResult(case=case, name=case.name(), status="kept", error=None, values=dict(values(case)))
        for case in cases
    )


def number(case: Case, name: str) -> float:
    """A parameter of a case."""
    return float(case.parameters[name])
