"""What a host tells when it is asked why something is not delivered: plain facts, for `why` to put together.

Times are told as ages, measured by the clock of the node they belong to: the clocks of others may differ.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ordercast.core import Explanation, HostId, MessageId, Nanos, NodeId, RemoteError, Wait, message_sender
from ordercast.core.bundle import bundle_span
from ordercast.net.tools.progress import Progress, Run

WAITS_TOLD = 20
"""Waits of a node that are told, the oldest; and beside them those of the message asked for."""


class WaitFact(msgspec.Struct, frozen=True):
    """One thing that waits at a node, and the messages in it, where they are known."""

    subject: str
    blocker: str
    age_ns: Nanos | None = None
    first: MessageId | None = None
    count: int = 0
    stable: float | None = None
    """The probability that all who should know of it do, where the protocol can tell."""

    def carries(self, message: MessageId) -> bool:
        """Whether a message is in it."""
        return self.first is not None and self.first <= message < self.first + self.count


class SenderFact(msgspec.Struct, frozen=True):
    """How far a sender has come in this life."""

    first: MessageId
    """The identity of this life's first message."""
    next: MessageId
    """The identity that the next message gets."""
    backlog: int = 0
    """So many of the last ones the protocol has not taken yet."""
    blocked: str = ""
    """Why it does not take them, if that is known."""


class NodeFact(msgspec.Struct, frozen=True):
    """What one node says of itself."""

    role: str
    state: dict[str, str | int] = {}
    waiting: int = 0
    """How many things wait, those not told here too."""
    waits: tuple[WaitFact, ...] = ()
    delivered: tuple[Run, ...] = ()
    """Of the messages of the sender asked for, those delivered here in this life."""
    sender: SenderFact | None = None


class HostFact(msgspec.Struct, frozen=True):
    """What one host says of its nodes."""

    host: HostId
    nodes: dict[NodeId, NodeFact]


def node_fact(
    role: str,
    explanation: Explanation,
    now: Nanos,
    *,
    asked: MessageId | None = None,
    progress: Progress | None = None,
    sender: SenderFact | None = None,
) -> NodeFact:
    """The facts of a node; of all its waits, the oldest and those of the message asked for."""
    delivered = progress.runs(message_sender(asked)) if progress is not None and asked is not None else ()
    return NodeFact(
        role=role,
        state=dict(explanation.state),
        waiting=len(explanation.waits),
        waits=tuple(_chosen(explanation.waits, now, asked)),
        delivered=tuple(delivered),
        sender=sender,
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
    return WaitFact(wait.subject, wait.blocker, age, first, count, wait.stable)


def _messages(payload: bytes | None) -> tuple[MessageId | None, int]:
    """The first identity in a packet and how many there are; a packet of a peer may be no bundle at all."""
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
