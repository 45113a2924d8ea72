"""Whom a member suspects.

It counts its own heartbeats and does not read the clock: a clock that was set back stands still. Two nodes
are *connected* if each hears the other. A node that sends but does not hear says so in its heartbeats, and
is suspected like one that is silent.
"""

from ordercast.components.membership.messages import Beat
from ordercast.core import NodeId


class _Peer:
    """What is known of another member or voter."""

    __slots__ = ("abstains", "asks", "ballot", "hears_me", "incarnation", "silence")

    def __init__(self) -> None:
        self.silence = 0
        """Own heartbeats since it was last heard."""
        self.hears_me = True
        """It has not said that it does not hear this node."""
        self.incarnation = 0
        """The highest that it has named."""
        self.ballot = 0
        """The ballot of the change that it takes part in; 0 if there is none."""
        self.asks = False
        """It asks for a change."""
        self.abstains = False
        """It does not vote."""


class Detector:
    """Failure detector for the members and voters of a view."""

    __slots__ = ("_me", "_peers", "_silences_max")

    def __init__(self, me: NodeId, silences_max: int) -> None:
        self._me = me
        self._silences_max = silences_max
        self._peers: dict[NodeId, _Peer] = {}

    def watch(self, nodes: tuple[NodeId, ...]) -> None:
        """Watch these nodes from now on. What is known of them stays known; new ones count as heard."""
        before = self._peers
        self._peers = {node: before.get(node) or _Peer() for node in nodes if node != self._me}
        for peer in self._peers.values():
            peer.ballot = 0
            peer.hears_me = True
            peer.asks = False

    def tick(self) -> None:
        """One more heartbeat of this node."""
        for peer in self._peers.values():
            peer.silence += 1

    def hear(self, node: NodeId, incarnation: int = 0) -> None:
        """A node gave a sign of life."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.silence = 0
            peer.incarnation = max(peer.incarnation, incarnation)

    def on_beat(self, node: NodeId, message: Beat, *, hears_me: bool) -> None:
        """A node of the same view said whether it hears this one, asks, abstains, and what it promised."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.hears_me = hears_me
            peer.asks = message.asks
            peer.abstains = message.abstains
            peer.ballot = message.ballot

    def hears(self, node: NodeId) -> bool:
        """Whether a node was heard lately; this node always is."""
        peer = self._peers.get(node)
        return node == self._me if peer is None else peer.silence < self._silences_max

    def connected(self, node: NodeId) -> bool:
        """Whether a node is heard and does not deny that it hears this one."""
        return self.hears(node) and (node == self._me or self._peers[node].hears_me)

    def incarnation(self, node: NodeId) -> int:
        """The highest incarnation that a node has named."""
        return self._peers[node].incarnation if node in self._peers else 0

    def asks(self, node: NodeId) -> bool:
        """Whether a node asks for a change: to be let go, or to receive other groups."""
        return node in self._peers and self._peers[node].asks

    def abstains(self, node: NodeId) -> bool:
        """Whether a node does not vote, because it has lost its state."""
        return node in self._peers and self._peers[node].abstains

    @property
    def ballot(self) -> int:
        """The highest ballot of a change that another node takes part in."""
        return max((peer.ballot for peer in self._peers.values()), default=0)

    @property
    def suspects(self) -> tuple[NodeId, ...]:
        """The nodes that are not connected with this one."""
        return tuple(node for node in self._peers if not self.connected(node))


def pack_bits(bits: list[bool]) -> bytes:
    """Bits as bytes, the first one lowest."""
    value = sum(1 << place for place, bit in enumerate(bits) if bit)
    return value.to_bytes((len(bits) + 7) // 8, "little")


def has_bit(packed: bytes, place: int) -> bool:
    """Whether a bit is set; one beyond the end is not."""
    return place // 8 < len(packed) and bool(packed[place // 8] >> place % 8 & 1)
