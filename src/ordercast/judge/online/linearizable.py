"""Linearizable: the operations of a service have one order that explains the times of all calls and answers.

The order is given: the place that a replica delivers an operation at (Herlihy and Wing, "Linearizability",
1990, ask for any). An answer names the place where its operation was executed, and some replica delivers the
operation there. Operations of one bundle share a place, and follow each other by their identities. A read is
not delivered: it stands behind the place that its answer names, and before the next.

Walking up the places, no operation was answered before one with an earlier place was invoked. Then each
operation can be given a moment between its invocation and its answer, in this order. Reads of one place may
stand in any order, so the one that was invoked first comes first.

A client gets one answer to an operation, or the same answer again. Replicas deliver when they are certain,
perhaps after the answer, so an operation that was answered and never delivered is a finding only at the end
of a complete run. Times of two clients are compared only if they come from one clock.
"""

from typing import NamedTuple

from ordercast.core import GroupId, MessageId, Nanos, format_ns, message_name
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.stamp_place import FIRST, StampPlace, place_of, place_text
from ordercast.trace import ANSWERING, ORDERED, READ, Event, Kind


class Stand(NamedTuple):
    """Where an operation stands in the order of its group; they compare by that."""

    place: StampPlace
    reads: bool
    turn: int
    """Operations of one place compare by their identities, reads by the times of their invocations."""
    invoked: Event
    answered: Nanos | None


class Linearizable(Oracle):
    """The order of places explains the times of all answers."""

    reads = True

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._clocks = case.description.clocks()
        self._invoked: dict[MessageId, Event] = {}
        self._delivered: dict[MessageId, Event] = {}
        """The first delivery of each operation."""
        self._replies: list[Event] = []
        self._answered: dict[MessageId, Event] = {}
        """The first answer to each operation, if it fits its question."""

    def handlers(self) -> dict[Kind, Handler]:
        """Invocations, deliveries and answers."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(ORDERED, self._on_deliver),
            **dict.fromkeys(ANSWERING, self._replies.append),
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None:
            self._invoked[event.message] = event

    def _on_deliver(self, event: Event) -> None:
        if event.message is not None:
            self._delivered.setdefault(event.message, event)

    def finish(self) -> None:
        """Look at each answer by itself, and then at the order of all operations."""
        for reply in self._replies:
            self._judge_reply(reply)
        for reply in self._answered.values():
            self._judge_place(reply)
        lines: dict[GroupId, list[Stand]] = {}
        for message, invoked in self._invoked.items():
            stand = self._stand(message, invoked)
            if stand is not None:
                lines.setdefault((invoked.groups or (0,))[0], []).append(stand)
        for line in lines.values():
            self._walk(sorted(line, key=lambda stand: stand[:3]))

    def _judge_reply(self, reply: Event) -> None:
        """Whether an answer fits its question, and other answers to it."""
        invoked = None if reply.message is None else self._invoked.get(reply.message)
        if reply.message is None or invoked is None or invoked.node != reply.node:
            self._tell(reply, "which it did not ask for")
        elif (reply.label == READ) != (invoked.label == READ) or reply.groups != invoked.groups:
            self._tell(reply, "but had called something else")
        elif reply.time_ns < invoked.time_ns:
            self._tell(reply, f"but called it only at {format_ns(invoked.time_ns)}", invoked.time_ns)
        elif reply.message not in self._answered:
            self._answered[reply.message] = reply
        elif _content(self._answered[reply.message]) != _content(reply):
            earlier = self._answered[reply.message].time_ns
            self._tell(reply, f"and another answer at {format_ns(earlier)}", earlier)

    def _judge_place(self, reply: Event) -> None:
        """Whether some replica delivered an operation at the place that its answer names."""
        assert reply.message is not None
        if reply.label == READ:
            return
        delivered, place = self._delivered.get(reply.message), place_of(reply)
        if delivered is not None and place_of(delivered) != place:
            at = place_text(place_of(delivered))
            named = f"which names {place_text(place)}; node {delivered.node} delivered it at {at}"
            self._tell(reply, named, node=delivered.node)
        elif place is None:
            self._tell(reply, "without a place in the order")
        elif delivered is None and self.description.complete:
            self._tell(reply, "but no replica ever delivered it")

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

    def _tell(self, reply: Event, what: str, *times: Nanos, node: int | None = None) -> None:
        message = reply.message
        named = "nothing that has a name" if message is None else message_name(message)
        others = [peer for peer in (reply.peer, node) if peer is not None and peer != reply.node]
        self.report(
            (reply.node, *dict.fromkeys(others)),
            () if message is None else (message,),
            (*times, reply.time_ns),
            f"node {reply.node} got the answer to {named} at {format_ns(reply.time_ns)}, {what}",
            at_end=True,
        )


def _content(reply: Event) -> tuple[object, ...]:
    """What must be the same if an answer comes again."""
    return (place_of(reply), reply.size, reply.digest, reply.label)
