"""Single processes of Hydra, driven by hand: an environment that records, and messages in short notation.

The notation is that of the paper's Figure 1: ``<G,sequencer,multi-stamp,clock>`` is a groupcast, ``<F,...>``
a flush, ``<D,sequencer,number>`` a drop notification. A multi-stamp is a set of (group, number). Views are
ours: ``<+3,number,clock>`` adds sequencer 3, ``<-3,number,clock>`` removes it.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Generic, TypeVar

from ordercast.core import Delivered, Delivery, Dropped, Env, Message, Nanos, NodeId, Process, View
from ordercast.protocols.hydra.aggregator import Aggregator
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Plans, Step, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.sequencer import Sequencer

MEMBERS: Mapping[int, tuple[NodeId, ...]] = {0: (3, 4, 5), 1: (0, 1, 2), 2: (6, 7, 8)}
"""Three groups of three; most tests look at node 0, in group 1, like the paper's Figure 1."""
GROUP = 1
SEQUENCERS: Mapping[int, NodeId] = {1: 21, 2: 22}
SERVICE = (31, 32, 33)
LEADER = SERVICE[0]
AGGREGATOR = 41
CLIENT = 51
QUIET = HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=0)
"""Receivers ask for no flushes."""

_STEP = re.compile(r"<([GF]),(\d+),\{(.*)\},(\d+)>")
_ENTRY = re.compile(r"\((\d+),(\d+)\)")


class RecordingEnv(Env):
    """Does nothing but note what a process wants done."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.now: Nanos = 0
        self.rng = Random(0)
        self.sent: list[tuple[NodeId, Message]] = []
        self.timers: dict[str, Nanos] = {}
        self.delivered: list[Delivery] = []
        self.saved: dict[str, bytes] = {}

    def send(self, to: NodeId, message: Message) -> None:
        """Note it."""
        self.sent.append((to, message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Note it for each."""
        self.sent.extend((node, message) for node in to)

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
        """Keep it."""
        if state is None:
            self.saved.pop(name, None)
        else:
            self.saved[name] = state


P = TypeVar("P", bound=Process)


class Bench(Generic[P]):
    """A process and its recording environment."""

    def __init__(self, env: RecordingEnv, process: P, saved: Mapping[str, bytes] | None = None) -> None:
        self.env = env
        self.process = process
        process.on_start(saved or {})
        self.started = self.sent()

    def get(self, source: NodeId, *messages: Message) -> None:
        """Messages arrive."""
        for message in messages:
            self.process.on_message(source, message)

    def sent(self) -> list[tuple[NodeId, Message]]:
        """What was sent since the last time this was asked."""
        sent, self.env.sent = self.env.sent, []
        return sent

    def delivered(self) -> list[str]:
        """What was delivered since the last time this was asked, in the notation."""
        delivered, self.env.delivered = self.env.delivered, []
        return [show(delivery) for delivery in delivered]

    def pass_time(self, duration: Nanos) -> None:
        """Time passes, and timers go off in their order."""
        end = self.env.now + duration
        while True:
            due = min(((at, name) for name, at in self.env.timers.items() if at <= end), default=None)
            if due is None:
                self.env.now = end
                return
            self.env.now = max(self.env.now, due[0])
            del self.env.timers[due[1]]
            self.process.on_timer(due[1])

    def waits(self) -> list[tuple[str, str, Nanos]]:
        """What the process says that it waits for."""
        return [(wait.subject, wait.blocker, wait.since) for wait in self.process.explain().waits]


class ReceiverBench(Bench[Receiver]):
    """A receiver of one group, fed in the notation."""

    def hears(self, *texts: str) -> None:
        """Groupcasts and flushes arrive."""
        for text in texts:
            message = parse(text)
            self.get(SEQUENCERS.get(message.sequencer, 23), message)

    def gives(self, *texts: str) -> list[str]:
        """What is delivered when these arrive."""
        self.hears(*texts)
        return self.delivered()

    def buffer(self) -> list[str]:
        """The packets held, in their order."""
        lanes = self.process._merge.lanes.values()
        packets = [packet for lane in lanes for packet in (*lane.queue, *lane.early.values())]
        return [show(packet) for packet in sorted(packets, key=lambda p: (p.clock, p.sequencer))]

    def c_min(self) -> tuple[int, int]:
        """The paper's c_min."""
        return self.process._merge.ceiling()

    def plan(self, change: str, sequencer: int, steps: int = 0) -> None:
        """The service announces a planned step."""
        self.get(LEADER, planning(change, sequencer, steps))

    def decide(self, *steps: Step, start: int = 0) -> None:
        """The service tells of decided steps."""
        self.get(LEADER, Steps(start, steps))


