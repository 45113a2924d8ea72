"""What a gossiping process asks of peer sampling: some peers, at random, each round (EpTO section 2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from ordercast.components.sampling.draws import choose, stream
from ordercast.core import Env, Explanation, Message, NodeId, Process

TARGETS = 1
"""The stream that chooses whom to send to."""


class Sampler(Process):
    """Knows some peers, and chooses among them."""

    @abstractmethod
    def sample(self, round_number: int, count: int) -> list[NodeId]:
        """`count` different peers, or as many as are known; the same question has the same answer for as long
        as the known peers are the same."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """No message, unless a sampler has some."""

    def explain(self) -> Explanation:
        """How many peers there are to choose from; nothing waits."""
        return Explanation({"peers": len(self.known())})

    @abstractmethod
    def known(self) -> Sequence[NodeId]:
        """The peers that may be chosen now."""


class Uniform(Sampler):
    """Every peer equally likely, of a list that is known to all: what the analysis of EpTO assumes."""

    def __init__(self, env: Env, seed: int, peers: Sequence[NodeId]) -> None:
        super().__init__(env)
        self._seed = stream(seed, TARGETS)
        self._know(peers)

    def _know(self, peers: Sequence[NodeId]) -> None:
        self._peers = peers
        self._me = peers.index(self.env.me) if self.env.me in peers else len(peers)

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Choose among the peers that there are now."""
        self._know(tuple(sorted(roles)))

    def sample(self, round_number: int, count: int) -> list[NodeId]:
        """Peers other than this one, from the whole list."""
        others = len(self._peers) - (self._me < len(self._peers))
        chosen = choose(self._seed, round_number, count, others)
        return [self._peers[place + (place >= self._me)] for place in chosen]

    def known(self) -> Sequence[NodeId]:
        """All but this one."""
        return [*self._peers[: self._me], *self._peers[self._me + 1 :]]
