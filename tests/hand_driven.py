"""Processes driven by hand together: they share a clock, and messages go where a test lets them.

`HandDriven` has the clock. In a `HandDrivenNetwork` messages travel at once, in the order in which they were
sent, unless the test loses or holds them, or strikes when one of them comes.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ordercast.core import MILLISECOND, Env, Message, Nanos, NodeId, Process, RemoteError
from ordercast.testing import ProcessDriver, RecordingEnv

Sent = tuple[NodeId, NodeId, Message]
"""A message between its source and its target."""
Chosen = Callable[[NodeId, NodeId, Message], bool]
"""Chooses messages: by source, target and content."""


def nothing(source: NodeId, to: NodeId, message: Message) -> bool:
    """Choose no message."""
    return False


def never() -> bool:
    """Wait for nothing but the time."""
    return False


class Broken(AssertionError):
    """A promise of the protocol is not kept."""


def require(kept: bool, story: str) -> None:
    """Raise `Broken` if a promise is not kept."""
    if not kept:
        raise Broken(story)


class HandDriven:
    """Processes by node, with one clock for all."""

    def __init__(self, now: Nanos) -> None:
        self.now = now
        self.drivers: dict[NodeId, ProcessDriver[Any]] = {}
        """The processes that are up."""
        self.disks: dict[NodeId, dict[str, bytes]] = {}
        self.sent: list[Sent] = []
        self.lost: Chosen = nothing

    def pump(self) -> None:
        """Let messages travel until none is on its way."""
        raise NotImplementedError

    def wait(self, duration: Nanos, until: Callable[[], bool] = never) -> bool:
        """Let time pass everywhere, timer by timer, until something holds; False if it does not."""
        end = self.now + duration
        while not until():
            at, node, name = min(self._timers(), default=(end + 1, -1, ""))
            if at > end:
                self._set_time(end)
                return False
            self._set_time(max(self.now, at))
            self.drivers[node].fire(name)
            self._after_timer(node)
        return True

    def _timers(self) -> list[tuple[Nanos, NodeId, str]]:
        """When which timer of whom is due."""
        return [(at, node, name) for node, d in self.drivers.items() for name, at in d.env.timers.items()]

    def _after_timer(self, node: NodeId) -> None:
        self.pump()

    def _set_time(self, now: Nanos) -> None:
        self.now = now
        for driver in self.drivers.values():
            driver.env.now = now

    def kinds(self, kind: type[Message]) -> int:
        """How many messages of a kind were sent."""
        return sum(isinstance(message, kind) for _, _, message in self.sent)


class Strike(NamedTuple):
    """What happens to the message number `nth` of those that are chosen."""

    chosen: Chosen
    nth: int
    how: str
    """`lost`: it is lost. `before`, `after`: its target crashes before it handles the message, or after that
    and before it sends anything. `sender`: its source crashes when it has sent it."""


class HandDrivenNetwork(HandDriven):
    """Processes with a network between them that keeps the order of messages."""

    def __init__(self, now: Nanos, factories: dict[NodeId, Callable[[Env], Process]]) -> None:
        super().__init__(now)
        self.factories = factories
        self.hold: Chosen = nothing
        self.held: list[Sent] = []
        self.on_way: deque[Sent] = deque()
        self.strike: Strike | None = None
        self.struck: NodeId | None = None
        """Who has crashed by the strike, or was to get what was lost."""
        self.refused: Counter[str] = Counter()

    def _note(self, node: NodeId) -> None:
        """Note what a process has delivered."""
        raise NotImplementedError

    # Processes

    def _start(self, node: NodeId) -> None:
        env = RecordingEnv(node, self.now, seed=node)
        self.drivers[node] = ProcessDriver(self.factories[node], saved=self.disks.get(node, {}), env=env)
        self._collect(node)

    def start(self, *nodes: NodeId) -> None:
        """Start processes, with what is on their disks."""
        for node in nodes:
            self._start(node)
        self.pump()

    def start_missing(self) -> None:
        """Start all processes that are down."""
        self.start(*sorted(set(self.factories) - set(self.drivers)))

    def crash(self, *nodes: NodeId) -> None:
        """Stop processes; their disks stay. What they were about to send is lost."""
        for node in nodes:
            self._note(node)
            self.disks[node] = dict(self.drivers.pop(node).env.saved)

    # Messages

    def pump(self) -> None:
        """Let messages travel until none is on its way."""
        while self.on_way:
            self._carry(*self.on_way.popleft())

    def _collect(self, node: NodeId) -> None:
        """Take what a process has sent and delivered."""
        self._note(node)
        self.on_way.extend((node, to, message) for to, message in self.drivers[node].take_sent())

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        strike = self.strike
        if strike is not None and strike.chosen(source, to, message):
            self.strike = strike = strike._replace(nth=strike.nth - 1)
            if strike.nth == 0:
                self._strike(strike.how, source, to, message)
                return
        if self._stops(source, to, message):
            return
        if self.hold(source, to, message):
            self.held.append((source, to, message))
            return
        self.give(source, to, message)

    def _stops(self, source: NodeId, to: NodeId, message: Message) -> bool:
        """Whether a message does not arrive."""
        return self.lost(source, to, message)

    def _strike(self, how: str, source: NodeId, to: NodeId, message: Message) -> None:
        self.struck = source if how == "sender" else to
        if how == "after" and to in self.drivers:
            self._handle(source, to, message)
        if how != "lost":
            self._crash_struck(how, self.struck)
        if how == "sender":
            self.give(source, to, message)

    def _crash_struck(self, how: str, struck: NodeId) -> None:
        if struck in self.drivers:
            self.crash(struck)

    def give(self, source: NodeId, to: NodeId, message: Message) -> None:
        """Let a message arrive."""
        if to in self.drivers:
            self._handle(source, to, message)
            self._collect(to)

    def _handle(self, source: NodeId, to: NodeId, message: Message) -> None:
        try:
            self.drivers[to].receive(source, message)
        except RemoteError as error:
            self.refused[str(error)] += 1

    def release(self) -> None:
        """Let everything that was held arrive, and hold nothing more."""
        self.hold = nothing
        held, self.held = self.held, []
        for told in held:
            self.give(*told)
        self.pump()

    # Time

    def wait_ms(self, duration: float, until: Callable[[], bool] = never) -> bool:
        """Let milliseconds pass, or fewer if something holds before."""
        return self.wait(round(duration * MILLISECOND), until)

    def _after_timer(self, node: NodeId) -> None:
        self._collect(node)
        self.pump()
