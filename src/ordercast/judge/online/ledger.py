"""The ledger: who submitted, delivered and was notified of which messages. Promises about the end are judged
on it.

A *slot* is (issuer, group, number). A message's slots are those that its deliver rows name; several messages
share a slot when the driver sent them in one bundle. A slot is *beyond* what its group settles if a view
removes its issuer with a smaller last number. Then the slot binds nobody (Hydra, Appendix B), with two
exceptions. It binds if a majority of the group, correct or not, delivered it or was notified of it. And if a
majority of any group delivered a message, its slots bind in all groups. If such views differ, which is a
finding of `drop_detection`, the largest last number counts.

Where views are promised, each delivery and notification is kept with the views that its node was in. The
members of a view owe the messages that were delivered in it, unless a later view leaves them out. Receivers
that no view leaves out owe the messages that were delivered in no view. A delivery of an excluded node is a
finding of `view_synchrony`, and binds nobody.

A node *survives* a view if it goes on to the next one. It does not if the next one leaves it out, or if it
starts anew with a later one, as after a restart. Unless agreement is uniform, what it delivered in such a
view binds nobody: perhaps no other member got it. A node that starts anew with a view owes nothing of earlier
views.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ordercast.core import (
    ANEW,
    Agreement,
    Consistency,
    Gaps,
    GroupId,
    Groups,
    MessageId,
    Nanos,
    NodeId,
    Order,
)
from ordercast.judge.online.changes import changes_of
from ordercast.judge.online.members import Members, Place
from ordercast.judge.online.population import Population
from ordercast.judge.online.restored import Restored
from ordercast.trace import CARRYING, ENTERING, LOST, REMOVED, RETURNING, Event, Kind, RunDescription


class Slot(NamedTuple):
    """A number that an issuer gave for a group; None if a delivery does not have it."""

    issuer: int
    group: GroupId
    number: int | None


class Submission(NamedTuple):
    """A message as it was submitted, and how often its sender had crashed by then."""

    sender: NodeId
    groups: Groups
    time_ns: Nanos
    crashes: int


class ListedView(NamedTuple):
    """A view of a group."""

    config: int
    members: tuple[NodeId, ...]


Views = dict[GroupId, ListedView]
"""The views that a node is in. The dictionary is replaced, never changed."""


class Ledger:
    """The ledger of a run."""

    def __init__(self, description: RunDescription, members: Members) -> None:
        promised = description.guarantees
        self._numbered = promised.gaps is Gaps.NOTIFIED or promised.agreement is Agreement.NOTIFIED
        self.population = Population()
        self.submissions: dict[MessageId, Submission] = {}
        self.delivered: dict[NodeId, dict[MessageId, Nanos]] = {node.id: {} for node in description.nodes}
        self.dropped: dict[Slot, dict[NodeId, Nanos]] = {}
        self.returned: set[MessageId] = set()
        """Messages of which their sender was told that nobody may have them."""
        self.slots: dict[MessageId, tuple[Slot, ...]] = {}
        self.carried: dict[Slot, list[MessageId]] = {}
        self._settled: dict[tuple[int, GroupId], int] = {}
        """The last number of each issuer that was removed, for each group."""
        self._viewed = promised.views
        self._views: dict[NodeId, Views] = {node.id: {} for node in description.nodes}
        self._delivered_in: dict[NodeId, dict[MessageId, Views]] = {n.id: {} for n in description.nodes}
        self._dropped_in: dict[Slot, dict[NodeId, Views]] = {}
        self._left_out: dict[tuple[GroupId, NodeId], int] = {}
        """For each group and receiver, the newest view that leaves the receiver out."""
        self._uniform = promised.uniform
        self._configs: dict[GroupId, set[int]] = {group: set() for group in description.groups}
        self._breaks: set[tuple[GroupId, NodeId, int]] = set()
        """Views that a receiver does not go on to from the view before."""
        self._ends: set[tuple[GroupId, NodeId, int]] = set()
        """Views after which a receiver joins the group again, or has lost its state: it starts anew then."""
        self._members = members
        self._changing = members.changing
        self._placed = self._changing or promised.consistency is not Consistency.NONE
        self._firsts: dict[MessageId, Event] = {}
        """The first delivery of each message, which has its place; only if not everybody owes all places."""
        self._separate = promised.order is Order.GROUP
        self._firsts_in: dict[tuple[MessageId, GroupId], Event] = {}
        """That in each group, of messages to several groups that have a place of their own in each."""
        self.restored = Restored()

    def handlers(self) -> dict[Kind, Callable[[Event], None]]:
        """The handlers that feed the ledger."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(CARRYING, self._on_deliver),
            Kind.DROP: self._on_drop,
            **dict.fromkeys(RETURNING, self._on_return),
            Kind.VIEW: self._on_view,
            Kind.CHECKPOINT: self.restored.on_checkpoint,
            **dict.fromkeys(ENTERING, self._on_joined),
            Kind.CRASH: self.population.on_crash,
            Kind.RECOVER: self._on_recover,
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
        if self._viewed:
            if self._excluded(event.node, event.groups or ()):
                return
            self._delivered_in[event.node].setdefault(message, self._views[event.node])
        self.delivered[event.node].setdefault(message, event.time_ns)
        if self._placed:
            self._firsts.setdefault(message, event)
            if self._separate and len(event.groups or ()) > 1:
                for group in self._groups_of(event.node, event.groups or ()):
                    self._firsts_in.setdefault((message, group), event)
        if self._numbered and event.numbers and message not in self.slots and event.stamp_issuer is not None:
            slots = tuple(Slot(event.stamp_issuer, *slot) for slot in event.slots())
            self.slots[message] = slots
            for slot in slots:
                self.carried.setdefault(slot, []).append(message)

    def _on_return(self, event: Event) -> None:
        if event.message is not None:
            self.returned.add(event.message)

    def _on_drop(self, event: Event) -> None:
        if event.stamp_issuer is not None:
            for group, number in event.slots():
                slot = Slot(event.stamp_issuer, group, number)
                self.dropped.setdefault(slot, {}).setdefault(event.node, event.time_ns)
                if self._viewed:
                    self._dropped_in.setdefault(slot, {}).setdefault(event.node, self._views[event.node])

    def _on_view(self, event: Event) -> None:
        config, members = event.config or 0, event.members or ()
        for group, change in changes_of(event):
            if change.what == REMOVED:
                key = (change.issuer, group)
                self._settled[key] = max(change.number, self._settled.get(key, change.number))
        for group in event.groups or ():
            self._views[event.node] = self._views[event.node] | {group: ListedView(config, members)}
            self._configs[group].add(config)
            for node in self._members.of(group):
                if node not in members:
                    self._break(group, node, config, config)
            if event.label == ANEW:
                self._break(group, event.node, config, config - 1)

    def _break(self, group: GroupId, node: NodeId, config: int, left_out: int) -> None:
        """A receiver does not go on to a view; it owes nothing up to the view that leaves it out."""
        self._breaks.add((group, node, config))
        self._left_out[group, node] = max(left_out, self._left_out.get((group, node), left_out))

    def _on_joined(self, event: Event) -> None:
        self._end(event.node, event.groups or ())

    def _on_recover(self, event: Event) -> None:
        self.population.on_recover(event)
        if event.label == LOST:
            self._end(event.node, tuple(self._views[event.node]))
            self._views[event.node] = {}

    def _end(self, node: NodeId, groups: Groups) -> None:
        """A receiver does not go on from the views of these groups."""
        views = self._views[node]
        self._ends.update((group, node, views[group].config) for group in groups if group in views)

    def _excluded(self, node: NodeId, groups: Groups) -> bool:
        """Whether the views of all these groups that a node receives leave the node out."""
        views = self._views[node]
        mine = [group for group in groups if node in self._members.of(group)]
        return bool(mine) and all(group in views and node not in views[group].members for group in mine)

    def receivers(self, groups: Groups) -> tuple[NodeId, ...]:
        """All that ever received one of these groups, in ascending order."""
        return self._members.receivers(groups)

    def owes(self, node: NodeId, message: MessageId) -> bool:
        """Whether a message is ordered while a receiver is in one of its groups.

        A receiver that took over a state does not owe what the state stands for.
        """
        first = self._firsts.get(message)
        if any(self.restored.covers(node, one) for one in self._firsts_for(node, message, first)):
            return False
        if not self._changing:
            return True
        _, groups, submitted, _ = self.submissions[message]
        return self._members.owes(node, groups, None if first is None else Place.of(first), submitted)

    def _groups_of(self, node: NodeId, groups: Groups) -> list[GroupId]:
        return [group for group in groups if node in self._members.of(group)]

    def _firsts_for(self, node: NodeId, message: MessageId, first: Event | None) -> list[Event]:
        """The deliveries that say where a message is in the orders of a node's groups."""
        if first is None or not self._separate or len(first.groups or ()) < 2:
            return [] if first is None else [first]
        mine = ((message, group) for group in self._groups_of(node, first.groups or ()))
        return [self._firsts_in[key] for key in mine if key in self._firsts_in]

    def survived(self, node: NodeId, message: MessageId) -> bool:
        """Whether a node survived the view in which it delivered a message."""
        if not self._viewed or self._uniform:
            return True
        place = self._delivered_in[node][message]
        mine = [group for group in self.submissions[message].groups if group in place]
        return not mine or any(self._goes_on(group, node, place[group].config) for group in mine)

    def _goes_on(self, group: GroupId, node: NodeId, config: int) -> bool:
        """Whether a node goes on from a view to the next one, or there is no next one."""
        if (group, node, config) in self._ends:
            return False
        following = min((later for later in self._configs[group] if later > config), default=None)
        return following is None or (group, node, following) not in self._breaks

    def owing(self, message: MessageId, witnesses: Iterable[NodeId]) -> Collection[NodeId]:
        """The receivers that owe a message which these nodes delivered, correct or not."""
        survivors = [node for node in witnesses if self.survived(node, message)] if self._viewed else []
        places = [self._delivered_in[node][message] for node in survivors]
        owing = self._owing(self.submissions[message].groups, places)
        return [node for node in owing if self.owes(node, message)] if self._placed else owing

    def owing_slot(self, slot: Slot, witnesses: Iterable[NodeId]) -> Collection[NodeId]:
        """The receivers that owe a slot; these nodes were notified of its drop."""
        places = [self._dropped_in[slot][node] for node in witnesses] if self._viewed else []
        return self._owing((slot.group,), places)

    def _owing(self, groups: Groups, places: list[Views]) -> Collection[NodeId]:
        if not self._viewed:
            return self.receivers(groups)
        owing: set[NodeId] = set()  # only asked whether it contains a node
        for group in groups:
            views = list(dict.fromkeys(place[group] for place in places if group in place))
            for node in self._members.of(group):
                left_out = self._left_out.get((group, node))
                # One that joined later is in none of these views, though no view leaves it out.
                never = left_out is None and not views
                if never or any(node in v.members and v.config > (left_out or 0) for v in views):
                    owing.add(node)
        return owing

    def notified(self, node: NodeId, message: MessageId) -> bool:
        """Whether a receiver got a notification for this message, in some group of its own."""
        slots = self.slots.get(message, ())
        return any(node in self.dropped.get(slot, ()) for slot in slots)

    def beyond(self, slot: Slot) -> bool:
        """Whether a slot is above the last number of a removed issuer, and only minorities have it."""
        last = self._settled.get((slot.issuer, slot.group))
        if last is None or slot.number is None or slot.number <= last:
            return False
        carried = self.carried.get(slot, [])
        holders = {*self.dropped.get(slot, ()), *(n for m in carried for n in self._holders(m, slot.group))}
        return not self._is_majority(holders, slot.group) and not any(
            self._is_majority(self._holders(message, other.group), other.group)
            for message in carried
            for other in self.slots[message]
        )

    def _holders(self, message: MessageId, group: GroupId) -> list[NodeId]:
        return [node for node in self._members.of(group) if message in self.delivered[node]]

    def _is_majority(self, nodes: Collection[NodeId], group: GroupId) -> bool:
        """Whether these nodes are more than half of the receivers of a group."""
        return 2 * len(nodes) > len(self._members.of(group))

    def unbound(self, node: NodeId, message: MessageId) -> bool:
        """Whether all slots of a message in the groups of a receiver are beyond what the groups settle."""
        if not self._settled:
            return False
        mine = [s for s in self.slots.get(message, ()) if node in self._members.of(s.group)]
        return bool(mine) and all(self.beyond(slot) for slot in mine)

    def unexplained(self) -> Counter[tuple[NodeId, GroupId]]:
        """For each receiver and group, its notifications for slots whose message nobody delivered."""
        return Counter(
            (node, slot.group)
            for slot, holders in self.dropped.items()
            if slot not in self.carried
            for node in holders
        )
