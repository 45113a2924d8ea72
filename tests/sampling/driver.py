"""Samplers without a protocol around them: a queue of events in integer time, and a network that may lose.

Events of one tick happen in a fixed order: messages in the order in which they were sent, then timers in the
order of the nodes.
"""

import heapq
from collections.abc import Callable, Sequence

from ordercast.components.sampling import Cyclon, CyclonOptions, draw, stream
from ordercast.components.sampling.messages import MESSAGES, ShuffleRequest
from ordercast.core import Codec, Message, Nanos, NodeId
from ordercast.testing import RecordingEnv

Fate = Callable[[NodeId, NodeId, bool, int], Nanos | None]
"""How long a message takes, None if it is lost; of its source, its target, whether it asks, and its number:
that of the shuffle, or how many answers the source sent before."""

MESSAGE, TIMER = range(2)
_CODEC = Codec(MESSAGES)


def network(seed: int, shortest: Nanos, longest: Nanos, loss_per_mille: int = 0) -> Fate:
    """Each message takes a time of its own; some never arrive."""

    def fate(source: NodeId, target: NodeId, asks: bool, number: int) -> Nanos | None:
        name = stream(stream(seed, source), asks)
        if draw(name, number, 0) % 1000 < loss_per_mille:
            return None
        return shortest + draw(name, number, 1) % (longest - shortest + 1)

    return fate


class OverlayEnv(RecordingEnv):
    """One node of an overlay."""

    def __init__(self, overlay: "Overlay", me: NodeId) -> None:
        super().__init__(me)
        self.overlay = overlay
        self.now = overlay.now
        self.answers = 0

    def send(self, to: NodeId, message: Message) -> None:
        if isinstance(message, ShuffleRequest):
            self.overlay.transmit(self.me, to, True, message.number, message)
        else:
            self.overlay.transmit(self.me, to, False, self.answers, message)
            self.answers += 1

    def set_timer(self, name: str, after: Nanos) -> None:
        self.overlay.push_timer(self.now + after, self.me, name)


class Overlay:
    """Nodes that shuffle their views."""

    def __init__(
        self, options: CyclonOptions, fate: Fate, nodes: range, turn: Callable[[NodeId], int] = int
    ) -> None:
        """With `turn`, timers of one tick go off in an order other than that of the nodes' numbers."""
        self.options = options
        self.fate = fate
        self.nodes = nodes
        self.turn = turn
        self.now = 0
        self.alive: dict[NodeId, Cyclon] = {}
        self.sent = 0
        self._envs: dict[NodeId, OverlayEnv] = {}
        self._events: list[tuple[Nanos, int, int, NodeId, NodeId, bytes]] = []

    def join(self, node: NodeId, seed: int, contacts: Sequence[NodeId]) -> None:
        """Start a node that was never there."""
        env = self._envs[node] = OverlayEnv(self, node)
        self.alive[node] = Cyclon(env, seed, contacts, self.options, self.nodes)
        self.alive[node].on_start({})

    def crash(self, node: NodeId) -> None:
        del self.alive[node]

    def transmit(self, source: NodeId, to: NodeId, asks: bool, number: int, message: Message) -> None:
        self.sent += 1
        latency = self.fate(source, to, asks, number)
        if latency is not None:
            # Through the codec: what a correct node sends, a correct node must be able to read.
            data = _CODEC.encode(message)
            heapq.heappush(self._events, (self.now + latency, MESSAGE, self.sent, to, source, data))

    def push_timer(self, time: Nanos, node: NodeId, name: str) -> None:
        heapq.heappush(self._events, (time, TIMER, self.turn(node), node, node, name.encode()))

    def run_until(self, end: Nanos) -> None:
        """All that happens before `end`."""
        while self._events and self._events[0][0] < end:
            self.now, kind, _, to, source, data = heapq.heappop(self._events)
            sampler = self.alive.get(to)
            if sampler is None:
                continue
            self._envs[to].now = self.now
            if kind == TIMER:
                sampler.on_timer(data.decode())
            else:
                sampler.on_message(source, _CODEC.decode(data))
        self.now = end

    def run(self, periods: int) -> None:
        self.run_until(self.now + periods * self.options.period_ns)

    def views(self) -> dict[NodeId, Sequence[NodeId]]:
        return {node: tuple(entry[0] for entry in sampler.entries()) for node, sampler in self.alive.items()}
