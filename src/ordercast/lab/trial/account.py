"""The account of a live run: what applications sent, got and were told, judged without the trace."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from ordercast.core import (
    MICROSECOND,
    Agreement,
    Fault,
    HostId,
    MessageId,
    Nanos,
    NodeId,
    Order,
    Partition,
    Plan,
)
from ordercast.lab.trial.account_rules import (
    Complaint,
    Outage,
    Rule,
    disorder,
    in_flight,
    longest_outage,
    missing,
    packets_of,
    too_long,
    twice,
)
from ordercast.lab.trial.diary import LifeDiary, Sent
from ordercast.lab.trial.history import History, histories_of
from ordercast.lab.trial.stage import CrashTime, latency_us
from ordercast.scenario.faults import FaultSpec, Heal, Sides, Weather
from ordercast.scenario.spec import Scenario

DETECTION_TIMES = 5
"""The longest time without a message, in detection times."""


class LiveAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the messages of a run, by what its applications saw."""

    accepted: int
    """Messages that were accepted from applications."""
    delivered: int
    """Those of them that all receivers got that have them to get."""
    missing: int
    """Messages that receivers never got and of which nobody was told."""
    twice: int
    """Messages that receivers got again."""
    disorder: int
    """Pairs of receivers that got two messages in different orders."""
    dropped: int
    """Drops of which receivers were told."""
    unconfirmed: int
    """Messages of which their senders were told that nobody knows what becomes of them, or that they are
    undone."""
    in_flight: int
    """Messages that were being handed over at receivers when these were killed."""
    outage_ns: Nanos
    """The longest time that a receiver on a host that no fault hit waited while messages were sent."""
    limit_ns: Nanos | None
    """The longest outage that is allowed; None if it is not judged."""
    complaints: tuple[Complaint, ...]
    """The rules that were broken, if the protocol promises to keep them."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to the hosts of a run, and by what it is judged."""

    crashes: Sequence[CrashTime]
    """Hosts that were killed, or ended because of their disk."""
    up: frozenset[HostId]
    """Hosts that were up at the end."""
    hit: frozenset[HostId]
    """Hosts that faults were aimed at."""
    limit_ns: Nanos | None
    complete: bool
    """Whether what was owed had the chance to come."""
    bundled: bool
    """Whether one packet may carry several messages."""
    total: int | None = None
    """What transactions that add up everything must come to."""
    moving: frozenset[NodeId] = frozenset()
    """Receivers that join or leave: applications cannot know what is owed them."""


def hosts_hit(faults: Iterable[FaultSpec]) -> frozenset[HostId]:
    """The hosts at which faults are aimed. What happens between sides is aimed at all but the largest."""
    found: set[HostId] = set()
    for fault in faults:
        match fault:
            case Heal() | Weather():
                continue
            case Sides():
                largest = max(fault.sides, key=len)
                found.update(host for side in fault.sides if side is not largest for host in side)
            case _:
                found.add(fault.host)
    return frozenset(found)


def outage_limit(scenario: Scenario, plan: Plan) -> Nanos | None:
    """The longest outage that is allowed: five times the detection time, or the pace of a protocol that
    detects nothing. With the timeouts of the simulator, which a real machine cannot keep, there is none."""
    if not scenario.live_options:
        return None
    pace = plan.pace(round(latency_us(scenario) * MICROSECOND))
    usual = pace.delivery_ns if pace is not None else 0
    return DETECTION_TIMES * (scenario.all_options().detection_ns or usual) or None


def take_account(plan: Plan, diaries: Sequence[LifeDiary], told: Circumstances) -> LiveAccount:
    """Take the account of a run from the diaries of its hosts."""
    return _Books(plan, diaries, told).account()


