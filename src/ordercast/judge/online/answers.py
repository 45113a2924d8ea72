"""Answers: a client has the answers of all receivers only after all of them delivered its message.

A `complete` row says that all receivers of a message answered its client. A receiver answers when it
delivers, in order or tagged. So every receiver of the message's groups delivered it before, in one of its
lives; notifications are not answered. Rows of different machines have no common order: where a run is not
simulated, the deliveries only have to be there at its end. Nobody answers for receivers that join or leave.
"""

from collections import defaultdict

from ordercast.core import Groups, MessageId, NodeId, format_ns
from ordercast.judge.finding import message_at, nodes_named
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, Event, Kind


class Answers(Oracle):
    """Every complete message was delivered by all of its receivers."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._at_once = case.description.source == "simulator"
        self._members = case.members
        self._groups: dict[MessageId | None, Groups] = {}
        self._delivered: defaultdict[NodeId, set[MessageId | None]] = defaultdict(set)
        self._complete: list[Event] = []

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, deliveries and complete messages."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(CARRYING, self._on_deliver),
            Kind.COMPLETE: self._on_complete,
        }

    def finish(self) -> None:
        """Judge a run of several machines."""
        for event in self._complete:
            self._judge(event)

    def _on_submit(self, event: Event) -> None:
        self._groups.setdefault(event.message, event.groups or ())

    def _on_deliver(self, event: Event) -> None:
        self._delivered[event.node].add(event.message)

    def _on_complete(self, event: Event) -> None:
        if self._at_once:
            self._judge(event)
        else:
            self._complete.append(event)

    def _judge(self, event: Event) -> None:
        message = event.message
        if message is None or message not in self._groups:
            self._tell(event, (), "nobody submitted")
            return
        receivers = self._members.steady(self._groups[message])
        missing = [node for node in sorted(receivers) if message not in self._delivered[node]]
        if missing:
            self._tell(event, missing, f"{nodes_named(missing)} had not delivered")

    def _tell(self, event: Event, missing: list[NodeId] | tuple[()], what: str) -> None:
        message = event.message
        named = "a message" if message is None else message_at(message, event.time_ns)
        self.report(
            (event.node, *missing),
            () if message is None else (message,),
            (event.time_ns,),
            f"node {event.node} has at {format_ns(event.time_ns)} all answers to {named}, which {what}",
            at_end=not self._at_once,
        )
