"""A violation: which property was broken, the nodes, messages and times, and an explanation in words."""

from collections.abc import Iterable

import msgspec

from ordercast.core import (
    FAILED,
    MessageId,
    Nanos,
    NodeId,
    ProtocolFailure,
    format_ns,
    message_name,
)

END_OF_RUN = -1
"""The step of a finding that shows only at the end of the run."""

VIOLATIONS_MAX = 20
"""How many findings a judge keeps for each property; later ones are only counted."""

LISTED_MAX = 5
"""How many items a sentence lists before it says how many more there are."""


class Violation(msgspec.Struct, frozen=True):
    """A counterexample to one property. ``step`` is the place of the event that completed it."""

    property: str
    nodes: tuple[NodeId, ...]
    messages: tuple[MessageId, ...]
    times_ns: tuple[Nanos, ...]
    detail: str
    step: int = END_OF_RUN

    def headline(self) -> str:
        """What happened, in two words: a promise was broken, or the protocol failed."""
        return self.property if self.property == FAILED else f"{self.property} violated"

    def __str__(self) -> str:
        """A line that a person can read."""
        where = "at the end of the run" if self.step == END_OF_RUN else f"at event {self.step}"
        return f"{self.property}, {where}: {self.detail}"


def failed(failure: ProtocolFailure) -> Violation:
    """The finding that a handler of the protocol raised an exception, which ended the run."""
    return Violation(FAILED, (failure.node,), (), (failure.time_ns,), str(failure))


def in_order(violations: Iterable[Violation]) -> list[Violation]:
    """Findings by event, then by property; those of the end of the run last."""
    return sorted(violations, key=lambda found: (found.step == END_OF_RUN, found.step, found.property))


def listed(items: Iterable[object]) -> str:
    """A list of items, only the first few by name: ``1, 2, 3 and 7 more``."""
    names = [str(item) for item in items]
    if len(names) <= LISTED_MAX:
        return ", ".join(names)
    return f"{', '.join(names[:LISTED_MAX])} and {len(names) - LISTED_MAX} more"


def messages_named(messages: Iterable[MessageId]) -> str:
    """A list of messages, only the first few by name."""
    return listed(map(message_name, messages))


def nodes_named(nodes: Iterable[NodeId]) -> str:
    """``node 1`` or ``nodes 1, 2``."""
    nodes = tuple(nodes)
    return f"node{'' if len(nodes) == 1 else 's'} {listed(nodes)}"


def message_at(message: MessageId, time_ns: Nanos) -> str:
    """A message and the time of an event: ``4#17 (at 1.25 ms)``."""
    return f"{message_name(message)} (at {format_ns(time_ns)})"
