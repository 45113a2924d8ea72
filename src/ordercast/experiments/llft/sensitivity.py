"""Experiments on the testbed, and how much each claim depends on the testbed's two free numbers.

Every experiment runs with the published numbers (`calibration.py`), which decide its claims. It runs again
with a few other numbers, smaller, for the notes.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.llft.calibration import GRID, PUBLISHED, QUICK_GRID, Costs

PAPER = "LLFT (Zhao, Melliar-Smith, Moser)"
MODEL = (
    f"Model: a datagram or a segment costs {PUBLISHED.packet_ns / 1e3:.3g} us of CPU in or out, a link takes"
    f" {PUBLISHED.link_us:.3g} us besides the bytes at 1 Gb/s, and the switch copies multicasts."
)


class Amount(msgspec.Struct, frozen=True):
    """How much is run for an experiment."""

    seeds: int
    calls: int
    """Counted for each load, at least."""
    thorough: bool
    """All points of the figures, or only those that claims need."""
    loads: tuple[int, ...]
    """Numbers of clients for the figure of throughput, which no claim needs."""


FULL = Amount(3, 200, True, (1, 2, 4, 8, 16, 32, 64))
QUICK, SMALL = Amount(2, 100, False, (1, 8, 32)), Amount(1, 100, False, ())

Cases = Callable[[Amount], Sequence[Case]]
Evaluate = Callable[[Results], Evaluation]


def on_testbed(
    *, name: str, title: str, source: str, claims: tuple[str, ...], cases: Cases, evaluate: Evaluate
) -> Experiment:
    """An experiment with the published numbers, and with those of the grid."""
    return Experiment(
        name=name,
        title=title,
        source=f"{PAPER}, {source}",
        claims=claims,
        cases=partial(_all_cases, cases),
        evaluate=partial(_evaluate_all, evaluate),
    )


def _all_cases(cases: Cases, setup: Setup) -> list[Case]:
    first, *others = QUICK_GRID if setup.quick else GRID
    found = _placed(cases(QUICK if setup.quick else FULL), first)
    for costs in others:
        found += _placed(cases(SMALL), costs)
    return found


def _placed(cases: Sequence[Case], costs: Costs) -> list[Case]:
    """The cases on a testbed with these numbers."""
    numbers = msgspec.structs.asdict(costs)
    return [msgspec.structs.replace(case, parameters=case.parameters | numbers) for case in cases]


def _evaluate_all(evaluate: Evaluate, results: Results) -> Evaluation:
    found = {costs: results.where(**msgspec.structs.asdict(costs)) for costs in GRID}
    main = evaluate(found[PUBLISHED])
    others = {
        costs: {each.claim: each.value for each in evaluate(there).measurements}
        for costs, there in found.items()
        if there.all and costs != PUBLISHED
    }
    measurements = tuple(_told(each, others) for each in main.measurements)
    return Evaluation(measurements=measurements, figures=main.figures)


def _told(measured: Measurement, others: dict[Costs, dict[str, float]]) -> Measurement:
    """The measurement with the others in its note."""
    said = ", ".join(
        f"{costs.packet_ns / 1e3:.3g} and {costs.link_us:.3g} us: {values[measured.claim]:.4g}"
        for costs, values in others.items()
    )
    return msgspec.structs.replace(measured, note=f"{measured.note}; with packets and links of {said}")
