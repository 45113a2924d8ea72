"""The environment of one process on a live host: effects go to the host's turn, timers to its timers."""

from collections.abc import Callable, Sequence
from random import Random

from ordercast.core import Delivery, Env, Groups, Message, MessageId, Nanos, NodeId, Process
from ordercast.core.plan import Factory
from ordercast.net.host.timers import Timers
from ordercast.net.host.turn import Turn

Origin = Callable[[NodeId, Groups, bytes, bool], tuple[MessageId, Nanos]]


class LiveEnv(Env):
    """What a process on real sockets sees and does."""

    __slots__ = ("_origin", "_timers", "_turn", "forgot", "process")

    process: Process
    _timers: Timers

    def __init__(self, node: NodeId, turn: Turn) -> None:
        self.me = node
        self.now = 0
        self.rng = Random()
        self.forgot = False
        self._origin: Origin | None = None
        self._turn = turn

    def begin(self, now: Nanos, factory: Factory, timers: Timers, *, forgot: bool) -> None:
        """Make the process."""
        self.now = now
        self.forgot = forgot
        self._timers = timers
        self.process = factory(self)

    def send(self, to: NodeId, message: Message) -> None:
        """Put a message into a datagram that leaves in this turn."""
        self._turn.send(self.me, (to,), message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Put a message into a datagram to all hosts of these nodes."""
        self._turn.send(self.me, to if type(to) is tuple else tuple(to), message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Arm a timer, in real time."""
        self._timers.set(self.me, name, after)

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer."""
        self._timers.cancel(self.me, name)

    def deliver(self, delivery: Delivery) -> None:
        """Deliver to the application after this handler has returned and its saved state is durable."""
        self._turn.deliveries.append((self.me, delivery))

    def originate(self, groups: Groups, payload: bytes, *, read: bool = False) -> tuple[MessageId, Nanos]:
        """Give an operation of the process itself an identity, and put it on record."""
        if self._origin is None:
            return super().originate(groups, payload, read=read)
        return self._origin(self.me, groups, payload, read)

    def identify_by(self, origin: Origin) -> None:
        """Have operations of the process itself get their identities here."""
        self._origin = origin

    def save(self, name: str, state: bytes | None) -> None:
        """Save a value; it is durable before anything of this turn leaves the host."""
        self._turn.saves[self.me, name] = state
