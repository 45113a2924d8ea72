"""The two bounds (sections 1 and 4.4), in every run of the other experiments.

- No atom orders more messages than the busiest receiver gets. The note says what holds for nodes, and for
  nodes if messages count that only pass. The paper does not speak of those, and for them there is no such
  bound: where three groups overlap by twos, a graph without a loop has an atom that all three go through, and
  no receiver may be in all.
- A path has no more atoms than there are groups: of those that number the message. The note says how long
  paths are with atoms that only pass it on; the paper's own Figure 1 has one.
"""

from ordercast.experiments.atoms import nodes, stretch
from ordercast.experiments.atoms.email import cases as email_cases
from ordercast.experiments.atoms.email import email_figures
from ordercast.experiments.atoms.results import PAPER
from ordercast.experiments.atoms.runs import LOAD, PATH, run_values
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup

LOAD_CLAIM, PATH_CLAIM = "atoms.load_bound", "atoms.path_bound"


def cases(setup: Setup) -> list[Case]:
    """All runs, and with the folder of data those of a real workload."""
    others = [case for each in (*stretch.EXPERIMENTS, *nodes.EXPERIMENTS) for case in each.cases(setup)]
    return [*others, *email_cases(setup)]


def evaluate(results: Results) -> Evaluation:
    """The largest of each."""
    load, path = max(run_values(results, LOAD)), max(run_values(results, PATH))
    node, handled = max(run_values(results, "node_load")), max(run_values(results, "handled_load"))
    passed = max(run_values(results, "passed_path"))
    count = len(run_values(results, LOAD))
    return Evaluation(
        measurements=(
            Measurement(
                claim=LOAD_CLAIM,
                value=load,
                note=f"the largest of {count} runs; nodes {node:.3g}, with what only passes {handled:.3g}",
            ),
            Measurement(
                claim=PATH_CLAIM,
                value=path,
                note=f"the largest of {count} runs; with atoms that only pass a message on {passed:.3g}",
            ),
        ),
        figures=email_figures(results),
    )


EXPERIMENTS = (
    Experiment(
        "atoms-bounds",
        "Load and length of paths in every run",
        f"{PAPER}, sections 1 and 4.4",
        (LOAD_CLAIM, PATH_CLAIM),
        cases,
        evaluate,
    ),
)
