"""Hydra, broken inside: receivers, sequencers and the configuration service (NSDI 2023, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ordercast.core import Dropped, Env, NodeId, Plan
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE, JOINING
from ordercast.protocols.hydra.merge import END, Merge, Position
from ordercast.protocols.hydra.messages import NEVER, Groupcast, Report
from ordercast.protocols.hydra.registry import Add, Command, Registry
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.stamping_clock import StampingClock
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import Run, simulate
from tests.sim.hydra_scenes import (
    CULPRIT,
    doubling,
    durable_restart,
    group_cut_off,
    lossy,
    near_minority,
    rejoining,
    scene,
    sequencer_crash,
    sequencer_cut_off,
    service_split,
    tail_lost,
)
from tests.sim.mutant import Mutant
from tests.sim.mutants_atomic import ForgetfulEnv

Make = Callable[[Env], Any]
Alter = Callable[..., Any]
Change = tuple[str, Alter, NodeId | None]
"""A role, how its processes are made, and of which node if not of all."""


def changed(plan: Plan, *changes: Change) -> Plan:
    """The plan with some processes made in another way."""
    nodes = plan.nodes
    for role, alter, only in changes:
        nodes = tuple(
            replace(node, factory=partial(alter, make=node.factory))
            if node.role == role and only in (None, node.id)
            else node
            for node in nodes
        )
    return replace(plan, nodes=nodes)


# Receivers


class Hasty(Merge):
    """Goes by the fastest sequencer instead of the slowest, and forgets what it delivered last."""

    __slots__ = ()

    def floor(self) -> Position:
        """The highest clock instead of the lowest."""
        return max(((lane.safe, lane.sequencer) for lane in self.lanes.values()), default=END)

    def take(self, limit: Position = END) -> Groupcast | None:
        """Whatever may go."""
        packet = super().take(limit)
        self.last = (0, 0)
        return packet


class Contrary(Merge):
    """Takes the sequencer with the higher number first where clocks are equal."""

    __slots__ = ()

    def take(self, limit: Position = END) -> Groupcast | None:
        """The twin of the first, if it has one."""
        first = self.head()
        if first is None or first > min(limit, self.floor()):
            return None
        twins = [place for place in self._heads if place[0] == first[0] and place != first]
        if not twins:
            return super().take(limit)
        packet = self.lanes[twins[0][1]].queue.popleft()
        self.held -= 1
        self._rebuild()
        return packet


class Unending(Merge):
    """A removed sequencer stays: it is waited for no more, but what comes of it is taken."""

    __slots__ = ()

    def finish(self, lane: Lane, final: tuple[int, ...]) -> None:
        """Only stop waiting."""
        lane.state = ACTIVE
        lane.note(final[self.group], NEVER - 1)
        self._rebuild()

    def discard(self, sequencer: int) -> None:
        """Keep it."""

    def take(self, limit: Position = END) -> Groupcast | None:
        """Whatever may go, however late it is."""
        packet = super().take(limit)
        self.last = (0, 0)
        return packet


class Silent(Merge):
    """Does not miss what a removed sequencer has not sent."""

    __slots__ = ()

    def finish(self, lane: Lane, final: tuple[int, ...]) -> None:
        """What is missing is called settled."""
        super().finish(lane, final)
        while lane.has_gap:
            self.skip(lane, lane.high)


class _CredulousLane(Lane):
    __slots__ = ()

    def _pull(self) -> int:
        while (packet := self.early.pop(self.front + 1, None)) is not None:
            self.front += 1
            self.queue.append(packet)
        self.first_early = min(self.early, default=0)
        return 0


class Credulous(Merge):
    """Believes a sequencer whose clock goes back."""

    __slots__ = ()

    def add(self, lane: Lane) -> None:
        """Add a lane that compares no clocks."""
        lane.__class__ = _CredulousLane
        super().add(lane)

    def offer(self, lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
        """Take a packet whose clock is not above that of the packet before."""
        if number == lane.front + 1 and lane.queue and packet.clock <= lane.queue[-1].clock:
            self.held += 1
            lane.append(packet)
            return True
        return super().offer(lane, packet, number, room)


def merging(merge: type[Merge], env: Env, make: Make) -> Any:
    """A receiver with another merge."""
    receiver = make(env)
    receiver._merge.__class__ = merge
    return receiver


def forgetful(env: Env, make: Make) -> Any:
    """Does not notify of every third gap."""
    receiver = make(env)
    deliver, count = receiver._deliver, iter(range(1 << 30))
    receiver._deliver = lambda delivery: (
        None if isinstance(delivery, Dropped) and next(count) % 3 == 1 else deliver(delivery)
    )
    return receiver


def early_starter(env: Env, make: Make) -> Any:
    """Takes one message too many of a sequencer that is added."""
    receiver = make(env)
    merge = receiver._merge
    add = merge.add

    def add_early(lane: Lane) -> None:
        if lane.front > 0 and lane.state is not JOINING:
            lane.front -= 1
        add(lane)

    receiver.reception.merge = receiver._follower._merge = Proxy(merge, add=add_early)
    return receiver


def self_willed(env: Env, make: Make) -> Any:
    """Ends a removed sequencer after the numbers that it has seen itself."""
    receiver = make(env)
    install = receiver.changed
    seen: dict[int, int] = {}
    finish = receiver._merge.finish

    def finish_alone(lane: Lane, final: tuple[int, ...]) -> None:
        seen[lane.sequencer] = lane.high
        finish(lane, tuple(min(number, lane.high) for number in final))

    def install_alone(step: Any) -> None:
        numbers = tuple(min(number, seen.get(step.sequencer, number)) for number in step.numbers)
        install(type(step)(step.change, step.sequencer, step.node, step.config, step.clock, numbers))

    receiver.reception.merge = receiver._follower._merge = Proxy(receiver._merge, finish=finish_alone)
    receiver.changed = install_alone
    return receiver


def own_group_only(env: Env, make: Make) -> Any:
    """Reports nothing of other groups when a sequencer is removed."""
    receiver = make(env)
    follower = receiver._follower
    send = follower._send_report

    def send_own(report: Report) -> None:
        numbers = [0] * len(report.numbers)
        numbers[receiver.group] = report.numbers[receiver.group]
        send(Report(report.step, report.sequencer, report.clock, tuple(numbers)))

    follower._send_report = send_own
    return receiver


class Proxy:
    """Another object with some of its methods replaced: a merge has no room for them."""

    def __init__(self, inner: Any, **methods: Any) -> None:
        self.__dict__["inner"] = inner
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)


class NoPlace(ForgetfulEnv):
    """Loses the place of a receiver."""

    forgets = "receiver"


def on_a_bad_disk(env: Env, make: Make) -> Any:
    """Saves to a disk that loses everything."""
    return make(NoPlace(env, lambda meddler, delivery: [delivery]))


# Sequencers and senders


class Coarse(StampingClock):
    """Goes in steps of a tenth of a millisecond."""

    def tick(self) -> int:
        self.last = max(self._env.now // 100_000 * 100_000, self.last + 1)
        return self.last


class Backward(StampingClock):
    """Is set back by 2 ms every other time."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.count = 0

    def tick(self) -> int:
        self.count += 1
        back = 2_000_000 if self.count % 2 == 0 and self._env.now > 5_000_000 else 0
        return super().tick() - back


