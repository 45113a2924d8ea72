"""The verdict on a run."""

from typing import NamedTuple

from ordercast.judge.finding.holes import Holes
from ordercast.judge.finding.violation import Violation


class Verdict(NamedTuple):
    """The findings on a run, and how many more each property had than were kept.

    The count is exact, but for `total-order` and `acyclic-order` it is a lower bound: both judges stop the
    full search when they have enough to tell.
    """

    violations: list[Violation]
    suppressed: dict[str, int]
    holes: Holes | None = None
    """What is missing where; None unless the run counts holes (`RunDescription`)."""
