"""Which nodes are up, which crashed, and which lost their state. This decides whether a node is *correct*.

A node is correct if it is up at the end of the run and never lost its state. A node that crashed and came
back with its saved state is correct: to the others it was only slow.
"""

from ordercast.core import NodeId
from ordercast.trace import LOST, Event


class Population:
    """Crashes and recoveries so far."""

    __slots__ = ("crashes", "down", "lost")

    def __init__(self) -> None:
        self.down: set[NodeId] = set()
        self.lost: set[NodeId] = set()
        self.crashes: dict[NodeId, int] = {}

    def on_crash(self, event: Event) -> None:
        """A node went down."""
        self.down.add(event.node)
        self.crashes[event.node] = self.crashes.get(event.node, 0) + 1

    def on_recover(self, event: Event) -> None:
        """A node came back."""
        self.down.discard(event.node)
        if event.label == LOST:
            self.lost.add(event.node)

    def correct(self, node: NodeId) -> bool:
        """Whether a node is up now and has never lost its state."""
        return node not in self.down and node not in self.lost
