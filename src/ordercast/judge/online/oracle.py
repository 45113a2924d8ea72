"""What all oracles share: they watch a run event by event and write down counterexamples.

An oracle declares the kinds of events it wants (`handlers`), and is asked nothing about the others:
most rows of a full trace are packets, which no oracle reads. It keeps the first `VIOLATIONS_MAX` of
its findings and counts the rest, because a broken run breaks the same promise thousands of times.

Oracles are *gated*, unless they say otherwise: they may take for granted that a row names known groups and
that no receiver delivers a message twice in one life. The judge shows them no other rows: what integrity
refuses is integrity's finding alone.
"""

from collections.abc import Sequence
from typing import ClassVar

from ordercast.core import MessageId, Nanos, NodeId
from ordercast.judge.finding import END_OF_RUN, VIOLATIONS_MAX, Violation
from ordercast.judge.online.case import Case, Handler
from ordercast.trace import Kind


class Oracle:
    """One property, watched online."""

    gated: ClassVar[bool] = True

    def __init__(self, name: str, case: Case) -> None:
        """`name` is that of the property, for the findings."""
        self.name = name
        self.description = case.description
        self.cursor = case.cursor
        self.violations: list[Violation] = []
        self.suppressed = 0

    def handlers(self) -> dict[Kind, Handler]:
        """Which kinds of events the oracle wants, and what it does with each.

        None, if it judges at the end by an account that the case keeps.
        """
        return {}

    def finish(self) -> None:
        """The run is over: judge what only the end can show."""

    @property
    def full(self) -> bool:
        """Whether it has all the findings that it keeps: the next are only counted."""
        return len(self.violations) >= VIOLATIONS_MAX

    def report(
        self,
        nodes: Sequence[NodeId],
        messages: Sequence[MessageId],
        times_ns: Sequence[Nanos],
        detail: str,
        *,
        at_end: bool = False,
    ) -> None:
        """Write down a counterexample, or count it when there are enough."""
        if self.full:
            self.suppressed += 1
            return
        step = END_OF_RUN if at_end else self.cursor.step
        self.violations.append(
            Violation(self.name, tuple(nodes), tuple(messages), tuple(times_ns), detail, step)
        )
