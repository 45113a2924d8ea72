"""The live side of one process: its effects go to the wire, the timers, the store and the application."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from ordercast.core import Delivery, Env, Message, Nanos, NodeId, Process

if TYPE_CHECKING:
    from ordercast.kernel.backlog import Backlog
    from ordercast.net.host.live_host import LiveHost


class LiveEnv(Env):
    """What a process on real sockets sees and does."""

    __slots__ = ("_host", "backlog", "process", "role")

    process: Process

    def __init__(self, host: LiveHost, node: NodeId, role: str, backlog: Backlog | None) -> None:
        self.me = node
        self.now = 0
        self.rng = Random()
        self.role = role
        self.backlog = backlog
        self._host = host

    def send(self, to: NodeId, message: Message) -> None:
        """Put it into a datagram that leaves in this turn."""
        self._host.post(self.me, (to,), message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Put it into a datagram that goes to all of their hosts."""
        self._host.post(self.me, to if type(to) is tuple else tuple(to), message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Arm a timer; its time is real time."""
        self._host.timers.set(self.me, name, after)

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer."""
        self._host.timers.cancel(self.me, name)

    def deliver(self, delivery: Delivery) -> None:
        """Hand it to the application at the end of this turn."""
        self._host.delivered.append((self, delivery))

    def save(self, name: str, state: bytes | None) -> None:
        """Keep it; it is made durable before anything leaves this turn."""
        self._host.store.save(self.me, name, state)
