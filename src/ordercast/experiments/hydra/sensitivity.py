"""Experiments on the testbed, and how much each claim depends on the testbed's two free numbers.

Every experiment runs with the published numbers (`calibration.py`), which decide its claims. It runs again
with a few other numbers, smaller: one seed, fewer messages, and only the points that claims need. What its
claims would be with these is a figure and a table of the report, and in the notes. It decides nothing.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.hydra.calibration import PUBLISHED, Hardware
from ordercast.experiments.published import claim_of
from ordercast.report.figures import Axis, Curve, Figure, Point


class Effort(msgspec.Struct, frozen=True):
    """How much is run for an experiment."""

    seeds: int
    messages: int
    """Counted for each load, at least."""
    thorough: bool
    """All points of the figures and all systems, or only those that claims need."""


FULL, QUICK, SMALL = Effort(2, 1_000, True), Effort(1, 1_000, False), Effort(1, 600, False)
GRID = (
    PUBLISHED,
    Hardware(200, PUBLISHED.link_us),
    Hardware(1_000, PUBLISHED.link_us),
    Hardware(200, 1.3),
)
"""First packets become dearer, then the link longer. A packet of 1 us was the testbed's before the published
numbers were found; the last ones make the paper's 3 us of half a round trip."""
QUICK_GRID = (GRID[0], GRID[-1])

Cases = Callable[[Effort], Sequence[Case]]
Evaluate = Callable[[Results], Evaluation]
Swept = dict[Hardware, dict[str, float]]
"""What was measured for each claim."""


def on_testbed(
    *, name: str, title: str, source: str, claims: tuple[str, ...], cases: Cases, evaluate: Evaluate
) -> Experiment:
    """An experiment with the published numbers, and with those of the grid."""
    return Experiment(
        name=name,
        title=title,
        source=source,
        claims=claims,
        cases=partial(_all_cases, cases),
        evaluate=partial(_evaluate_all, evaluate, name, title),
    )


def _all_cases(cases: Cases, setup: Setup) -> list[Case]:
    first, *others = QUICK_GRID if setup.quick else GRID
    found = placed(cases(QUICK if setup.quick else FULL), first)
    for hardware in others:
        found += placed(cases(SMALL), hardware)
    return found


def placed(cases: Sequence[Case], hardware: Hardware) -> list[Case]:
    """The cases on a testbed with these numbers."""
    numbers = msgspec.structs.asdict(hardware)
    return [msgspec.structs.replace(case, parameters=case.parameters | numbers) for case in cases]


def _evaluate_all(evaluate: Evaluate, name: str, title: str, results: Results) -> Evaluation:
    found = {hardware: results.where(**msgspec.structs.asdict(hardware)) for hardware in GRID}
    evaluations = {hardware: evaluate(each) for hardware, each in found.items() if each.all}
    swept = {hardware: _values(evaluation) for hardware, evaluation in evaluations.items()}
    main = evaluations[PUBLISHED]
    return Evaluation(
        measurements=tuple(_told(each, swept) for each in main.measurements),
        figures=(*main.figures, _figure(name, title, swept)),
    )


def _values(evaluation: Evaluation) -> dict[str, float]:
    return {each.claim: each.value for each in evaluation.measurements}


def _told(measured: Measurement, swept: Swept) -> Measurement:
    """The measurement with the others in its note."""
    others = ", ".join(
        f"{hardware.packet_ns} ns and {hardware.link_us:.4g} us: {values[measured.claim]:.3g}"
        for hardware, values in swept.items()
        if hardware != PUBLISHED
    )
    return msgspec.structs.replace(measured, note=f"{measured.note}; with packets and links of {others}")


def _figure(name: str, title: str, swept: Swept) -> Figure:
    """A curve for each claim and latency of a link, with its numbers for a table."""
    links = dict.fromkeys(hardware.link_us for hardware in swept)
    return Figure(
        id=f"{name}-sensitivity",
        title=f"{title}: sensitivity to the cost of a packet and of a link",
        caption=f"The testbed has packets of {PUBLISHED.packet_ns} ns and links of {PUBLISHED.link_us:.4g} "
        "us, which decide the claims. All other points are smaller runs: one seed and fewer messages.",
        x=Axis(label="CPU time of a packet (ns)", scale="log"),
        y=Axis(label="measured / published"),
        curves=tuple(_curve(claim, link, swept) for claim in swept[PUBLISHED] for link in links),
    )


def _curve(claim: str, link_us: float, swept: Swept) -> Curve:
    known = claim_of(claim)
    values = {
        hardware.packet_ns: found[claim] for hardware, found in swept.items() if hardware.link_us == link_us
    }
    band = {"published": known.published, "accepted from": known.accept_low, "to": known.accept_high}
    return Curve(
        label=f"{claim}, link {link_us:.4g} us",
        points=tuple(Point(float(packet), value / known.published) for packet, value in values.items()),
        numbers=band | {f"packet {packet} ns": value for packet, value in values.items()},
    )
