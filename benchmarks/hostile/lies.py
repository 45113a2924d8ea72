"""Messages of Hydra that no correct member sends, and that every process refuses which gets them.

They are of the kinds that once stopped a cluster: numbers, clocks and lives in the far future, groups that do
not exist, and news of configurations from a node that is not of the service.
"""

from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

from ordercast.core import Message, Nanos, NodeId, Plan
from ordercast.protocols.hydra.messages import (
    Announce,
    Ask,
    Flush,
    Groupcast,
    Join,
    Nudge,
    Receipt,
    Request,
    Revived,
    Step,
    Steps,
)

FAR = 1 << 60
"""A number that nobody reaches."""
LATE = 1 << 62
"""A clock that is a hundred years ahead."""
NOWHERE = 99
"""A group that does not exist."""


class Lie(NamedTuple):
    """A message and the node that it is told to."""

    target: NodeId
    message: Message


def lies_to(plan: Plan, liar: NodeId, now: Nanos) -> Iterator[Lie]:
    """Lies without end, to all nodes in turn but the liar."""
    told = [
        Lie(node.id, message)
        for node in plan.nodes
        if node.id != liar
        for message in _lies_to_role(plan, node.id, node.role, now)
    ]
    return cycle(told)


def _lies_to_role(plan: Plan, node: NodeId, role: str, now: Nanos) -> list[Message]:
    match role:
        case "receiver":
            return [*_to_receiver(now), *_news(node)]
        case "sequencer":
            first = min(node.id for node in plan.nodes if node.role == "sequencer")
            return [*_to_sequencer(1 + node - first, now), _news(node)[0]]
        case "configuration":
            return [Join(LATE)]
        case _:
            return _news(node)[:2]


def _to_receiver(now: Nanos) -> list[Message]:
    return [
        Groupcast(1, now, (0,), (FAR,), 0, b"a lie"),
        Groupcast(2, LATE, (0,), (1,), 0, b"a lie"),
        Groupcast(1, now, (0, NOWHERE), (1, 1), 0, b"a lie"),
        Flush(1, now, (FAR,)),
        Flush(2, LATE, (1,)),
        Flush(1, now, (1, 1, 1)),
        Ask(1, NOWHERE, 1, 2),
        Ask(1, 0, 2, 1),
    ]


def _to_sequencer(number: int, now: Nanos) -> list[Message]:
    return [
        Nudge(LATE, (0,)),
        Nudge(now, (NOWHERE,)),
        Request(number, 1, (NOWHERE,), b"a lie"),
        Request(number, LATE, (0,), b"a lie"),
        Receipt(number, FAR),
        Ask(number, NOWHERE, 1, 2),
    ]


def _news(node: NodeId) -> list[Message]:
    """News of configurations, which only the service tells."""
    step = Step("removed", 1, node, 1, 1, (FAR,))
    active = ((1, node),)
    return [
        Announce(FAR, active, None, step),
        Steps(FAR, (step,)),
        Revived(1, FAR, FAR, LATE, 1, 1, active),
    ]
