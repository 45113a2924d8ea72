"""An environment that does nothing but note what a process wants done."""

from collections.abc import Sequence
from random import Random

from ordercast.core import Delivery, Env, Message, Nanos, NodeId


class RecordingEnv(Env):
    """Every effect of a process, for a test to look at; a test sets the clock."""

    def __init__(self, me: NodeId = 0, now: Nanos = 0, seed: int = 0) -> None:
        self.me = me
        self.now = now
        self.rng = Random(seed)
        self.sent: list[tuple[NodeId, Message]] = []
        """Each copy of each message, and whom it is for."""
        self.timers: dict[str, Nanos] = {}
        """Armed timers, and when they are due."""
        self.delivered: list[Delivery] = []
        self.saved: dict[str, bytes] = {}
        """What a later life would be started with."""

    def send(self, to: NodeId, message: Message) -> None:
        """Note it."""
        self.sent.append((to, message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Note a copy for each."""
        for node in to:
            self.send(node, message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Note when it is due."""
        self.timers[name] = self.now + after

    def cancel_timer(self, name: str) -> None:
        """Forget it."""
        self.timers.pop(name, None)

    def deliver(self, delivery: Delivery) -> None:
        """Note it."""
        self.delivered.append(delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Keep it, or forget it."""
        if state is None:
            self.saved.pop(name, None)
        else:
            self.saved[name] = state
