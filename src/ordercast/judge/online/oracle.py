"""The base of all oracles: they watch a run event by event and record counterexamples.

An oracle declares the kinds of events that it wants (`handlers`), and sees no others: most rows of a full
trace are packet rows, which no oracle reads. It keeps the first `VIOLATIONS_MAX` of its findings and counts
the rest, because a broken run breaks the same promise thousands of times.

Oracles are *gated* by default: they can rely on rows that name known groups, and on receivers that deliver a
message only once in a life. The judge shows them no other rows: a row that integrity refuses is a finding of
integrity alone.
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
    lasting: ClassVar[bool] = True
    """It sees only deliveries that last, where others are provisional (`survival.py`)."""
    reads: ClassVar[bool] = False
    """It sees submissions of reads too, which nobody delivers."""

    def __init__(self, name: str, case: Case) -> None:
        """`name` is the name of the property, for the findings."""
        self.name = name
        self.description = case.description
        self.cursor = case.cursor
        self.violations: list[Violation] = []
        self.suppressed = 0

    def handlers(self) -> dict[Kind, Handler]:
        """Which kinds of events the oracle wants, and what it does with each.

        Empty if the oracle judges at the end, by the ledger of the case.
        """
        return {}

    def finish(self) -> None:
        """Judge what only the end of the run can show."""

    @property
    def full(self) -> bool:
        """Whether the oracle has as many findings as it keeps; later ones are only counted."""
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
        """Record a counterexample, or only count it if there are enough."""
        if self.full:
            self.suppressed += 1
            return
        step = END_OF_RUN if at_end else self.cursor.step
        self.violations.append(
            Violation(self.name, tuple(nodes), tuple(messages), tuple(times_ns), detail, step)
        )
