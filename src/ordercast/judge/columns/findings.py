"""What the properties found: the first few counterexamples of each, and how many more there were."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ordercast.core import MessageId, Nanos, NodeId
from ordercast.judge.online import END_OF_RUN, VIOLATIONS_MAX, Verdict, Violation

Item = TypeVar("Item")


class Findings:
    """The counterexamples to all properties of a run."""

    def __init__(self) -> None:
        self._found: dict[str, list[Violation]] = {}
        self._suppressed: dict[str, int] = {}

    def wanted(self, name: str, broken: Sequence[Item]) -> Sequence[Item]:
        """Of all that breaks a property, in order, what is still to be told; the rest is counted."""
        room = VIOLATIONS_MAX - len(self._found.get(name, ()))
        self.count(name, len(broken) - room)
        return broken[:room]

    def count(self, name: str, more: int) -> None:
        """Note counterexamples that are not told."""
        if more > 0:
            self._suppressed[name] = self._suppressed.get(name, 0) + more

    def add(
        self,
        name: str,
        nodes: Iterable[NodeId],
        messages: Iterable[MessageId],
        times_ns: Iterable[Nanos],
        detail: str,
        step: int = END_OF_RUN,
    ) -> None:
        """Write down a counterexample, or count it when there are enough."""
        found = self._found.setdefault(name, [])
        if len(found) >= VIOLATIONS_MAX:
            self.count(name, 1)
            return
        found.append(Violation(name, tuple(nodes), tuple(messages), tuple(times_ns), detail, step))

    def verdict(self) -> Verdict:
        """All findings, by event, then by property; those of the end of the run last."""
        found = [violation for violations in self._found.values() for violation in violations]
        found.sort(key=lambda v: (v.step == END_OF_RUN, v.step, v.property))
        return Verdict(found, dict(self._suppressed))
