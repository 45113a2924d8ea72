"""Integrity: no message is delivered twice, made up, or delivered to the wrong receiver.

For every message m and receiver r: r delivers m at most once, and only if m was submitted before, by
the sender that m's identity names (and that r's protocol names, where the row has it in `peer`), to a
group that r receives, with the same groups, bytes and time of submission (*uniform integrity* of Defago,
Schiper and Urban, "Total order broadcast and multicast algorithms: taxonomy and survey", section 2). A
delivery tagged as out of order is a delivery, and must have been promised. A receiver that recovers
without its saved state counts as a new one; one that recovers with it does not. A read of a service is
answered, and nobody delivers it.

*Before* means the order of the rows, which the judge ensures (`holdback.py`). Times are compared only in a
simulated run, which has one time for all nodes.

The oracle is also the gate for the other oracles: its checks return a row as the others may see it, or None.
"""

from collections.abc import Callable

from ordercast.core import (
    Groups,
    MessageId,
    NodeId,
    RemoteError,
    format_ns,
    message_sender,
)
from ordercast.judge.finding import listed, message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import ACTIONS, CARRYING, ENTERING, LEAVING, LOST, PROMISED, READ, Event, Kind


class Integrity(Oracle):
    """Each receiver delivers only submitted messages to its groups, unchanged, and each only once."""

    gated = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._one_time = case.description.source == "simulator"
        self._submitted: dict[MessageId, Event] = {}
        self._foretold: dict[MessageId, Event | None] = {}
        self._delivered: dict[NodeId, set[MessageId]] = {node.id: set() for node in case.description.nodes}
        self._members = case.members
        self._addressed: dict[Groups, set[NodeId]] = {}
        promised = case.description.guarantees
        unpromised = [kind for kind, promise in PROMISED.items() if not getattr(promised, promise)]
        self.admits: dict[Kind, Callable[[Event], Event | None]] = {
            **dict.fromkeys((*ACTIONS, Kind.CRASH), self._on_action),
            **dict.fromkeys(CARRYING, self._on_deliver),
            **dict.fromkeys(unpromised, self._on_unpromised),
            Kind.SUBMIT: self._on_submit,
            Kind.DROP: self._on_drop,
            Kind.VIEW: self._on_view,
            **dict.fromkeys(ENTERING, self._on_joined),
            **dict.fromkeys(LEAVING, self._on_left),
            Kind.RECOVER: self._on_recover,
        }
        """For each kind, the check that returns the row as other oracles may see it, or None."""

    def handlers(self) -> dict[Kind, Handler]:
        """Every kind that names a node, a group or a message of the application."""
        return dict.fromkeys(self.admits, self._check)

    def _check(self, event: Event) -> None:
        self.admits[event.kind](event)

    def _on_deliver(self, event: Event) -> Event | None:
        message, node = event.message, event.node
        submit = self._submitted.get(message)  # type: ignore[arg-type]  # None is never a key
        delivered = self._delivered.get(node)
        if submit is None or delivered is None:
            return self._unsubmitted(event)
        groups = submit.groups
        if submit.label == READ:
            self._breach(event, "is a read, which nobody delivers")
            return None
        if node not in self._addressed[groups]:  # type: ignore[index]  # the screen saw to it
            self._breach(event, f"was submitted to {_groups(groups)}, which node {node} does not receive")
            return None
        if message in delivered:
            again = f"node {node} delivered {self._at(event)} a second time"
            self.report((node,), (submit.message or 0,), (event.time_ns,), again)
            return None
        delivered.add(message)  # type: ignore[arg-type]
        if event.time_ns < submit.time_ns and self._one_time:
            self._breach(event, f"was submitted only at {format_ns(submit.time_ns)}")
        if event.groups != groups:
            self._breach(event, f"went to {_groups(event.groups)}, but was submitted to {_groups(groups)}")
            event = event._replace(groups=groups)
        if event.digest != submit.digest and None not in (event.digest, submit.digest):
            self._breach(event, f"has digest {event.digest}, but was submitted with {submit.digest}")
        elif event.size != submit.size and None not in (event.size, submit.size):
            self._breach(event, f"has {event.size} bytes, but was submitted with {submit.size}")
        told, was = event.submitted_ns, submit.submitted_ns
        if told != was and told is not None and was is not None:
            named = f"names {format_ns(told)} as its time of submission"
            self._breach(event, f"{named}, but was submitted at {format_ns(was)}")
        peer = event.peer
        if peer != submit.node and peer is not None and peer != message_sender(event.message or 0):
            self._breach(event, f"the protocol said came from node {peer}")
        return event

    def _on_unpromised(self, event: Event) -> Event | None:
        admitted = self._on_deliver(event)
        if admitted is not None:
            self._breach(event, f"was {event.kind.replace('-', ' ')}, but that is not promised")
        return admitted

    def foretell(self, event: Event) -> None:
        """Take a submission into account before its row."""
        if event.message is not None and event.message not in self._foretold:
            self._foretold[event.message] = self._submit(event)

    def _unsubmitted(self, event: Event) -> Event | None:
        self._screen_node(event)
        if event.message is None:
            reason = f": {event.label}" if event.label else ""
            detail = f"node {event.node} delivered something that is not a message{reason}"
            self.report((event.node,), (), (event.time_ns,), detail)
            return None
        if event.message in self._delivered[event.node]:
            self._breach(event, "it had delivered before, and which was never submitted")
            return None
        self._breach(event, "had not been submitted")
        groups = self._known(event.groups)
        if event.node not in self._receivers(groups):
            return None
        self._delivered[event.node].add(event.message)
        return event._replace(groups=groups)

    def _on_submit(self, event: Event) -> Event | None:
        if event.message in self._foretold:
            return self._foretold.pop(event.message)
        return self._submit(event)

    def _submit(self, event: Event) -> Event | None:
        self._screen_node(event)
        message, groups = event.message, event.groups
        if message is None or groups is None:
            raise RemoteError(f"event {self.cursor.step}: a submission must have a message and groups")
        known = self._known(groups)
        if message in self._submitted:
            first = self._submitted[message]
            detail = (
                f"node {event.node} submitted {self._at(event)} again;"
                f" node {first.node} had submitted it at {format_ns(first.time_ns)}"
            )
            self.report((event.node,), (message,), (first.time_ns, event.time_ns), detail)
            return None
        if message_sender(message) != event.node:
            detail = f"node {event.node} submitted {self._at(event)}, which is another node's message"
            self.report((event.node,), (message,), (event.time_ns,), detail)
        if known != groups or not groups:
            detail = (
                f"node {event.node} submitted {self._at(event)} to {_groups(groups)};"
                f" the run has {_groups(tuple(self.description.groups))}"
            )
            self.report((event.node,), (message,), (event.time_ns,), detail)
            event = event._replace(groups=known)
        self._submitted[message] = event
        self._receivers(known)
        return event

    def _on_drop(self, event: Event) -> Event | None:
        self._screen_node(event)
        groups, numbers = event.groups or (), event.numbers or ()
        if len(groups) != 1 or len(numbers) != 1 or None in (*groups, *numbers, event.stamp_issuer):
            raise RemoteError(
                f"event {self.cursor.step}: a notification must have one group, one number and an issuer"
            )
        if event.node in self._receivers(self._known(event.groups)):
            return event
        detail = (
            f"node {event.node} was notified at {format_ns(event.time_ns)} of a drop in"
            f" {_groups(event.groups)}, which the node does not receive"
        )
        self.report((event.node,), (), (event.time_ns,), detail)
        return None

    def _on_view(self, event: Event) -> Event | None:
        self._screen_node(event)
        if not event.groups or event.config is None or event.members is None:
            raise RemoteError(
                f"event {self.cursor.step}: a view must have a group, a configuration and members"
            )
        strangers = [node for node in event.members if node not in self._delivered]
        if self._known(event.groups) == event.groups and not strangers:
            return event
        detail = (
            f"node {event.node} installed view {event.config} of {_groups(event.groups)} at"
            f" {format_ns(event.time_ns)}"
        )
        if strangers:
            detail += f" with members that the run does not have: {listed(strangers)}"
        else:
            detail += f"; the run has {_groups(tuple(self.description.groups))}"
        self.report((event.node,), (), (event.time_ns,), detail)
        return None

    def _on_joined(self, event: Event) -> Event | None:
        if self._may_change(event, "joined"):
            self._members.on_joined(event)
            return event
        return None

    def _on_left(self, event: Event) -> Event | None:
        if self._may_change(event, "left"):
            self._members.on_left(event)
            return event
        return None

    def _may_change(self, event: Event, what: str) -> bool:
        """Whether a node may be told that it joined or left: the run has the group, and may change it."""
        self._screen_node(event)
        known = self._known(event.groups)
        if self._members.changing and known and known == event.groups:
            return True
        why = "the groups are fixed" if known else f"the run has {_groups(tuple(self.description.groups))}"
        when = format_ns(event.time_ns)
        detail = f"node {event.node} {what} {_groups(event.groups)} at {when}, but {why}"
        self.report((event.node,), (), (event.time_ns,), detail)
        return False

    def _on_action(self, event: Event) -> Event | None:
        self._screen_node(event)
        return event

    def _on_recover(self, event: Event) -> Event | None:
        self._screen_node(event)
        if event.label == LOST:
            self._delivered[event.node].clear()
        self._members.on_recover(event)
        return event

    def _screen_node(self, event: Event) -> None:
        if event.node not in self._delivered:
            raise RemoteError(
                f"event {self.cursor.step} ({event.kind}) names node {event.node},"
                f" which is not in the run's description"
            )

    def _known(self, groups: Groups | None) -> Groups:
        """The groups among these that the run has, each once."""
        return tuple(dict.fromkeys(group for group in groups or () if group in self.description.groups))

    def _receivers(self, groups: Groups) -> set[NodeId]:
        """The nodes that receive some known groups now."""
        receivers = self._addressed.get(groups)
        if receivers is None:
            receivers = self._addressed[groups] = self._members.addressed(groups)
        return receivers

    def _breach(self, event: Event, what: str) -> None:
        detail = f"node {event.node} delivered {self._at(event)}, which {what}"
        self.report((event.node,), (event.message or 0,), (event.time_ns,), detail)

    @staticmethod
    def _at(event: Event) -> str:
        return message_at(event.message or 0, event.time_ns)


def _groups(groups: Groups | None) -> str:
    if not groups:
        return "no group"
    return f"group{'' if len(groups) == 1 else 's'} {listed(groups)}"
