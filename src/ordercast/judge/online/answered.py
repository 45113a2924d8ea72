"""Answers to calls: each fits its question, and names the place where its call was delivered.

A client gets one answer to an operation, or the same answer again. Replicas deliver when they are certain,
perhaps after the answer, so an operation that was answered and never delivered is a finding only at the end
of a complete run.
"""

from ordercast.core import GroupId, MessageId, Nanos, Order, format_ns, message_name
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.stamp_place import place_of, place_text
from ordercast.trace import ANSWERING, ORDERED, READ, Event, Kind


class Answered(Oracle):
    """The base of oracles that judge the places of answers."""

    reads = True

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._separate = case.description.guarantees.order is Order.GROUP
        """Whether a message to several groups has a place of its own in each."""
        self._receives = {
            node.id: [group for group, members in case.description.groups.items() if node.id in members]
            for node in case.description.nodes
        }
        self._invoked: dict[MessageId, Event] = {}
        self._delivered: dict[MessageId, Event] = {}
        """The first delivery of each operation."""
        self._in_group: dict[tuple[MessageId, GroupId], Event] = {}
        """The first one in each of its groups, if it has several with places of their own."""
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
        if event.message is None:
            return
        self._delivered.setdefault(event.message, event)
        if self._separate and len(event.groups or ()) > 1:
            for group in self._receives[event.node]:
                if group in (event.groups or ()):
                    self._in_group.setdefault((event.message, group), event)

    def delivered_in(self, message: MessageId, group: GroupId) -> Event | None:
        """The first delivery of a message, or that in one of its groups if each has an order of its own."""
        found = self._delivered.get(message)
        if found is None or not self._separate or len(found.groups or ()) < 2:
            return found
        return self._in_group.get((message, group))

    def judge_answers(self) -> None:
        """Look at each answer by itself."""
        for reply in self._replies:
            self._judge_reply(reply)
        for reply in self._answered.values():
            self._judge_place(reply)

    def _judge_reply(self, reply: Event) -> None:
        """Whether an answer fits its question, and other answers to it."""
        invoked = None if reply.message is None else self._invoked.get(reply.message)
        if reply.message is None or invoked is None or invoked.node != reply.node:
            self._tell(reply, "which it did not ask for")
        elif (reply.label == READ) != (invoked.label == READ) or not _within(reply, invoked):
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
        delivered, place = self.delivered_in(reply.message, (reply.groups or (0,))[0]), place_of(reply)
        if delivered is not None and place_of(delivered) != place:
            at = place_text(place_of(delivered))
            named = f"which names {place_text(place)}; node {delivered.node} delivered it at {at}"
            self._tell(reply, named, node=delivered.node)
        elif place is None:
            self._tell(reply, "without a place in the order")
        elif delivered is None and self.description.complete:
            self._tell(reply, "but no replica ever delivered it")

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


def _within(reply: Event, invoked: Event) -> bool:
    """Whether an answer comes from one of the groups that were called."""
    called = invoked.groups or ()
    return bool(reply.groups) and all(group in called for group in reply.groups or ())
