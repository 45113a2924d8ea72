"""EpTO under churn, with Cyclon in place of a list of all processes, and with loss (section 6, Figures 8-10).

500 processes, global clock, 5% broadcasts. The paper's text does not say how high its churn is (larger by far
than what is seen in real systems). Churn here is 1, 5 and 10% of the processes in every round's time, each
leaver replaced by somebody new. In the authors' world K is the same with and without churn and loss, and
Cyclon is theirs; with random phases K is that of Lemma 7, and Cyclon is the one that users get. A view still
holds processes that have left, and lacks those that have just come.

A process that stayed was there before the first broadcast, and until the others had delivered an event: with
a tenth leaving in each round, hardly anybody is there to the end. What newcomers lack is counted by itself,
and the note says how much it is; it says too how many holes there are as the authors' program counts them,
which makes no difference between those that stayed and newcomers. The paper looks at processes "that remained
in the system long enough", and says itself that new ones may take long to appear in the views of others.
"""

from ordercast.experiments.epto.results import (
    HIGH,
    by_world,
    compared,
    counted,
    distribution,
    ratios,
    seeds,
    side_by_side,
    typical,
)
from ordercast.experiments.epto.runs import run_case
from ordercast.experiments.epto.worlds import AUTHORS, RANDOM, WORLDS, World
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.report.figures import Curve

PROCESSES = 500
CHURN = (0.0, 0.01, 0.05, 0.1)
LOSS = (0.0, 0.01, 0.05, 0.1)
CHURN_CLAIM, CYCLON_CLAIM, LOSS_CLAIM = "epto.churn", "epto.cyclon", "epto.loss10"
PAPER = "EpTO (Middleware 2015), section 6"
SETUP = f"{PROCESSES} processes, global clock, 5% broadcasts."


def cases_churn(setup: Setup) -> list[Case]:
    """Figure 8."""
    return [
        run_case(setup, seed, world=world, processes=PROCESSES, churn=churn)
        for world in WORLDS
        for churn in _some(setup, CHURN)
        for seed in seeds(setup)
    ]


def cases_cyclon(setup: Setup) -> list[Case]:
    """Figure 9, and Figure 8 to compare with."""
    sampled = [
        run_case(setup, seed, world=world, processes=PROCESSES, churn=churn, sampling="cyclon")
        for world in WORLDS
        for churn in _some(setup, CHURN)
        for seed in seeds(setup)
    ]
    return [*sampled, *cases_churn(setup)]


def cases_loss(setup: Setup) -> list[Case]:
    """Figure 10."""
    return [
        run_case(setup, seed, world=world, processes=PROCESSES, loss=loss)
        for world in WORLDS
        for loss in _some(setup, LOSS)
        for seed in seeds(setup)
    ]


def _some(setup: Setup, shares: tuple[float, ...]) -> tuple[float, ...]:
    return (shares[0], shares[-1]) if setup.quick else shares


def evaluate_churn(results: Results) -> Evaluation:
    """Holes, and delays by churn."""
    figures = side_by_side("8", "Delivery delay under churn", SETUP, results, _by_churn)
    notes = {world: _delays(each, "churn") for world, each in by_world(results).items()}
    return Evaluation(measurements=(_counted_in_both(CHURN_CLAIM, results, notes),), figures=figures)


def evaluate_cyclon(results: Results) -> Evaluation:
    """Holes, and delays by churn, with how much longer they are than from a full list."""
    sampled, full = results.where(sampling="cyclon"), results.where(sampling="uniform")
    figures = side_by_side("9", "Delivery delay under churn with Cyclon", SETUP, sampled, _by_churn)
    notes = {}
    for world, each in by_world(sampled).items():
        longer = [
            f"at {float(churn):.0%} {typical(of_churn) / typical(full.where(world=world, churn=churn)):.2f}"
            for churn, of_churn in each.by("churn").items()
        ]
        notes[world] = f"{_delays(each, 'churn')}; medians over those without Cyclon: {', '.join(longer)}"
    return Evaluation(measurements=(_counted_in_both(CYCLON_CLAIM, sampled, notes),), figures=figures)


def evaluate_loss(results: Results) -> Evaluation:
    """The ratio of the medians, and delays by loss."""
    figures = side_by_side("10", "Delivery delay with loss", SETUP, results, _by_loss)
    found = {
        world: ratios(each.where(loss=LOSS[-1]), each.where(loss=LOSS[0]))
        for world, each in by_world(results).items()
    }
    notes = {world: _delays(each, "loss") for world, each in by_world(results).items()}
    other = compared(LOSS_CLAIM, found[RANDOM], notes[RANDOM])
    note = f"{notes[AUTHORS]}; {RANDOM}: {other.value:.3f}, {other.note}"
    return Evaluation(measurements=(compared(LOSS_CLAIM, found[AUTHORS], note),), figures=figures)


def _counted_in_both(claim: str, results: Results, notes: dict[World, str]) -> Measurement:
    """Holes in the authors' world, with those of random phases in the note."""
    other = counted(claim, results.where(world=RANDOM), note=notes[RANDOM])
    note = f"{notes[AUTHORS]}; {RANDOM}: {other.value:.0f} holes, {other.note}"
    return counted(claim, results.where(world=AUTHORS), note=note)


def _by_churn(results: Results) -> list[Curve]:
    return [distribution(f"churn {float(churn):.0%}", each) for churn, each in results.by("churn").items()]


def _by_loss(results: Results) -> list[Curve]:
    return [distribution(f"loss {float(loss):.0%}", each) for loss, each in results.by("loss").items()]


def _delays(results: Results, parameter: str) -> str:
    """Medians and tails by share."""
    said = (
        f"{typical(each):.0f} and {typical(each, HIGH):.0f} at {float(share):.0%}"
        for share, each in results.by(parameter).items()
    )
    return f"median delay and 99th percentile: {', '.join(said)}"


EXPERIMENTS = (
    Experiment(
        name="epto-8",
        title="Churn",
        source=f"{PAPER}, Figure 8",
        claims=(CHURN_CLAIM,),
        cases=cases_churn,
        evaluate=evaluate_churn,
    ),
    Experiment(
        name="epto-9",
        title="Churn, with Cyclon",
        source=f"{PAPER}, Figure 9",
        claims=(CYCLON_CLAIM,),
        cases=cases_cyclon,
        evaluate=evaluate_cyclon,
    ),
    Experiment(
        name="epto-10",
        title="Loss",
        source=f"{PAPER}, Figure 10",
        claims=(LOSS_CLAIM,),
        cases=cases_loss,
        evaluate=evaluate_loss,
    ),
)