class _Books:
    """All diaries of a run, put together."""

    def __init__(self, plan: Plan, diaries: Sequence[LifeDiary], told: Circumstances) -> None:
        self._plan = plan
        self._told = told
        self._killed = frozenset(crash.host for crash in told.crashes)
        self._histories = histories_of(plan, diaries)
        self._sent = {one.message: one for diary in diaries for one in diary.sent}
        self._unconfirmed = frozenset(
            message for diary in diaries for message in (*diary.unconfirmed, *diary.undone)
        )
        self._of_living = [one for diary in diaries if diary.host not in self._killed for one in diary.sent]
        """What was accepted from applications whose hosts lived."""
        self._anew = {node for diary in diaries for node in diary.anew}
        self._in_flight = 0

    def account(self) -> LiveAccount:
        """The account."""
        histories = list(self._histories.values())
        lacking = [found for history in histories if (found := self._missing(history))]
        again = [found for history in histories if (found := twice(history))]
        disagreeing = [found for compared in self._compared() for found in disorder(compared)]
        longest = max((self._outage(history) for history in histories), key=lambda one: one.lasted_ns)
        late = self._too_long(longest)
        complaints = (*lacking, *again, *disagreeing, *late)
        return LiveAccount(
            accepted=len(self._sent),
            delivered=self._delivered(),
            missing=sum(one.count for one in lacking),
            twice=sum(one.count for one in again),
            disorder=len(disagreeing),
            dropped=sum(history.drops for history in histories),
            unconfirmed=len(self._unconfirmed),
            in_flight=self._in_flight,
            outage_ns=longest.lasted_ns,
            limit_ns=self._told.limit_ns,
            complaints=tuple(one for one in complaints if one.rule in self._promised),
        )

    def _compared(self) -> Iterator[list[History]]:
        """Receivers that must have one order. With one in each group only, two groups may have messages in
        common, and different orders: shards that lock keys order what has none in common as they like."""
        compared = list(filter(self._is_compared, self._histories.values()))
        if self._plan.guarantees.order is not Order.GROUP:
            yield compared
            return
        for members in self._plan.groups.values():
            yield [history for history in compared if history.node in members]

    def _is_compared(self, history: History) -> bool:
        """Whether what a receiver saw must have the order of the others. Where side branches are
        discarded, one that was killed may end on such a branch, and was never told; the trace is judged by
        places."""
        branches = self._plan.guarantees.partition is Partition.SIDE_BRANCHES_DISCARDED
        return not branches or history.host not in self._killed

    @cached_property
    def _promised(self) -> frozenset[Rule]:
        """The rules that the protocol promises to keep."""
        promised, timely = self._plan.guarantees, self._told.limit_ns is not None
        # The probability is that of a network on which messages come within the timeouts.
        probable = promised.agreement is Agreement.PROBABILISTIC and timely
        rules: dict[Rule, bool] = {
            "missing": (promised.validity or probable) and self._told.complete,
            "twice": promised.integrity,
            "disorder": promised.order is not Order.NONE,
            "outage": timely,
        }
        return frozenset(rule for rule, kept in rules.items() if kept)

    def _is_owed(self, history: History) -> bool:
        """Whether a receiver gets everything: it lived, or came back and catches up.

        A receiver that lost its place in a view and starts anew does not catch up, and is told so.
        """
        if history.node in self._anew or history.node in self._told.moving:
            return False
        if history.host not in self._killed:
            return True
        promised = self._plan.guarantees
        catches_up = Fault.RESTART in promised.tolerates and promised.agreement is not Agreement.PROBABILISTIC
        return catches_up and history.host in self._told.up and history.remembers

    def _addressed(self, node: NodeId, sent: Iterable[Sent]) -> list[Sent]:
        """The messages that go to a receiver."""
        groups = {group for group, members in self._plan.groups.items() if node in members}
        return [one for one in sent if not groups.isdisjoint(one.groups)]

    def _missing(self, history: History) -> Complaint | None:
        if not self._is_owed(history):
            return None
        owed = {one.message for one in self._addressed(history.node, self._of_living)}
        lacking = owed - history.messages - self._unconfirmed
        if lacking and history.host in self._killed:
            excused = self._excused(history, lacking)
            self._in_flight += len(excused)
            lacking -= excused
        return missing(history, lacking, packets_of(lacking, bundled=self._told.bundled))

    def _excused(self, history: History, lacking: set[MessageId]) -> set[MessageId]:
        """What was being handed over when the receiver was killed, by the order of one that lived."""
        kills = [crash.gone_ns for crash in self._told.crashes if crash.host == history.host]
        groups = [members for members in self._plan.groups.values() if history.node in members]
        for node in sorted({node for members in groups for node in members}):
            witness = self._histories[node]
            if witness.host not in self._killed and node not in self._told.moving:
                order = [got.message for got in witness.members[0] if got.in_order] if witness.members else []
                known = [message for message in order if message in self._sent]
                return in_flight(history, lacking, known, self._sent, kills)
        return set()

    def _delivered(self) -> int:
        """How many messages all receivers got that are owed them."""
        lacked: set[MessageId] = set()
        for history in self._histories.values():
            if self._is_owed(history):
                addressed = self._addressed(history.node, self._sent.values())
                lacked.update(one.message for one in addressed if one.message not in history.messages)
        return len(self._sent) - len(lacked)

    def _outage(self, history: History) -> Outage:
        if history.host in self._told.hit | self._killed or history.node in self._told.moving:
            return Outage(history.node, 0, 0)
        addressed = self._addressed(history.node, self._sent.values())
        return longest_outage(history, sorted(one.time_ns for one in addressed))

    def _too_long(self, longest: Outage) -> list[Complaint]:
        start = min((one.time_ns for one in self._sent.values()), default=0)
        limit = self._told.limit_ns
        found = None if limit is None else too_long(longest, limit, start)
        return [] if found is None else [found]
