"""The peers of EpTO themselves, driven tick by tick in the engine's model of the world.

Nothing here is shared with the engine but the setup, the latencies and the rules of the model: who draws what
from which stream. Rounds, balls, ages, clocks and deliveries are the peers' own.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ordercast.components.sampling import Sampler, Uniform, below, choose, draw, stream
from ordercast.core import Delivered, Delivery, Env, Message, NodeId
from ordercast.engines.epto.events import BROADCAST
from ordercast.engines.epto.network import LATENCY, LOSS, Latencies
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import CHURN, PROCESSES
from ordercast.protocols.epto.clocks import GlobalClock, LogicalClock, StampClock
from ordercast.protocols.epto.messages import Ball
from ordercast.protocols.epto.peer import Peer, Setting
from ordercast.protocols.epto.rounds import PERIODS
from ordercast.protocols.epto.stability import Stability
from ordercast.testing import RecordingEnv

Event = tuple[int, int]
"""Its source, and the source's round."""


@dataclass
class Story:
    """What happened."""

    events: list[tuple[int, Event]] = field(default_factory=list)
    """Tick of birth and name, in order."""
    stamps: dict[Event, int] = field(default_factory=dict)
    delivered: dict[tuple[int, Event], int] = field(default_factory=dict)
    """By process and event, the tick."""
    sequences: dict[int, list[Event]] = field(default_factory=lambda: defaultdict(list))
    arrived: dict[tuple[int, Event], int] = field(default_factory=dict)
    """By process and event, the tick of the first ball that it could relay."""
    balls: dict[Event, int] = field(default_factory=lambda: defaultdict(int))
    """How many such balls arrived."""
    relayed: dict[tuple[int, Event], int] = field(default_factory=dict)
    """By process and event, the tick of the first round in which the process relayed it."""


class TickEnv(RecordingEnv):
    """A process's world."""

    def __init__(self, me: NodeId, world: "World") -> None:
        super().__init__(me, world.now)
        self.world = world

    def send(self, to: NodeId, message: Message) -> None:
        raise AssertionError("peers that know the time only throw balls")

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        assert isinstance(message, Ball)
        self.world.throw(self.me, to, message)

    def deliver(self, delivery: Delivery) -> None:
        assert isinstance(delivery, Delivered) and delivery.stamp is not None
        event = name_of(delivery.payload)
        self.world.story.delivered[self.me, event] = self.now
        self.world.story.sequences[self.me].append(event)
        self.world.story.stamps[event] = delivery.stamp.clock

    def save(self, name: str, state: bytes | None) -> None:
        raise AssertionError("nothing is durable here")


def payload_of(event: Event) -> bytes:
    return f"{event[0]} {event[1]}".encode()


def name_of(payload: bytes) -> Event:
    source, number = payload.split()
    return int(source), int(number)


Views = dict[tuple[NodeId, int], list[NodeId]]
"""By process and round, whom it sends to."""


class Told(Sampler):
    """Sends to whom it is told to."""

    def __init__(self, env: Env, world: "World", views: Views) -> None:
        super().__init__(env)
        self.me = env.me
        self.world = world
        self.views = views

    def sample(self, round_number: int, count: int) -> list[NodeId]:
        return self.views[self.me, round_number][:count]

    def known(self) -> Sequence[NodeId]:
        return self.views[self.me, self.world.turn[self.me][1]] if self.me in self.world.turn else []


