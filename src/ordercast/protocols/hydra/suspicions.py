"""What the leader of the service hears of sequencers that may have failed (section 4.5).

Receivers suspect a sequencer from which nothing comes. Senders complain of one that acknowledges nothing: it
may be deaf, so it is probed, and it counts as deaf if it answers no probe. A suspicion that is not repeated
is forgotten.
"""

from collections.abc import Callable, Container, Iterable

from ordercast.core import Env, Nanos, NodeId
from ordercast.protocols.hydra.messages import Probe

LONELY = 10
"""A receiver whose group shares no suspicion is believed after this many times `suspect_ns`."""


class Suspicions:
    """By sequencer and node: since when it is suspected, and when that was last told."""

    def __init__(
        self,
        env: Env,
        groups: Iterable[tuple[NodeId, ...]],
        senders: frozenset[NodeId],
        quorum: Callable[[int], int],
        suspect_ns: Nanos,
    ) -> None:
        self._env = env
        self._groups = tuple(groups)
        self._senders = senders
        self._quorum = quorum
        self._suspect_ns = suspect_ns
        self._told: dict[int, dict[NodeId, tuple[Nanos, Nanos]]] = {}
        self._probed: dict[NodeId, Nanos] = {}
        """By node of a sequencer of which senders complain: since when it has answered no probe."""

    def clear(self) -> None:
        """Forget everything: a new leader hears it again."""
        self._told.clear()
        self._probed.clear()

    def take(self, source: NodeId, sequencer: int) -> None:
        """Note that a node suspects a sequencer."""
        told = self._told.setdefault(sequencer, {})
        since, _ = told.get(source, (self._env.now, 0))
        told[source] = (since, self._env.now)

    def probe(self, node: NodeId) -> None:
        """Ask the node of a sequencer for an answer."""
        self._probed.setdefault(node, self._env.now)
        self._env.send(node, Probe(self._env.now))

    def on_echo(self, node: NodeId) -> None:
        """The node has answered."""
        self._probed.pop(node, None)

    def forget_others(self, sequencers: Container[int]) -> None:
        """Forget sequencers that are not among these."""
        for sequencer in [known for known in self._told if known not in sequencers]:
            del self._told[sequencer]

    def condemn(self, sequencer: int, node: NodeId) -> bool:
        """Whether a sequencer at a node has been suspected by enough nodes for long enough."""
        told = self._told.get(sequencer)
        if not told:
            return False
        now, patience = self._env.now, self._suspect_ns
        for one in [one for one, (_, last) in told.items() if now - last > patience]:
            del told[one]
        if any(now - since > LONELY * patience for since, _ in told.values()):
            return True
        if any(one in self._senders for one in told) and self._is_deaf(node):
            return True
        return any(
            sum(one in told for one in nodes) > len(nodes) - self._quorum(len(nodes))
            for nodes in self._groups
        )

    def _is_deaf(self, node: NodeId) -> bool:
        since = self._probed.get(node)
        return since is not None and self._env.now - since > self._suspect_ns