def receiver(
    options: HydraOptions = QUIET,
    *,
    me: NodeId = 0,
    group: int = GROUP,
    members: Mapping[int, tuple[NodeId, ...]] = MEMBERS,
    initial: Mapping[int, NodeId] = SEQUENCERS,
    aggregator: NodeId | None = None,
    saved: Mapping[str, bytes] | None = None,
    now: Nanos = 0,
) -> ReceiverBench:
    """A receiver that has started."""
    env = RecordingEnv(me)
    env.now = now
    env.saved = dict(saved or {})
    return ReceiverBench(env, Receiver(env, group, members, initial, SERVICE, aggregator, options), saved)


def sequencer(
    options: HydraOptions = QUIET, *, aggregators: tuple[NodeId, ...] = (), now: Nanos = 0
) -> Bench[Sequencer]:
    """A sequencer without a number yet, on node 21."""
    env = RecordingEnv(SEQUENCERS[1])
    env.now = now
    return Bench(env, Sequencer(env, MEMBERS, SERVICE, aggregators, options))


def sender(options: HydraOptions = QUIET, me: NodeId = CLIENT) -> Bench[Sender]:
    """A sender that knows of no sequencer yet."""
    env = RecordingEnv(me)
    return Bench(env, Sender(env, MEMBERS, SERVICE, options))


def aggregator(options: HydraOptions = QUIET) -> Bench[Aggregator]:
    """An aggregator of the first configuration's flushes."""
    env = RecordingEnv(AGGREGATOR)
    return Bench(env, Aggregator(env, SEQUENCERS, SERVICE, options))


def active(*sequencers: int) -> tuple[tuple[int, NodeId], ...]:
    """A configuration of sequencers 1, 2, ... on nodes 21, 22, ..."""
    return tuple((number, 20 + number) for number in sequencers)


def planning(change: str, sequencer: int, steps: int = 0) -> Announce:
    """The announcement of a planned step."""
    plans = Plans("added" if change == "added" else "removed", sequencer, 20 + sequencer)
    return Announce(steps, active(1, 2), plans, None)


def added(sequencer: int, clock: int, numbers: tuple[int, ...] = (0, 0, 0), config: int = 1) -> Step:
    """A decided addition."""
    return Step("added", sequencer, 20 + sequencer, config, clock, numbers)


def removed(sequencer: int, clock: int, numbers: tuple[int, ...], config: int = 1) -> Step:
    """A decided removal."""
    return Step("removed", sequencer, 20 + sequencer, config, clock, numbers)


def parse(text: str) -> Groupcast | Flush:
    """A message in the notation."""
    match = _STEP.fullmatch(text)
    assert match is not None, text
    kind, number, stamp, clock = match.groups()
    numbers = {int(group): int(value) for group, value in _ENTRY.findall(stamp)}
    if kind == "F":
        every = tuple(numbers.get(group, 0) for group in MEMBERS)
        return Flush(int(number), int(clock), every)
    groups = tuple(numbers)
    return Groupcast(int(number), int(clock), groups, tuple(numbers.values()), CLIENT, text.encode())


def show(thing: Delivery | Groupcast) -> str:
    """Something in the notation."""
    match thing:
        case Dropped():
            return f"<D,{thing.issuer},{thing.number}>"
        case Delivered(stamp=stamp) if stamp is not None:
            return _show(stamp.issuer, thing.groups, stamp.numbers, stamp.clock)
        case Groupcast():
            return _show(thing.sequencer, thing.groups, thing.numbers, thing.clock)
        case View(stamp=stamp) if stamp is not None:
            sign = "+" if thing.change == "added" else "-"
            return f"<{sign}{stamp.issuer},{stamp.numbers[0]},{stamp.clock}>"
    raise AssertionError(thing)


def _show(sequencer: int, groups: tuple[int, ...], numbers: tuple[int, ...], clock: int) -> str:
    stamp = ",".join(f"({group},{number})" for group, number in zip(groups, numbers, strict=True))
    return f"<G,{sequencer},{{{stamp}}},{clock}>"
