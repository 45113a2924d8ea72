"""Who waits for whom: from one wait to the node that can end it, and on to the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ordercast.core.ids import NodeId

CHAIN_MAX = 8
"""How many waits a chain has at most."""


class Waiting(Protocol):
    """Something that waits."""

    @property
    def subject(self) -> str:
        """What waits."""

    @property
    def blocker(self) -> str:
        """What it waits for."""

    @property
    def on(self) -> tuple[NodeId, ...]:
        """The nodes that can end the wait."""


W = TypeVar("W", bound=Waiting)


class Chain(NamedTuple, Generic[W]):
    """Waits that follow from each other, and the node at the end, where the cause is."""

    links: tuple[tuple[NodeId, W], ...]
    cause: NodeId | None
    """A node that a wait names, and that does not answer or waits for nothing itself; None if no wait names
    another node, or if the nodes wait for each other."""
    absent: bool = False
    """Whether that node does not answer."""


def follow(node: NodeId, wait: W, waits: Mapping[NodeId, Sequence[W]]) -> Chain[W]:
    """The chain that begins with a wait at a node.

    `waits` has the waits of each node that answers, the oldest first. Of the nodes that can end a wait, one
    that does not answer comes first, then one that waits for others itself, then one that does not wait.
    """
    links = [(node, wait)]
    while len(links) < CHAIN_MAX:
        seen = {at for at, _ in links}
        ahead = [other for other in links[-1][1].on if other not in seen]
        absent = [other for other in ahead if other not in waits]
        if not ahead or absent:
            return Chain(tuple(links), absent[0] if absent else None, bool(absent))
        busy = [other for other in ahead if waits[other]]
        if not busy:
            return Chain(tuple(links), ahead[0])
        links.append((busy[0], _most_telling(waits[busy[0]])))
    return Chain(tuple(links), None)


def _most_telling(waits: Sequence[W]) -> W:
    """The oldest wait that names another node, else the oldest."""
    return next((wait for wait in waits if wait.on), waits[0])


def chain_text(chain: Chain[W], roles: Mapping[NodeId, str]) -> str:
    """A chain in words, where every node that is up answers."""
    texts = [
        f"at node {node} ({roles.get(node, '?')}) {wait.subject} waits for {wait.blocker}"
        for node, wait in chain.links
    ]
    if chain.cause is not None:
        texts.append(cause_text(chain, roles, "is down"))
    return "; ".join(texts)


def cause_text(chain: Chain[W], roles: Mapping[NodeId, str], absent: str) -> str:
    """The end of a chain in words; `absent` says what is wrong with a node that gave no answer."""
    what = absent if chain.absent else "waits for nothing itself"
    return f"node {chain.cause} ({roles.get(chain.cause or 0, '?')}) {what}"
