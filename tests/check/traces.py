"""Tiny traces, written by hand: each call is a row, a microsecond after the one before."""

from collections.abc import Mapping

from ordercast.core import (
    MICROSECOND,
    Agreement,
    Causality,
    Gaps,
    GroupId,
    Groups,
    Guarantees,
    MessageId,
    NodeId,
    Order,
    message_id,
)
from ordercast.judge import Judge, Violation, audit, judge
from ordercast.trace import ADDED, REMOVED, Event, Kind, NodeDescription, RunDescription, build_table

STRICT = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    causality=Causality.CAUSAL,
    gaps=Gaps.NEVER,
    views=True,
)
"""Every promise at once: a fault that one oracle sees must not alarm another."""

NOTIFIED = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.NOTIFIED,
    uniform=True,
    validity=True,
    causality=Causality.FIFO,
    gaps=Gaps.NOTIFIED,
)
"""What a protocol with drop notifications promises at most."""

ONE_GROUP: Mapping[GroupId, tuple[NodeId, ...]] = {0: (0, 1, 2)}


class Trace:
    """Receivers are nodes from 0, and two senders follow them: `sender` and `sender + 1`."""

    def __init__(
        self,
        guarantees: Guarantees = STRICT,
        groups: Mapping[GroupId, tuple[NodeId, ...]] = ONE_GROUP,
        *,
        hosts: Mapping[NodeId, int] | None = None,
        complete: bool = True,
        source: str = "simulator",
    ) -> None:
        self.sender = 1 + max(node for members in groups.values() for node in members)
        self.events: list[Event] = []
        self.time_ns = 0
        self._numbers: dict[NodeId, int] = {}
        self._groups: dict[MessageId, tuple[Groups, int]] = {}
        hosts = hosts or {}
        self.description = RunDescription(
            run="test",
            source=source,
            protocol="test",
            guarantees=guarantees,
            nodes=tuple(
                NodeDescription(node, "receiver" if node < self.sender else "sender", hosts.get(node, node))
                for node in range(self.sender + 2)
            ),
            groups=dict(groups),
            complete=complete,
        )

    def row(self, node: NodeId, kind: Kind, **fields: object) -> None:
        self.time_ns += MICROSECOND
        event = Event(self.time_ns, self.time_ns, node, kind)
        self.events.append(event._replace(**fields))  # type: ignore[arg-type]

    def submit(self, sender: NodeId | None = None, groups: Groups = (0,)) -> MessageId:
        sender = self.sender if sender is None else sender
        message = message_id(sender, self._numbers.get(sender, 0))
        self._numbers[sender] = self._numbers.get(sender, 0) + 1
        submitted_ns = self.time_ns + MICROSECOND
        self._groups[message] = (groups, submitted_ns)
        self.row(
            sender,
            Kind.SUBMIT,
            message=message,
            groups=groups,
            submitted_ns=submitted_ns,
            digest=message % 97,
        )
        return message

    def deliver(self, node: NodeId, *messages: MessageId, **fields: object) -> None:
        for message in messages:
            groups, submitted_ns = self._groups.get(message, ((0,), 0))
            usual = {
                "kind": Kind.DELIVER,
                "message": message,
                "groups": groups,
                "submitted_ns": submitted_ns,
                "digest": message % 97,
            }
            self.row(node, **(usual | fields))  # type: ignore[arg-type]

    def deliver_to_all(self, *messages: MessageId) -> None:
        for node in range(self.sender):
            for message in messages:
                groups = self._groups[message][0]
                if any(node in self.description.groups[group] for group in groups):
                    self.deliver(node, message)

    def numbered(
        self, node: NodeId, message: MessageId, *numbers: int, issuer: int = 9, clock: int | None = None
    ) -> None:
        """A delivery with a multi-stamp."""
        self.deliver(node, message, numbers=numbers, stamp_issuer=issuer, stamp_clock=clock)

    def drop(self, node: NodeId, number: int, *, group: GroupId = 0, issuer: int = 9) -> None:
        self.row(node, Kind.DROP, groups=(group,), numbers=(number,), stamp_issuer=issuer, config=0)

    def view(self, node: NodeId, config: int, *members: NodeId, group: GroupId = 0) -> None:
        self.row(node, Kind.VIEW, groups=(group,), config=config, members=members)

    def added(
        self, node: NodeId, config: int, issuer: int, number: int, *, group: GroupId = 0, clock: int = 0
    ) -> None:
        """A view that adds an issuer, whose numbers begin after `number`."""
        self._change(node, ADDED, config, group, (number,), clock, issuer)

    def removed(
        self, node: NodeId, config: int, issuer: int, number: int, *, group: GroupId = 0, clock: int = 0
    ) -> None:
        """A view that removes an issuer, of which the group settles all up to `number`."""
        self._change(node, REMOVED, config, group, (number,), clock, issuer)

    def _change(
        self,
        node: NodeId,
        label: str,
        config: int,
        group: GroupId,
        numbers: tuple[int, ...],
        clock: int,
        issuer: int,
    ) -> None:
        self.row(
            node,
            Kind.VIEW,
            groups=(group,),
            numbers=numbers,
            stamp_clock=clock,
            stamp_issuer=issuer,
            config=config,
            members=self.description.groups[group],
            label=label,
        )

    def crash(self, node: NodeId) -> None:
        self.row(node, Kind.CRASH)

    def recover(self, node: NodeId, label: str = "saved") -> None:
        self.row(node, Kind.RECOVER, label=label)

    def judge(self) -> list[Violation]:
        online = Judge(self.description)
        for event in self.events:
            online.observe(event)
        online.finish()
        self.confirm()
        return online.violations

    def confirm(self) -> None:
        """The vectorised judge condemns the whole trace for the same properties."""
        told = {violation.property for violation in judge(self.description, self.events)}
        table = build_table("test", [tuple(event) for event in self.events])
        found = {violation.property for violation in audit(self.description, table).violations}
        assert found == told

    def clean(self) -> None:
        """No property is violated."""
        assert [str(violation) for violation in self.judge()] == []

    def only(self, name: str, count: int = 1) -> Violation:
        """Just this property is violated, so many times; the first finding."""
        violations = self.judge()
        assert [v.property for v in violations] == [name] * count, list(map(str, violations))
        return violations[0]
