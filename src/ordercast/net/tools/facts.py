"""Facts that a host gives about undelivered messages, from which `why` makes an answer.

Times are given as ages by the clock of their own node, because the clocks of others may differ.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ordercast.core import Explanation, HostId, MessageId, Nanos, NodeId, RemoteError, Wait, message_sender
from ordercast.core.bundle import bundle_span
from ordercast.net.tools.progress import Outcomes, Progress, Run

WAITS_TOLD = 20
"""How many waits of a node are given, the oldest first; waits of the requested message come in addition."""


class WaitFact(msgspec.Struct, frozen=True):
    """One thing that waits at a node, and the messages in it, if they are known."""

    subject: str
    blocker: str
    age_ns: Nanos | None = None
    first: MessageId | None = None
    count: int = 0
    stable: float | None = None
    """The probability that all who should know it do, if the protocol can tell."""
    on: tuple[NodeId, ...] = ()
    """The nodes that can end the wait, if the protocol knows them."""

    def carries(self, message: MessageId) -> bool:
        """Whether this wait includes a message."""
        return self.first is not None and self.first <= message < self.first + self.count


class SenderFact(msgspec.Struct, frozen=True):
    """How far a sender has come in this life."""

    first: MessageId
    """The identity of this life's first message."""
    next: MessageId
    """The identity that the next message gets."""
    backlog: int = 0
    """How many of the last messages the protocol has not taken yet."""
    blocked: str = ""
    """Why the protocol does not take them, if that is known."""


class NodeFact(msgspec.Struct, frozen=True):
    """The facts of one node."""

    role: str
    state: dict[str, str | int] = {}
    waiting: int = 0
    """How many things wait, including those not given here."""
    waits: tuple[WaitFact, ...] = ()
    delivered: tuple[Run, ...] = ()
    """The messages of the requested sender that were delivered here in this life."""
    sender: SenderFact | None = None
    answered: tuple[Run, ...] = ()
    """The requested client's operations that were answered here in this life."""
    unknown: tuple[Run, ...] = ()
    """The requested client's operations that it gave up: their outcome is unknown."""
    behind: str = ""
    """What the node lacks before it takes full part; empty if it lacks nothing."""


class HostFact(msgspec.Struct, frozen=True):
    """The facts of the nodes of one host."""

    host: HostId
    nodes: dict[NodeId, NodeFact]


def node_fact(
    role: str,
    explanation: Explanation,
    now: Nanos,
    *,
    asked: MessageId | None = None,
    progress: Progress | None = None,
    outcomes: Outcomes | None = None,
    sender: SenderFact | None = None,
) -> NodeFact:
    """The facts of a node, with its oldest waits and those of the requested message."""

    def runs(known: Progress | None) -> tuple[Run, ...]:
        return () if known is None or asked is None else tuple(known.runs(message_sender(asked)))

    return NodeFact(
        role=role,
        state=dict(explanation.state),
        waiting=len(explanation.waits),
        waits=tuple(_chosen(explanation.waits, now, asked)),
        delivered=runs(progress),
        sender=sender,
        answered=runs(outcomes.answered if outcomes else None),
        unknown=runs(outcomes.unknown if outcomes else None),
        behind=explanation.behind,
    )


def _chosen(waits: Iterable[Wait], now: Nanos, asked: MessageId | None) -> Iterable[WaitFact]:
    for index, wait in enumerate(sorted(waits, key=lambda wait: wait.since)):
        if index < WAITS_TOLD or (asked is not None and wait.payload is not None):
            fact = _wait_fact(wait, now)
            if index < WAITS_TOLD or (asked is not None and fact.carries(asked)):
                yield fact


def _wait_fact(wait: Wait, now: Nanos) -> WaitFact:
    age = max(0, now - wait.since) if wait.since > 0 else None
    first, count = _messages(wait.payload)
    return WaitFact(wait.subject, wait.blocker, age, first, count, wait.stable, wait.on)


def _messages(payload: bytes | None) -> tuple[MessageId | None, int]:
    """The first message of a bundle, and their number; a peer's payload may not be a bundle at all."""
    if payload is None:
        return None, 0
    try:
        return bundle_span(payload)
    except RemoteError:
        return None, 0


def roles_text(roles: Mapping[NodeId, str]) -> str:
    """The roles at a host, each once, in the order of nodes: ``receiver and sender``."""
    names = list(dict.fromkeys(roles[node] for node in sorted(roles)))
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "no role"
