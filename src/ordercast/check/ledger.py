"""Who submitted, delivered and was notified of what: the account that end-of-run promises are
judged on.

A *slot* is (issuer, group, number). A message's slots are those that its deliver rows name; several
messages share a slot when the driver sent them in one bundle.
"""

from typing import NamedTuple

from ordercast.check.oracle import Handler
from ordercast.check.population import Population
from ordercast.core import Agreement, Gaps, GroupId, Groups, MessageId, Nanos, NodeId
from ordercast.trace import Event, Kind, RunDescription


class Slot(NamedTuple):
    """A number that an issuer gave for a group."""

    issuer: int
    group: GroupId
    number: int


class Submission(NamedTuple):
    """A message as it was submitted, and how often its sender had crashed by then."""

    sender: NodeId
    groups: Groups
    time_ns: Nanos
    crashes: int


class Ledger:
    """The account of a run."""

    def __init__(self, description: RunDescription) -> None:
        promised = description.guarantees
        self._numbered = promised.gaps is Gaps.NOTIFIED or promised.agreement is Agreement.NOTIFIED
        self.population = Population()
        self.submissions: dict[MessageId, Submission] = {}
        self.delivered: dict[NodeId, dict[MessageId, Nanos]] = {node.id: {} for node in description.nodes}
        self.dropped: dict[Slot, dict[NodeId, Nanos]] = {}
        self.slots: dict[MessageId, tuple[Slot, ...]] = {}
        self.carried: dict[Slot, list[MessageId]] = {}
        self._members = description.groups
        self._receivers: dict[Groups, tuple[NodeId, ...]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """How the account is fed."""
        return {
            Kind.SUBMIT: self._on_submit,
            Kind.DELIVER: self._on_deliver,
            Kind.OUT_OF_ORDER: self._on_deliver,
            Kind.DROP: self._on_drop,
            Kind.CRASH: self.population.on_crash,
            Kind.RECOVER: self.population.on_recover,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None and event.message not in self.submissions:
            crashes = self.population.crashes.get(event.node, 0)
            self.submissions[event.message] = Submission(
                event.node, event.groups or (), event.time_ns, crashes
            )

    def _on_deliver(self, event: Event) -> None:
        message = event.message
        if message is None:
            return
        self.delivered[event.node].setdefault(message, event.time_ns)
        if self._numbered and event.numbers and message not in self.slots and event.stamp_issuer is not None:
            slots = tuple(Slot(event.stamp_issuer, *slot) for slot in event.slots())
            self.slots[message] = slots
            for slot in slots:
                self.carried.setdefault(slot, []).append(message)

    def _on_drop(self, event: Event) -> None:
        if event.stamp_issuer is not None:
            for slot in event.slots():
                holders = self.dropped.setdefault(Slot(event.stamp_issuer, *slot), {})
                holders.setdefault(event.node, event.time_ns)

    def receivers(self, groups: Groups) -> tuple[NodeId, ...]:
        """The receivers of some groups together, ascending."""
        receivers = self._receivers.get(groups)
        if receivers is None:
            found = {node for group in groups for node in self._members.get(group, ())}
            receivers = self._receivers[groups] = tuple(sorted(found))
        return receivers

    def notified(self, node: NodeId, message: MessageId) -> bool:
        """Whether a receiver got a notification for this message, in some group of its own."""
        slots = self.slots.get(message, ())
        return any(node in self.dropped.get(slot, ()) for slot in slots)

    def unexplained(self) -> set[tuple[NodeId, GroupId]]:
        """Receivers and groups with a notification for a slot that nobody saw the message of."""
        return {
            (node, slot.group)
            for slot, holders in self.dropped.items()
            if slot not in self.carried
            for node in holders
        }
