"""Single processes of Hydra, driven by hand: an environment that records, and messages in short notation.

The notation is that of the paper's Figure 1: ``<G,sequencer,multi-stamp,clock>`` is a groupcast, ``<F,...>``
a flush, ``<D,sequencer,number>`` a drop notification. A multi-stamp is a set of (group, number). Views are
ours: ``<+3,number,clock>`` adds sequencer 3, ``<-3,number,clock>`` removes it, and with ``<=2>`` a new member
begins in configuration 2.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from ordercast.core import Delivered, Delivery, Dropped, Env, Nanos, NodeId, Notice, Process, View
from ordercast.protocols.hydra.aggregator import Aggregator
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Plans, Step, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.testing import ProcessDriver, RecordingEnv

MEMBERS: Mapping[int, tuple[NodeId, ...]] = {0: (3, 4, 5), 1: (0, 1, 2), 2: (6, 7, 8)}
"""Three groups of three; most tests look at node 0, in group 1, like the paper's Figure 1."""
GROUP = 1
SEQUENCERS: Mapping[int, NodeId] = {1: 21, 2: 22}
SERVICE = (31, 32, 33)
LEADER = SERVICE[0]
AGGREGATOR = 41
CLIENT = 51
QUIET = HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=0, repair=False)
"""Receivers ask for no flushes, and for no packets: like the paper's, they notify of a gap at once."""

_STEP = re.compile(r"<([GF]),(\d+),\{(.*)\},(\d+)>")
_ENTRY = re.compile(r"\((\d+),(\d+)\)")


P = TypeVar("P", bound=Process)


class Bench(ProcessDriver[P]):
    """A process driven by hand, in the notation."""

    def __init__(
        self,
        me: NodeId,
        make: Callable[[Env], P],
        saved: Mapping[str, bytes] | None = None,
        now: Nanos = 0,
    ) -> None:
        super().__init__(make, me, now, saved)
        self.started = self.take_sent()

    def delivered(self) -> list[str]:
        """What was delivered since the last time this was asked, in the notation."""
        return [show(delivery) for delivery in one_by_one(self.take_delivered())]


class ReceiverBench(Bench[Receiver]):
    """A receiver of one group, fed in the notation."""

    def hears(self, *texts: str) -> None:
        """Groupcasts and flushes arrive."""
        for text in texts:
            message = parse(text)
            self.receive(SEQUENCERS.get(message.sequencer, 23), message)

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
        self.receive(LEADER, planning(change, sequencer, steps))

    def decide(self, *steps: Step, start: int = 0) -> None:
        """The service tells of decided steps."""
        self.receive(LEADER, Steps(start, steps))


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
    forgot: bool = False,
) -> ReceiverBench:
    """A receiver that has started; it may know that an earlier life was forgotten."""

    def make(env: Env) -> Receiver:
        assert isinstance(env, RecordingEnv)
        env.forgot = forgot
        return Receiver(env, group, members, initial, SERVICE, aggregator, options)

    return ReceiverBench(me, make, saved, now)


def sequencer(
    options: HydraOptions = QUIET, *, aggregators: tuple[NodeId, ...] = (), now: Nanos = 0
) -> Bench[Sequencer]:
    """A sequencer without a number yet, on node 21."""
    return Bench(SEQUENCERS[1], lambda env: Sequencer(env, MEMBERS, SERVICE, aggregators, options), now=now)


def sender(options: HydraOptions = QUIET, me: NodeId = CLIENT) -> Bench[Sender]:
    """A sender that knows of no sequencer yet."""
    return Bench(me, lambda env: Sender(env, MEMBERS, SERVICE, options))


def aggregator(options: HydraOptions = QUIET) -> Bench[Aggregator]:
    """An aggregator of the first configuration's flushes."""
    return Bench(AGGREGATOR, lambda env: Aggregator(env, SEQUENCERS, SERVICE, len(MEMBERS), options))


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


def one_by_one(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """Deliveries, with a notification for each number that was dropped."""
    for delivery in deliveries:
        yield from delivery.singles() if isinstance(delivery, Notice) else (delivery,)


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
        case View():
            return f"<={thing.config}>"
    raise AssertionError(thing)


def _show(sequencer: int, groups: tuple[int, ...], numbers: tuple[int, ...], clock: int) -> str:
    stamp = ",".join(f"({group},{number})" for group, number in zip(groups, numbers, strict=True))
    return f"<G,{sequencer},{{{stamp}}},{clock}>"
