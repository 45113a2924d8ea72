"""All interleavings of small runs, on the real code.

The specification says what Hydra must do; the explorer checks whether the implementation does it. Both check
the same properties (`explorer_hydra_properties`).
"""

from collections.abc import Iterator
from time import perf_counter

from ordercast.lab.model import explorer_hydra
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_search import Outcome, Search
from ordercast.lab.model.result import HOLDS, Result


def explore_all(deep: bool = False) -> Iterator[Result]:
    """Explore the small runs of Hydra, one after the other; with `deep`, the larger ones too."""
    cases = explorer_hydra.quick()
    if deep:
        cases += explorer_hydra.deep()
    return map(explore, cases)


def explore(case: Case) -> Result:
    """Explore one case. An unfinished search counts as failed."""
    started = perf_counter()
    outcome = Search(case).run()
    return Result(
        name=case.name,
        shows=case.shows,
        states=outcome.states,
        seconds=perf_counter() - started,
        expected=HOLDS,
        found=outcome.fault or HOLDS,
        detail=_detail(outcome),
    )


def _detail(outcome: Outcome) -> str:
    steps = "".join(f"\n{number}. {step}" for number, step in enumerate(outcome.steps, 1))
    return (
        f"{'all' if outcome.complete else 'not all'} states: {outcome.transitions} transitions, made of"
        f" {outcome.executed} different steps of the code; {outcome.endings} ends{steps}"
    )