class World:
    """All peers, and what is between them."""

    def __init__(self, setup: Setup, latencies: Latencies, ticks: int, views: Views | None = None) -> None:
        self.views = views
        self.setup = setup
        self.matrix = latencies.matrix.tolist()
        self.values = latencies.values.tolist()
        self.ticks = ticks
        self.now = 0
        self.story = Story()
        self.latest = 0
        self.current: list[NodeId] = list(range(setup.processes))
        self.slot = {process: process for process in range(setup.processes)}
        self.peers: dict[NodeId, Peer] = {}
        self.turn: dict[NodeId, tuple[int, int]] = {}
        """The tick and the number of a process's next round."""
        self.joined: dict[NodeId, int] = {}
        self.under_way: dict[int, list[tuple[NodeId, NodeId, Ball]]] = defaultdict(list)
        steps = (ticks - 1) // setup.round_ticks if setup.leavers else 0
        self.everyone = setup.processes + steps * setup.leavers
        self.setting = Setting(
            fanout=setup.fanout,
            ttl=setup.ttl,
            round_ns=setup.round_ticks,
            jitter_ns=setup.drift_ticks,
            window=1 << 20,
            events=1 << 20,
            peers=self.everyone,
            groups={0: tuple(range(self.everyone))},
            asks_time=False,
            tags=False,
            memory=16,
            durable=False,
            together=setup.in_step,
        )
        self.stability = Stability(setup.processes, setup.fanout, setup.ttl)

    def seed(self, process: NodeId) -> int:
        return draw(stream(self.setup.seed, PROCESSES), process, 0)

    def begin(self, process: NodeId) -> None:
        """A process starts; whoever introduces it tells it the logical time."""
        env, seed, setup = TickEnv(process, self), self.seed(process), self.setup
        clock: StampClock = GlobalClock(1 << 40)
        if setup.clock == "logical":
            clock = LogicalClock()
            clock.hear(self.latest)
        sampler: Callable[[Env], Sampler] = partial(Uniform, seed=seed, peers=self.current)
        if self.views is not None:
            sampler = partial(Told, world=self, views=self.views)
        peer = Peer(env, self.setting, clock, sampler, self.stability, seed)
        peer.on_start({})
        phase = 0 if setup.in_step else below(draw(stream(seed, PERIODS), 0, 0), setup.round_ticks)
        self.peers[process] = peer
        self.joined[process] = self.now
        self.turn[process] = (self.now + phase, 1)

    def throw(self, source: NodeId, targets: Sequence[NodeId], ball: Ball) -> None:
        """Balls leave; each is lost, or arrives after the latency of its pair."""
        number = self.turn[source][1]
        losses = stream(self.seed(source), LOSS)
        for place, target in enumerate(targets):
            if self.setup.loss and draw(losses, number, place) < int(self.setup.loss * 2.0**64):
                continue
            takes = self.latency(self.slot[source], self.slot[target])
            if takes >= 0:
                self.under_way[self.now + takes].append((source, target, ball))

    def latency(self, source: int, target: int) -> int:
        if source < len(self.matrix) and target < len(self.matrix):
            return int(self.matrix[source][target])
        pick = below(draw(stream(self.setup.seed, LATENCY), source, target), len(self.values))
        return int(self.values[pick])

    def run(self) -> Story:
        for process in range(self.setup.processes):
            self.begin(process)
        for tick in range(self.ticks):
            self.now = tick
            self.churn()
            self.arrive()
            for process in self.current:
                if self.turn[process][0] == self.now:
                    self.take_turn(process)
        return self.story

    def churn(self) -> None:
        setup = self.setup
        if not setup.leavers or self.now == 0 or self.now % setup.round_ticks:
            return
        step = self.now // setup.round_ticks - 1
        leavers = choose(stream(setup.seed, CHURN), step, setup.leavers, setup.processes)
        for place, slot in enumerate(leavers):
            process = setup.processes + step * setup.leavers + place
            del self.peers[self.current[slot]]
            self.current[slot] = process
            self.slot[process] = slot
            self.begin(process)

    def arrive(self) -> None:
        for source, target, ball in self.under_way.pop(self.now, ()):
            peer = self.peers.get(target)
            if peer is None:
                continue
            for event, ttl in zip(ball.events, ball.ttls, strict=True):
                if ttl < self.setup.ttl:
                    name = name_of(event.payload)
                    self.story.arrived.setdefault((target, name), self.now)
                    self.story.balls[name] += 1
            peer.env.now = self.now
            peer.on_message(source, ball)

    def take_turn(self, process: NodeId) -> None:
        peer, setup = self.peers[process], self.setup
        _, number = self.turn[process]
        peer.env.now = self.now
        broadcasts = draw(stream(self.seed(process), BROADCAST), number, 0) < int(setup.rate * 2.0**64)
        if broadcasts and self.now < setup.rounds * setup.round_ticks:
            event = (process, number)
            if peer.submit((0,), payload_of(event)):
                self.story.events.append((self.now, event))
                self.latest = max(self.latest, peer._stamped)
            else:
                assert self.views is not None, "who knows all peers may broadcast at once"
        env = peer.env
        assert isinstance(env, TickEnv)
        due = env.timers.pop("round", None)
        if due is not None:
            assert due == self.now, "a peer runs its rounds when the model says"
            for relayed in peer._next.events.values():
                self.story.relayed.setdefault((process, name_of(relayed.payload)), self.now)
            peer.on_timer("round")
        self.turn[process] = (self.next_round(process, number), number + 1)

    def next_round(self, process: NodeId, number: int) -> int:
        """The tick of the round after this one, which is now."""
        setup, width = self.setup, self.setup.drift_ticks
        drift = below(draw(stream(self.seed(process), PERIODS), number, 1), 2 * width + 1) - width
        if setup.in_step:
            return self.joined[process] + number * setup.round_ticks + drift
        return self.now + setup.round_ticks + drift
