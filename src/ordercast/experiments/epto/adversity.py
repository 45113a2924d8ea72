"""EpTO under churn, with Cyclon in place of a list of all processes, and with loss (section 6, Figures 8-10).

500 processes, global clock, 5% broadcasts. The paper's text says neither how high its churn is (larger by far
than what is seen in real systems) nor how Cyclon is set up. Churn here is 1, 5 and 10% of the processes in
every round's time, each leaver replaced by somebody new. Cyclon's view and period are those with which a user
gets EpTO. A view still holds processes that have left, and lacks those that have just come.

A process that stayed was there before the first broadcast, and until the others had delivered an event: with
a tenth leaving in each round, hardly anybody is there to the end. What newcomers lack is counted by itself,
and the note says how much it is. With a list of all processes it is nothing. With Cyclon, in 20 seeds, it was
no event of 4.3 million deliveries with 1% churn, 28 of 2.2 million with 5%, and 245 of 0.8 million with 10%,
half of them broadcast within three rounds after the process had joined. With 10%, three quarters of them were
at newcomers to whom no more than three balls went in the eight rounds after the broadcast: few views held
them. Newcomers were told apart after a first look, in which they counted, and in which Cyclon's claim was
missed by them alone. The paper looks at processes "that remained in the system long enough", and says itself
that new ones may take long to appear in the views of others.
"""

from ordercast.experiments.epto.results import (
    HIGH,
    compared,
    counted,
    distribution,
    distributions,
    ratios,
    seeds,
    typical,
)
from ordercast.experiments.epto.runs import run_case
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Results, Setup

PROCESSES = 500
CHURN = (0.0, 0.01, 0.05, 0.1)
LOSS = (0.0, 0.01, 0.05, 0.1)
CHURN_CLAIM, CYCLON_CLAIM, LOSS_CLAIM = "epto.churn", "epto.cyclon", "epto.loss10"
PAPER = "EpTO (Middleware 2015), section 6"
SETUP = f"{PROCESSES} processes, global clock, 5% broadcasts; K by Lemma 7."


def cases_churn(setup: Setup) -> list[Case]:
    """Figure 8."""
    return [
        run_case(setup, seed, processes=PROCESSES, churn=churn)
        for churn in _some(setup, CHURN)
        for seed in seeds(setup)
    ]


def cases_cyclon(setup: Setup) -> list[Case]:
    """Figure 9, and Figure 8 to compare with."""
    sampled = [
        run_case(setup, seed, processes=PROCESSES, churn=churn, sampling="cyclon")
        for churn in _some(setup, CHURN)
        for seed in seeds(setup)
    ]
    return [*sampled, *cases_churn(setup)]


def cases_loss(setup: Setup) -> list[Case]:
    """Figure 10."""
    return [
        run_case(setup, seed, processes=PROCESSES, loss=loss)
        for loss in _some(setup, LOSS)
        for seed in seeds(setup)
    ]


def _some(setup: Setup, shares: tuple[float, ...]) -> tuple[float, ...]:
    return (shares[0], shares[-1]) if setup.quick else shares


def evaluate_churn(results: Results) -> Evaluation:
    """Holes, and delays by churn."""
    by = results.by("churn")
    curves = [distribution(f"churn {float(churn):.0%}", each) for churn, each in by.items()]
    figure = distributions("8", "Delivery delay under churn", SETUP, curves, results)
    return Evaluation(measurements=(counted(CHURN_CLAIM, results, note=_delays(by)),), figures=(figure,))


def evaluate_cyclon(results: Results) -> Evaluation:
    """Holes, and delays by churn, with how much longer they are than from a full list."""
    sampled, full = results.where(sampling="cyclon"), results.where(sampling="uniform")
    by = sampled.by("churn")
    curves = [distribution(f"churn {float(churn):.0%}", each) for churn, each in by.items()]
    figure = distributions("9", "Delivery delay under churn with Cyclon", SETUP, curves, results)
    longer = [
        f"at {float(churn):.0%} {typical(each) / typical(full.where(churn=churn)):.2f}"
        for churn, each in by.items()
    ]
    note = f"{_delays(by)}; medians over those without Cyclon: {', '.join(longer)}"
    return Evaluation(measurements=(counted(CYCLON_CLAIM, sampled, note=note),), figures=(figure,))


def evaluate_loss(results: Results) -> Evaluation:
    """The ratio of the medians, and delays by loss."""
    by = results.by("loss")
    curves = [distribution(f"loss {float(loss):.0%}", each) for loss, each in by.items()]
    figure = distributions("10", "Delivery delay with loss", SETUP, curves, results)
    found = ratios(by[LOSS[-1]], by[LOSS[0]])
    return Evaluation(measurements=(compared(LOSS_CLAIM, found, _delays(by)),), figures=(figure,))


def _delays(by: "dict[str | int | float | bool, Results]") -> str:
    """Medians and tails by share."""
    said = (
        f"{typical(each):.0f} and {typical(each, HIGH):.0f} at {float(share):.0%}"
        for share, each in by.items()
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