def coarse(env: Env, make: Make) -> Any:
    """A coarse clock. Allowed: it only makes equal clocks common."""
    sequencer = make(env)
    sequencer._clock = Coarse(env)
    return sequencer


def backward(env: Env, make: Make) -> Any:
    """A clock that is set back."""
    sequencer = make(env)
    sequencer._clock = Backward(env)
    return sequencer


class _Miscounting(list[int]):
    """Numbers of groups that sometimes stay as they are."""

    def __init__(self, numbers: list[int], skips: Callable[[int], bool]) -> None:
        super().__init__(numbers)
        self.skips = skips

    def __setitem__(self, group: Any, number: Any) -> None:
        if not self.skips(group):
            super().__setitem__(group, number)


def miscounting(skips: Callable[[], Callable[[int], bool]], env: Env, make: Make) -> Any:
    """Does not count every message of every group."""
    sequencer = make(env)
    welcome = sequencer._on_welcome

    def on_welcome(message: Any) -> None:
        welcome(message)
        if not isinstance(sequencer._numbers, _Miscounting):
            sequencer._numbers = _Miscounting(sequencer._numbers, skips())

    sequencer._on_welcome = on_welcome
    return sequencer


def every_other_of_group_1() -> Callable[[int], bool]:
    """Of the second group every other message, from the tenth on."""
    count = iter(range(1 << 30))
    return lambda group: group == 1 and (n := next(count)) > 10 and n % 2 == 0


def every_tenth() -> Callable[[int], bool]:
    """Every tenth message has the number of the one before it."""
    count = iter(range(1 << 30))
    return lambda group: next(count) % 10 == 9


class _Trusting(dict[NodeId, Any]):
    """Takes every request for a new one."""

    def get(self, key: NodeId, default: Any = None) -> Any:
        """There is nothing to remember."""
        return self

    def admit(self, number: int) -> bool:
        """Always."""
        return True


def trusting(env: Env, make: Make) -> Any:
    """Does not recognise copies of requests."""
    sequencer = make(env)
    sequencer._seen = _Trusting()
    return sequencer


def eager(env: Env, make: Make) -> Any:
    """A sender that uses a new sequencer as soon as it is planned. Allowed: it only makes numbers that are
    used before the sequencer is added."""
    sender: Sender = make(env)
    handler = sender.on_message

    def on_message(source: NodeId, message: Any) -> None:
        planned = getattr(message, "planned", None)
        handler(source, message)
        if planned is not None and planned.change == "added":
            sender._active = (*sender._active, (planned.sequencer, planned.node))
            sender._choose()

    sender.on_message = on_message  # type: ignore[method-assign]
    return sender


# The service


