"""An environment that only records the effects of a process."""

from collections.abc import Sequence
from random import Random

from ordercast.core import MICROSECOND, Delivery, Env, Groups, Message, MessageId, Nanos, NodeId, message_id


class RecordingEnv(Env):
    """Records every effect of a process for a test to look at. The test sets the clock."""

    def __init__(self, me: NodeId = 0, now: Nanos = 0, seed: int = 0) -> None:
        self.me = me
        self.now = now
        self.rng = Random(seed)
        self.sent: list[tuple[NodeId, Message]] = []
        """Each copy of each message, with its destination."""
        self.timers: dict[str, Nanos] = {}
        """Armed timers, and when they are due."""
        self.delivered: list[Delivery] = []
        self.originated: dict[MessageId, bytes] = {}
        """The operations that the process has submitted itself."""
        self._number = 0
        self.saved: dict[str, bytes] = {}
        """The state that a later life would start with."""

    def send(self, to: NodeId, message: Message) -> None:
        """Record it."""
        self.sent.append((to, message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Record a copy for each destination."""
        for node in to:
            self.send(node, message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Record when it is due."""
        self.timers[name] = self.now + after

    def cancel_timer(self, name: str) -> None:
        """Forget the timer."""
        self.timers.pop(name, None)

    def deliver(self, delivery: Delivery) -> None:
        """Record it."""
        self.delivered.append(delivery)

    def originate(self, groups: Groups, payload: bytes, *, read: bool = False) -> tuple[MessageId, Nanos]:
        """Record it; identities begin with the present time, so that no two lives use the same one."""
        self._number = max(self._number, self.now // MICROSECOND) + 1
        message = message_id(self.me, self._number)
        self.originated[message] = payload
        return message, self.now

    def save(self, name: str, state: bytes | None) -> None:
        """Keep the state, or forget it if it is None."""
        if state is None:
            self.saved.pop(name, None)
        else:
            self.saved[name] = state
