"""Completion: a client has the answers of all receivers only after all of them delivered its message.

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


class Completion(Oracle):
    """Every complete message was delivered by all of its receivers."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._at_once = case.description.source == "simulator"
        self._members = case.members
        self._groups: dict[MessageId | None, Groups] = {}
        self._delivered: defaultdict[NodeId, set[MessageId | None]] = defaultdict(set)
        self._complete: list[tuple[Event, set[NodeId] | None]] = []
        """Complete messages that are judged at the end; and who had not delivered each, if that is known."""

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, deliveries and complete messages."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(CARRYING, self._on_deliver),
            Kind.COMPLETE: self._on_complete,
        }

    def finish(self) -> None:
        """Judge a run of several machines, and one whose groups change."""
        for event, missing in self._complete:
            self._judge(event, self._missing(event) if missing is None else missing)

    def _on_submit(self, event: Event) -> None:
        self._groups.setdefault(event.message, event.groups or ())

    def _on_deliver(self, event: Event) -> None:
        self._delivered[event.node].add(event.message)

    def _on_complete(self, event: Event) -> None:
        missing = self._missing(event) if self._at_once else None
        if missing is not None and (event.message not in self._groups or not self._members.changing):
            self._judge(event, missing)
        else:  # who joins or leaves is known only at the end
            self._complete.append((event, missing))

    def _missing(self, event: Event) -> set[NodeId]:
        """The receivers that have not delivered a complete message by now."""
        receivers = self._members.receivers(self._groups.get(event.message, ()))
        return {node for node in receivers if event.message not in self._delivered[node]}

    def _judge(self, event: Event, lacking: set[NodeId]) -> None:
        if event.message is None or event.message not in self._groups:
            self._tell(event, (), "nobody submitted")
            return
        missing = sorted(lacking & self._members.steady(self._groups[event.message]))
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
