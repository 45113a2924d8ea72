"""The findings on one property: the first few counterexamples, and how many more there were."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ordercast.core import MessageId, Nanos, NodeId
from ordercast.judge.finding import END_OF_RUN, VIOLATIONS_MAX, Violation

Item = TypeVar("Item")


class Findings:
    """The counterexamples to the property of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.violations: list[Violation] = []
        self.suppressed = 0

    def wanted(self, broken: Sequence[Item]) -> Sequence[Item]:
        """The first of these counterexamples, as many as are still kept; the others are counted."""
        room = VIOLATIONS_MAX - len(self.violations)
        self.count(len(broken) - room)
        return broken[:room]

    def count(self, more: int) -> None:
        """Count counterexamples that are not kept."""
        if more > 0:
            self.suppressed += more

    def add(
        self,
        nodes: Iterable[NodeId],
        messages: Iterable[MessageId],
        times_ns: Iterable[Nanos],
        detail: str,
        step: int = END_OF_RUN,
    ) -> None:
        """Record a counterexample, or only count it if there are enough."""
        if len(self.violations) >= VIOLATIONS_MAX:
            self.count(1)
            return
        self.violations.append(
            Violation(self.name, tuple(nodes), tuple(messages), tuple(times_ns), detail, step)
        )
