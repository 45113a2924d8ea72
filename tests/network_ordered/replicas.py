"""Replicas over a network that orders, driven by hand: their messages travel at once, node by node."""

from ordercast.components.network_ordered.messages import ViewChangeRequest
from ordercast.core import Message, NodeId
from tests.hand_driven import HandDriven


class Replicas(HandDriven):
    """Replicas, and whatever else a lab drives."""

    def pump(self) -> None:
        """Let messages travel until none is left."""
        while sum(self._send_all(node) for node in sorted(self.drivers) if node in self.drivers):
            pass

    def _send_all(self, node: NodeId) -> bool:
        """Carry all messages of a process, or those before its crash; False if there are none."""
        self._note_delivered(node)
        sent = self.drivers[node].take_sent()
        for to, message in sent:
            self._carry(node, to, message)
            self._crash_if_due(message)
            if node not in self.drivers:
                break
        return bool(sent)

    def _note_delivered(self, node: NodeId) -> None:
        raise NotImplementedError

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        raise NotImplementedError

    def _crash_if_due(self, message: Message) -> None:
        """Crash a process if it is time for that, also in the middle of what it or another one sends."""
        raise NotImplementedError

    def begin_view(self, view: int, *nodes: NodeId) -> None:
        """Let replicas hear from each other that a view is to begin."""
        for node, other in zip(nodes, (*nodes[1:], nodes[0]), strict=True):
            self.drivers[node].receive(other, ViewChangeRequest(view))
        self.pump()
