"""What all oracles share: they watch a run event by event and write down counterexamples.

An oracle declares the kinds of events it wants (`handlers`), and is asked nothing about the others:
most rows of a full trace are packets, which no oracle reads. It keeps the first `VIOLATIONS_MAX` of
its findings and counts the rest, because a broken run breaks the same promise thousands of times.

Oracles other than `Integrity`, `Clocks` and `Lifecycle` are *gated*: they may take for granted that
a row names known groups and that no receiver delivers a message twice in one life. The judge shows
them no other rows: what integrity refuses is integrity's finding alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

from ordercast.core import MessageId, Nanos, NodeId
from ordercast.judge.online.violation import END_OF_RUN, Violation
from ordercast.trace import Event, Kind, RunDescription

VIOLATIONS_MAX = 20
"""How many findings an oracle keeps; later ones are only counted."""

Handler: TypeAlias = Callable[[Event], None]


class Cursor:
    """The place in the stream of events; a judge shares one among its oracles."""

    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step = -1


class Oracle(ABC):
    """One property, watched online."""

    name: ClassVar[str]
    statement: ClassVar[str]
    gated: ClassVar[bool] = True

    def __init__(self, description: RunDescription) -> None:
        self.description = description
        self.violations: list[Violation] = []
        self.suppressed = 0
        self.cursor = Cursor()
        self._handlers: dict[Kind, Handler] | None = None

    @abstractmethod
    def handlers(self) -> dict[Kind, Handler]:
        """Which kinds of events the oracle wants, and what it does with each."""

    def observe(self, event: Event) -> None:
        """The next event of the stream, for an oracle used on its own."""
        if self._handlers is None:
            self._handlers = self.handlers()
        self.cursor.step += 1
        handler = self._handlers.get(event.kind)
        if handler is not None:
            handler(event)

    def finish(self) -> None:  # noqa: B027  (optional: most properties are broken by an event)
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
