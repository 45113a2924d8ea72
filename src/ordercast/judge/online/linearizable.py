"""Linearizable: the operations of a service have one order that explains the times of all calls and answers.

The order is given: the place that a replica delivers an operation at (Herlihy and Wing, "Linearizability",
1990, ask for any). An answer names the place where its operation was executed, and some replica delivers the
operation there. Operations of one bundle share a place, and follow each other by their identities. A read is
not delivered: it stands behind the place that its answer names, and before the next.

Walking up the places, no operation was answered before one with an earlier place was invoked. Then each
operation can be given a moment between its invocation and its answer, in this order. Reads of one place may
stand in any order, so the one that was invoked first comes first.

Times of two clients are compared only if they come from one clock.
"""

from typing import NamedTuple

from ordercast.core import GroupId, MessageId, Nanos, format_ns, message_name
from ordercast.judge.finding import message_at
from ordercast.judge.online.answered import Answered
from ordercast.judge.online.case import Case
from ordercast.judge.online.stamp_place import FIRST, StampPlace, place_of, place_text
from ordercast.trace import READ, Event


class Stand(NamedTuple):
    """Where an operation stands in the order of its group; they compare by that."""

    place: StampPlace
    reads: bool
    turn: int
    """Operations of one place compare by their identities, reads by the times of their invocations."""
    invoked: Event
    answered: Nanos | None


class Linearizable(Answered):
    """The order of places explains the times of all answers."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._clocks = case.description.clocks()

    def finish(self) -> None:
        """Look at each answer by itself, and then at the order of all operations."""
        self.judge_answers()
        lines: dict[GroupId, list[Stand]] = {}
        for message, invoked in self._invoked.items():
            stand = self._stand(message, invoked)
            if stand is not None:
                lines.setdefault((invoked.groups or (0,))[0], []).append(stand)
        for line in lines.values():
            self._walk(sorted(line, key=lambda stand: stand[:3]))

    def _stand(self, message: MessageId, invoked: Event) -> Stand | None:
        """Where an operation stands; None if it has no place, or need not have one."""
        reply, delivered = self._answered.get(message), self._delivered.get(message)
        answered = None if reply is None else reply.time_ns
        if invoked.label == READ:
            place = None if reply is None else place_of(reply) or FIRST
            return None if place is None else Stand(place, True, invoked.time_ns, invoked, answered)
        named = delivered or reply
        place = None if named is None else place_of(named)
        return None if place is None else Stand(place, False, message, invoked, answered)

    def _walk(self, line: list[Stand]) -> None:
        """Go up the places of a group, with the latest invocation so far by each clock."""
        latest: dict[int, Stand] = {}
        for stand in line:
            clock = self._clocks[stand.invoked.node]
            before = latest.setdefault(clock, stand)
            if stand.answered is not None and stand.answered < before.invoked.time_ns:
                self._tell_order(stand, before)
            if stand.invoked.time_ns > before.invoked.time_ns:
                latest[clock] = stand

    def _tell_order(self, stand: Stand, before: Stand) -> None:
        (one, other), answered = (stand.invoked, before.invoked), stand.answered
        assert one.message is not None and other.message is not None and answered is not None
        self.report(
            (one.node, other.node),
            (one.message, other.message),
            (answered, other.time_ns),
            f"node {one.node} had the answer to {message_at(one.message, one.time_ns)} at"
            f" {format_ns(answered)}, before node {other.node} called {message_name(other.message)} at"
            f" {format_ns(other.time_ns)}; but it stands at {place_text(stand.place)}, behind the other at"
            f" {place_text(before.place)}",
            at_end=True,
        )
