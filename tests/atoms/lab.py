"""Sequencing atoms, driven by hand: all processes of a deployment, and a network that does what a test says.

Messages travel at once, in the order in which they were sent, unless the test loses or holds them. Time
passes when the test says so. `Lab.finish` lets everything heal and names the promises that were broken.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ordercast.core import (
    MILLISECOND,
    Delivered,
    Deployment,
    GroupId,
    Joined,
    Left,
    Message,
    Nanos,
    NodeId,
    RemoteError,
)
from ordercast.protocols.atoms.messages import Entries
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.protocol import deploy
from ordercast.protocols.atoms.records import Placed
from ordercast.testing import ProcessDriver, RecordingEnv
from tests.atoms.promises import History

Chosen = Callable[[NodeId, NodeId, Message], bool]
"""Chooses messages: by source, target and content."""


def nothing(source: NodeId, to: NodeId, message: Message) -> bool:
    """Choose no message."""
    return False


def kinds(*types: type[Message]) -> Chosen:
    """Choose all messages of some types."""
    return lambda source, to, message: isinstance(message, types)


class Strike(NamedTuple):
    """What happens to the message number `nth` of those that are chosen."""

    chosen: Chosen
    nth: int
    how: str
    """`lost`: it is lost. `before`, `after`: its target crashes before it handles the message, or after that
    and before it sends anything. `sender`: its source crashes when it has sent it."""


class Lab:
    """All processes, by node."""

    def __init__(
        self,
        *groups: tuple[NodeId, ...],
        publishers: int = 1,
        joiners: int = 0,
        store: int = 1,
        **options: Any,
    ) -> None:
        self.options = AtomsOptions(store=store, **options)
        self.plan = deploy(Deployment(groups, publishers, joiners=joiners), self.options)
        self.factories = {node.id: node.factory for node in self.plan.nodes}
        self.publishers, self.nodes, self.store = (
            tuple(node.id for node in self.plan.nodes if node.role == role)
            for role in ("publisher", "sequencing node", "store")
        )
        self.history = History(groups, causal=self.options.causal)
        self.now: Nanos = 1
        self.lost: Chosen = nothing
        self.hold: Chosen = nothing
        self.held: list[tuple[NodeId, NodeId, Message]] = []
        self.on_way: deque[tuple[NodeId, NodeId, Message]] = deque()
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        """All that was sent, but for what goes between replicas of the store."""
        self.strike: Strike | None = None
        self.struck: NodeId | None = None
        """Who has crashed by the strike, or was to get what was lost."""
        self.refused: Counter[str] = Counter()
        self.drivers: dict[NodeId, ProcessDriver[Any]] = {}
        self.disks: dict[NodeId, dict[str, bytes]] = {}
        for node in self.factories:
            self._start(node)
        self.pump()
        self.wait_ms(30)  # the store elects its leader

    # Processes

    def _start(self, node: NodeId) -> None:
        env = RecordingEnv(node, self.now, seed=node)
        self.drivers[node] = ProcessDriver(self.factories[node], saved=self.disks.get(node, {}), env=env)
        self._collect(node)

    def start(self, *nodes: NodeId) -> None:
        """Start processes again, with what is on their disks."""
        for node in nodes:
            self._start(node)
        self.pump()

    def crash(self, *nodes: NodeId) -> None:
        """Stop processes; their disks stay. What they were about to send is lost."""
        for node in nodes:
            self._note(node)
            self.disks[node] = dict(self.drivers.pop(node).env.saved)
            if node in self.publishers:
                self.history.crashed.add(node)

    def process(self, node: NodeId) -> Any:
        """A process that is up."""
        return self.drivers[node].process

    # The network

    def pump(self) -> None:
        """Let messages travel until none is on its way."""
        while self.on_way:
            source, to, message = self.on_way.popleft()
            self._carry(source, to, message)

    def _collect(self, node: NodeId) -> None:
        """Take what a process has sent and delivered."""
        self._note(node)
        self.on_way.extend((node, to, message) for to, message in self.drivers[node].take_sent())

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        if source not in self.store or to not in self.store:
            self.sent.append((source, to, message))
        strike = self.strike
        if strike is not None and strike.chosen(source, to, message):
            self.strike = strike = strike._replace(nth=strike.nth - 1)
            if strike.nth == 0:
                self._strike(strike.how, source, to, message)
                return
        if self.lost(source, to, message):
            return
        if self.hold(source, to, message):
            self.held.append((source, to, message))
            return
        self.give(source, to, message)

    def _strike(self, how: str, source: NodeId, to: NodeId, message: Message) -> None:
        victim = source if how == "sender" else to
        self.struck = victim
        if how == "after" and to in self.drivers:
            self._handle(source, to, message)
        if how != "lost" and victim in self.drivers:
            self.crash(victim)
        if how == "sender":
            self.give(source, to, message)

    def give(self, source: NodeId, to: NodeId, message: Message) -> None:
        """Let a message arrive."""
        if to in self.drivers:
            self._handle(source, to, message)
            self._collect(to)

    def _handle(self, source: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Entries) and to not in self.nodes:
            self._see(message)
        try:
            self.drivers[to].receive(source, message)
        except RemoteError as error:
            self.refused[str(error)] += 1

    def _see(self, message: Entries) -> None:
        """Note the numbers that a subscriber sees."""
        for entry in message.entries:
            if isinstance(entry, Placed):
                content = (message.group, entry.payload)
                for atom, number in entry.stamps:
                    self.history.numbers.setdefault((entry.label, atom, number), set()).add(content)

    def release(self) -> None:
        """Let everything that was held arrive, and hold nothing more."""
        self.hold = nothing
        held, self.held = self.held, []
        for told in held:
            self.give(*told)
        self.pump()

    def _note(self, node: NodeId) -> None:
        for delivery in self.drivers[node].take_delivered():
            match delivery:
                case Delivered(payload=payload, groups=(group,), stamp=stamp) if stamp is not None:
                    self.history.deliver(node, group, stamp.clock, payload.decode())
                case Joined(group=group, stamp=stamp) if stamp is not None:
                    self.history.join(node, group, stamp.clock)
                case Left(group=group, stamp=stamp) if stamp is not None:
                    self.history.leave(node, group, stamp.clock)

    # Time

    def wait_ms(self, duration: float) -> None:
        """Let time pass everywhere, timer by timer."""
        end = self.now + round(duration * MILLISECOND)
        while True:
            timers = (
                (at, node, name) for node, d in self.drivers.items() for name, at in d.env.timers.items()
            )
            at, node, name = min(timers, default=(end + 1, -1, ""))
            if at > end:
                break
            self._set_time(max(self.now, at))
            self.drivers[node].fire(name)
            self._collect(node)
            self.pump()
        self._set_time(end)

    def _set_time(self, now: Nanos) -> None:
        self.now = now
        for driver in self.drivers.values():
            driver.env.now = now

    # The application

    def submit(self, text: str, group: GroupId = 0, publisher: int = 0) -> bool:
        """Send a message to a group."""
        node = self.publishers[publisher]
        if not self.process(node).submit((group,), text.encode()):
            return False
        self.history.submitted[text] = (node, group)
        self._collect(node)
        self.pump()
        return True

    def join(self, node: NodeId, group: GroupId) -> None:
        """A subscriber asks to be in a group."""
        self.process(node).join(group)
        self._collect(node)
        self.pump()

    def leave(self, node: NodeId, group: GroupId) -> None:
        """A subscriber asks to be in a group no longer."""
        self.process(node).leave(group)
        self._collect(node)
        self.pump()

    # What a test looks at

    def log(self, node: NodeId, group: GroupId | None = None) -> list[str]:
        """What a subscriber has delivered, of one group or of all."""
        return [one.text for one in self.history.delivered[node] if group in (None, one.group)]

    def leader(self) -> Any:
        """The leader of the store; the latest, if an earlier one does not know of it."""
        up = [self.process(node) for node in self.store if node in self.drivers]
        return max((one for one in up if one._log.is_leader), key=lambda one: int(one._log.ballot))

    def registry(self) -> Any:
        """What the leader of the store knows."""
        return self.leader()._registry

    def distributor(self, group: GroupId) -> NodeId:
        """Who sends a group to its subscribers."""
        return int(self.registry().plans[group].holders[-1].node)

    def ingress(self, group: GroupId) -> NodeId:
        """Who takes messages to a group."""
        return int(self.registry().plans[group].hops[0].post.node)

    def count(self, *types: type[Message]) -> int:
        """How many messages of some types were sent."""
        return sum(isinstance(message, types) for _, _, message in self.sent)

    def finish(self, duration_ms: float = 1000) -> set[str]:
        """Heal everything and let it settle; the names of the promises that were broken, the best is none."""
        self.lost, self.strike = nothing, None
        self.release()
        self.start(*sorted(set(self.factories) - set(self.drivers)))
        self.wait_ms(duration_ms)
        found = self.history.broken()
        if self.refused:
            found.add("refusals")
        doubt = any(self.process(node).in_doubt for node in self.publishers)
        return found | ({"validity"} if doubt else set())
