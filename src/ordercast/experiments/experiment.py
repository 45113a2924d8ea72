"""The contract of an experiment: cases in, claims and figures out.

An experiment belongs to a figure or a table of a paper. It lists its cases, which run anywhere, and evaluates
their results, which is arithmetic. It never decides whether a claim is met: bands are data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.pipeline.cases import Case, CaseResult, CaseValues, Results
from ordercast.pipeline.claims import Measurement
from ordercast.pipeline.reproduce import Evaluation, Work

__all__ = ["Case", "CaseResult", "CaseValues", "Evaluation", "Experiment", "Measurement", "Results", "Setup"]


@dataclass(frozen=True, slots=True)
class Setup:
    """How an experiment is to be run."""

    quick: bool = False
    """Fewer seeds and points: enough to see that it works, maybe not enough for its claims."""
    data: Path | None = None
    """Where measured inputs are, such as latencies, for experiments that need some."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of a paper."""

    name: str
    title: str
    source: str
    """The paper, its section and its figure."""
    claims: tuple[str, ...]
    """The ids of the claims that it measures."""
    cases: Callable[[Setup], Sequence[Case]]
    evaluate: Callable[[Results], Evaluation]

    def prepare(self, setup: Setup) -> Work:
        """Ready to be run."""
        return Work(self.name, self.title, self.source, self.claims, list(self.cases(setup)), self.evaluate)
