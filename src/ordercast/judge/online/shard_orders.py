"""The orders of shards, and cycles that they have together with each other and with time.

A transaction runs in several shards, which are groups. Each shard has its order of places. Where a protocol
gives a transaction one stamp in all its shards, its place is the stamp. Where each shard has an order of its
own, and locks keys, transactions that hold locks at the same time have no order there: they touch different
keys. So a transaction is at all places from the first at which it held its locks to the one at which it was
ended (two-phase locking; Bernstein, Hadzilacos and Goodman, 1987, section 3.3: there is a moment at which it
holds all of its locks). One that was aborted is nowhere.

*Serializable*: the orders of the shards and those of the clients together have no cycle; then some order of
all transactions explains all answers, if each shard executed its own order, which `answers` judges.
*Strict*: nor have they together with real time, in which a transaction that was answered comes before all
that are called later. Times are compared only if they come from one clock.
"""

from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from ordercast.core import GroupId, MessageId, format_ns, message_name
from ordercast.judge.finding import VIOLATIONS_MAX
from ordercast.judge.online.answered import Answered
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.lock_spans import LockSpans
from ordercast.judge.online.stamp_place import FIRST, StampPlace, place_of
from ordercast.judge.online.timelines import Extent, Pair, Timeline, Timelines
from ordercast.trace import READ, Event, Kind

SHARD, TIME = "shard", "time"


class ShardOrders(Answered):
    """The base of what is judged by the orders of shards."""

    strict: ClassVar[bool]
    """Whether real time counts, or only the order of each client."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._clocks = case.description.clocks()
        self._locks: dict[GroupId, LockSpans] = {group: LockSpans() for group in case.description.groups}
        self._mates: dict[tuple[GroupId, StampPlace], MessageId] = {}
        """The transaction with locks that is delivered at a place; messages of one bundle share its place."""

    def handlers(self) -> dict[Kind, Handler]:
        """Calls, deliveries, answers, and locks where they matter."""
        if not self._separate:
            return super().handlers()
        return super().handlers() | {Kind.LOCKED: self._on_lock, Kind.RELEASED: self._on_lock}

    def _on_lock(self, event: Event) -> None:
        for group in event.groups or ():
            if group in self._locks:
                self._locks[group].handlers()[event.kind](event)

    def finish(self) -> None:
        """Look at each answer by itself, and then at all orders together."""
        self.judge_answers()
        calls = [m for m in self._invoked if m in self._delivered or m in self._answered]
        self._find_mates(calls)
        lines = Timelines(len(calls))
        for number, message in enumerate(calls):
            self._add(lines, number, message)
        for cycle in islice(lines.cycles(), VIOLATIONS_MAX):
            self._tell_cycle(cycle, calls)

    def _find_mates(self, calls: Sequence[MessageId]) -> None:
        for message in calls:
            for group in self._invoked[message].groups or () if self._separate else ():
                place = self._place(message, group)
                if place is not None and self._locks[group].of(message):
                    self._mates[group, place] = message

    def _add(self, lines: Timelines, number: int, message: MessageId) -> None:
        invoked, reply = self._invoked[message], self._answered.get(message)
        clock = self._clocks[invoked.node] if self.strict else invoked.node
        answered = None if reply is None else reply.time_ns
        lines.add(Timeline(TIME, clock), Extent(number, invoked.time_ns, answered))
        for group in invoked.groups or ():
            span = self._span(message, invoked, group)
            if span is not None:
                lines.add(Timeline(SHARD, group), Extent(number, *span))

    def _span(
        self, message: MessageId, invoked: Event, group: GroupId
    ) -> tuple[tuple[StampPlace, int], tuple[StampPlace, int]] | None:
        """Where a call is in the order of a shard; a read is behind its place, and before the next."""
        if invoked.label == READ:
            reply = self._answered.get(message)
            alone = reply is not None and len(invoked.groups or ()) == 1
            place = (place_of(reply) or FIRST) if reply is not None and alone else None
            return None if place is None else ((place, 1), (place, 1))
        place = self._place(message, group)
        if place is None:
            return None
        locks = self._locks[group].of(self._mates.get((group, place), message)) if self._separate else []
        ends = [held for held in locks if held.committed]
        if locks and not ends:
            return None
        last = max((held.end for held in ends if held.end is not None), default=place)
        return (min([held.start for held in ends], default=place), 0), (last, 0)

    def _place(self, message: MessageId, group: GroupId) -> StampPlace | None:
        """The place of a call in a shard, by its delivery, or by its answer."""
        delivered, reply = self.delivered_in(message, group), self._answered.get(message)
        if delivered is not None:
            return place_of(delivered)
        tells = reply is not None and (not self._separate or group in (reply.groups or ()))
        return place_of(reply) if reply is not None and tells else None

    def _tell_cycle(self, cycle: Sequence[Pair], calls: Sequence[MessageId]) -> None:
        messages = [calls[pair.before] for pair in cycle]
        names = " < ".join(message_name(one) for one in (*messages, messages[0]))
        text = "; ".join(self._told(pair, calls) for pair in cycle)
        events = [self._invoked[message] for message in messages]
        self.report(
            tuple(dict.fromkeys(event.node for event in events)),
            tuple(messages),
            tuple(event.time_ns for event in events),
            f"{text}: this is the cycle {names}",
            at_end=True,
        )

    def _told(self, pair: Pair, calls: Sequence[MessageId]) -> str:
        one, other = calls[pair.before], calls[pair.after]
        before, after = message_name(one), message_name(other)
        if pair.timeline.kind == SHARD:
            return f"{before} comes before {after} in shard {pair.timeline.number}"
        answered, invoked = self._answered[one].time_ns, self._invoked[other].time_ns
        times = format_ns(answered), format_ns(invoked)
        return f"{before} was answered at {times[0]}, before {after} was called at {times[1]}"
