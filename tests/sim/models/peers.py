"""Peers that all send and receive, on a network that loses nothing, in FIFO or in causal order.

Each message carries what its sender had delivered of every peer; a receiver holds it back until it has
delivered as much (the vector clocks of Isis). In the FIFO flavour only the sender's own count is waited for.
"""

from functools import partial

from ordercast.core import (
    Agreement,
    Causality,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    Gaps,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Node,
    NodeId,
    Payload,
    Plan,
    Wait,
)


def promises(causality: Causality) -> Guarantees:
    """What a group of peers promises."""
    return Guarantees(
        agreement=Agreement.ALL,
        validity=True,
        causality=causality,
        gaps=Gaps.NEVER,
        crashes=Crashes.NONE,
        tolerates=(Fault.DUPLICATION, Fault.REORDERING, Fault.PAUSE, Fault.CLOCK),
    )


class Post(Message, frozen=True, tag=1):
    """A message, with what its sender knew."""

    past: tuple[int, ...]
    payload: Payload


class Peer(Member):
    """Sends to all, delivers in order."""

    def __init__(self, env: Env, peers: tuple[NodeId, ...], causal: bool) -> None:
        super().__init__(env)
        self.peers = peers
        self.causal = causal
        self.sent = 0
        self.delivered = [0] * len(peers)
        self.held: dict[tuple[NodeId, int], Post] = {}

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send to all peers, this one too."""
        if groups != (0,):
            raise LocalError(f"there is only group 0, not {groups}")
        past = list(self.delivered)
        past[self.env.me] = self.sent
        self.sent += 1
        self.env.multicast(self.peers, Post(tuple(past), payload))
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """Hold it back until its past is here."""
        if isinstance(message, Post) and message.past[source] >= self.delivered[source]:
            self.held.setdefault((source, message.past[source]), message)
            while self.deliver_one():
                pass

    def deliver_one(self) -> bool:
        """Deliver a message whose past is here, if there is one."""
        for (source, number), post in sorted(self.held.items(), key=lambda item: item[0]):
            if self.due(source, post):
                del self.held[source, number]
                self.delivered[source] += 1
                self.env.deliver(Delivered(post.payload, (0,), source))
                return True
        return False

    def due(self, source: NodeId, post: Post) -> bool:
        """Whether everything that a message depends on was delivered here."""
        if post.past[source] != self.delivered[source]:
            return False
        others = (peer for peer in self.peers if peer != source)
        return not self.causal or all(post.past[peer] <= self.delivered[peer] for peer in others)

    def explain(self) -> Explanation:
        """What is held back."""
        waits = tuple(Wait(f"{source}/{number}", "its past", 0) for source, number in sorted(self.held))
        return Explanation({"role": "peer", "sent": self.sent}, waits)


def plan(deployment: Deployment, causality: Causality, broken: type[Peer] | None = None) -> Plan:
    """All receivers of the deployment as peers of one group; the first may be of a broken make."""
    peers = tuple(range(deployment.receivers))
    nodes = tuple(
        Node(
            node,
            "peer",
            node,
            partial(
                broken if broken and node == 0 else Peer,
                peers=peers,
                causal=causality is Causality.CAUSAL,
            ),
        )
        for node in peers
    )
    return Plan("peers-model", promises(causality), nodes, {0: peers}, peers, Codec([Post]))
