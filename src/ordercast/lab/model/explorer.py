"""All interleavings of small runs, on the real code.

The specification says what Hydra must do; the explorer checks whether the implementation does it. Both check
the same properties (`explorer_hydra_properties`). HydraPaxos has no specification; its runs are explored
alone.
"""

from collections.abc import Iterator
from time import perf_counter

from ordercast.core import LocalError
from ordercast.lab.model import explorer_hydra, explorer_hydra_paxos
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_search import Outcome, Search
from ordercast.lab.model.result import HOLDS, Result

CASES = {"hydra": explorer_hydra, "hydra_paxos": explorer_hydra_paxos}
"""Protocols whose small runs can be explored."""


def explore_all(protocol: str, deep: bool = False) -> Iterator[Result]:
    """Explore the small runs of a protocol, one after the other; with `deep`, the larger ones too."""
    if protocol not in CASES:
        raise LocalError(f"no small runs of {protocol} can be explored; those of {', '.join(CASES)} can")
    cases = CASES[protocol].quick()
    if deep:
        cases += CASES[protocol].deep()
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
