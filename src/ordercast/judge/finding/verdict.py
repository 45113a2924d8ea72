"""The verdict on a run."""

from typing import NamedTuple

from ordercast.judge.finding.damage import Damage
from ordercast.judge.finding.holes import Holes
from ordercast.judge.finding.violation import Violation


class Verdict(NamedTuple):
    """The findings on a run, and for each property how many more findings were not kept.

    The count is exact, except for `total-order`, `pair-order` and `acyclic-order`, where it is a lower bound:
    both judges stop the full search when they have enough findings.
    """

    violations: list[Violation]
    suppressed: dict[str, int]
    holes: Holes | None = None
    """The holes of the run; None unless the run counts holes (`RunDescription`)."""
    damage: tuple[Damage, ...] = ()
    """What is wrong with the record of the run. If rows may be missing, no promise was judged."""