class Recycling(Registry):
    """Gives a node that comes back the number that it had."""

    def apply(self, command: Command) -> None:
        """Take the number of the earlier life."""
        if isinstance(command, Add) and command.node in self.lives and self.planned is None:
            _, number = self.lives[command.node]
            following, self._next = self._next, number
            super().apply(command)
            self._next = following
        else:
            super().apply(command)


def recycling(env: Env, make: Make) -> Any:
    """A service that uses numbers of sequencers again."""
    replica = make(env)
    replica._registry.__class__ = Recycling
    return replica


def dictatorial(env: Env, make: Make) -> Any:
    """Every replica of the service decides alone."""
    replica = make(env)
    replica._log._group.majority = 1
    return replica


def hurried(env: Env, make: Make) -> Any:
    """A service that takes the first report of each group for a quorum."""
    replica = make(env)
    reports = replica._reports
    reports.has_quorums = lambda: all(
        any(node in reports._given for node in nodes) for nodes in reports._members.values()
    )
    return replica


# The table


def run(scenario: Callable[[int], Scenario], changes: tuple[Change, ...], seed: int) -> Run:
    """One run of a broken plan."""
    chosen = scenario(seed)
    return simulate(chosen, changed(chosen.plan(), *changes))


def _hydra(
    name: str,
    breaks: set[str],
    scenario: Callable[[int], Scenario],
    *changes: Change,
    also: frozenset[str] = frozenset(),
    seeds: int = 6,
) -> Mutant:
    nodes = {node for _, _, node in changes if node is not None}
    culprit = CULPRIT if nodes == {CULPRIT} else None
    return Mutant(name, frozenset(breaks), partial(run, scenario, changes), culprit, also, seeds)


def _receiver(alter: Alter) -> Change:
    return ("receiver", alter, CULPRIT)


def _sequencers(alter: Alter) -> Change:
    return ("sequencer", alter, None)


ORDER = frozenset({"total-order", "acyclic-order", "stamp-order"})
HYDRA_MUTANTS = [
    _hydra("hydra: a receiver goes by the fastest sequencer", {"total-order", "stamp-order"}, scene,
           _receiver(partial(merging, Hasty)), also=ORDER | {"drop-detection"}),
    _hydra("hydra: a receiver breaks ties the other way", {"total-order", "stamp-order"}, scene,
           _sequencers(coarse), _receiver(partial(merging, Contrary)), also=ORDER),
    _hydra("hydra: a receiver forgets notifications", {"drop-detection", "agreement"}, lossy,
           _receiver(forgetful)),
    _hydra("hydra: a receiver takes messages of a removed sequencer", {"drop-detection", "stamp-order"},
           sequencer_cut_off, _receiver(partial(merging, Unending)), also=ORDER),
    _hydra("hydra: a receiver passes a removal in silence", {"drop-detection"}, tail_lost,
           _receiver(partial(merging, Silent)), also=frozenset({"agreement"})),
    _hydra("hydra: a receiver ends a removed sequencer by itself", {"drop-detection"}, tail_lost,
           _receiver(self_willed), also=frozenset({"agreement"})),
    _hydra("hydra: a receiver begins an added sequencer early", {"drop-detection"}, rejoining,
           ("sender", eager, None), _receiver(early_starter), also=frozenset({"agreement"})),
    _hydra("hydra: a receiver loses its place", {"drop-detection"}, durable_restart,
           _receiver(on_a_bad_disk)),
    # Receivers refuse what such a sequencer stamps, and say that it was dropped: the network lost none of it.
    _hydra("hydra: a sequencer's clock is set back", {"drop-reason"}, lossy, _sequencers(backward)),
    _hydra("hydra: a sequencer's clock is set back, and receivers believe it", {"total-order", "stamp-order"},
           lossy, _sequencers(backward), ("receiver", partial(merging, Credulous), None), also=ORDER),
    _hydra("hydra: a sequencer does not count one of two groups", {"agreement", "stamp-owner"}, scene,
           _sequencers(partial(miscounting, every_other_of_group_1)), also=ORDER),
    _hydra("hydra: a sequencer uses a number twice", {"agreement", "stamp-owner"}, scene,
           _sequencers(partial(miscounting, every_tenth)), also=ORDER),
    _hydra("hydra: a sequencer stamps copies again", {"integrity", "stamp"}, doubling,
           _sequencers(trusting), also=ORDER | {"drop-detection", "agreement"}),
    _hydra("hydra: a sequencer comes back under its old number", {"drop-detection", "stamp-owner"},
           sequencer_crash, ("configuration", recycling, None), also=frozenset({"agreement"})),
    _hydra("hydra: a replica of the service decides alone", {"agreement"}, service_split,
           ("configuration", dictatorial, None), also=ORDER | {"drop-detection", "stamp-owner"}),
    _hydra("hydra: the service takes one report for a quorum", {"agreement"}, near_minority,
           ("configuration", hurried, None)),
    _hydra("hydra: receivers report their own group only", {"agreement"}, group_cut_off,
           ("receiver", own_group_only, None)),
]  # fmt: skip
