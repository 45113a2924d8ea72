"""Holes and broken order in all of EpTO's experiments together (sections 2 and 6).

The runs are those of the figures, and each of them runs once, whoever asks for it. The paper has seen no hole
in any of its experiments; order it promises always. So holes are counted in runs with the parameters of the
lemmas, and broken order in all, those with a TTL far too small included. Both worlds count.
"""

from ordercast.experiments.epto import adversity, cost, growth
from ordercast.experiments.epto.results import counted
from ordercast.experiments.epto.runs import BY_LEMMA, VIOLATIONS
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Results, Setup

HOLES_CLAIM, ORDER_CLAIM = "epto.holes", "epto.order_violations"


def cases(setup: Setup) -> list[Case]:
    """All runs, each once."""
    modules = (cost, growth, adversity)
    found = [case for module in modules for each in module.EXPERIMENTS for case in each.cases(setup)]
    return list({case.name(): case for case in found if "processes" in case.parameters}.values())


def evaluate(results: Results) -> Evaluation:
    """Both counts, and where the holes are."""
    by_lemma = Results(each for each in results.all if each.values[BY_LEMMA])
    where = sorted(
        f"{each.values['holes']:.0f} with {each.case.parameters_json()}, seed {each.case.seed}"
        for each in by_lemma.all
        if each.values["holes"]
    )
    more = f"; and in {len(where) - 3} other runs" if len(where) > 3 else ""
    holes = counted(HOLES_CLAIM, by_lemma, note="; ".join(where[:3]) + more)
    return Evaluation(measurements=(holes, counted(ORDER_CLAIM, results, VIOLATIONS)))


EXPERIMENTS = (
    Experiment(
        name="epto-all",
        title="Holes and order in all runs",
        source="EpTO (Middleware 2015), sections 2 and 6",
        claims=(HOLES_CLAIM, ORDER_CLAIM),
        cases=cases,
        evaluate=evaluate,
    ),
)
