"""The ledger: what receivers owe at the end of a run. Agreement and validity are judged on it.

For each receiver, it has a mark for each message that the receiver delivered. If all marks are set, nothing
is missing. Only messages that some correct receiver lacks are judged one by one, with their slots,
notifications and views.

A *slot* is (issuer, group, number). Slots above the last number of a removed issuer bind nobody, unless most
of the group got them. Where views are promised, the members of a view owe the messages that were delivered in
it, unless a later view leaves them out. What a node delivers after it was left out binds nobody. Nor does,
unless agreement is uniform, what it delivered in a view from which it did not go on to the next.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, Groups, Nanos, NodeId, Order
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.changes import Change
from ordercast.judge.columns.columns import Flags, Ints, by_key, factorize, list_columns, null_of
from ordercast.judge.columns.continuity import Continuity
from ordercast.judge.columns.members import OrderPlaces
from ordercast.judge.columns.notices import Drop, InstalledView
from ordercast.judge.columns.population import Population
from ordercast.judge.columns.removals import Removals
from ordercast.judge.columns.restored import RestoredState, restored_by_node
from ordercast.judge.columns.stays import Stays


class Slot(NamedTuple):
    """A number that an issuer gave for a group."""

    issuer: int
    group: GroupId
    number: int


class _SlotColumns(NamedTuple):
    """The slots of messages, in columns."""

    issuer: Ints
    group: Ints
    number: Ints
    place: Ints


class Ledger:
    """Who lacks what at the end of a run."""

    def __init__(
        self,
        account: Account,
        drops: list[Drop],
        views: list[InstalledView],
        changes: list[Change],
        stays: Stays,
    ) -> None:
        self.account = account
        self.population = Population(account.trace)
        self._stays = stays
        self._viewed = account.trace.description.guarantees.views
        self._members = account.trace.members
        self._groups = self._members.ever
        self.count = len(account.submit_row)
        """Messages from this place on were never submitted, and nobody owes them."""
        self.holders: dict[Slot, dict[NodeId, Nanos]] = {}
        """For each slot, the nodes that were notified of its drop, and when each was notified first."""
        self._drop_rows: dict[tuple[Slot, NodeId], int] = {}
        for drop in drops:
            slot = Slot(drop.issuer, drop.group, drop.number)
            self.holders.setdefault(slot, {}).setdefault(drop.node, drop.time_ns)
            self._drop_rows.setdefault((slot, drop.node), drop.row)
        self._removals = Removals(changes)
        promised = account.trace.description.guarantees
        self._separate = promised.order is Order.GROUP and len(self._groups) > 1
        """Whether a message to several groups has a place of its own in each."""
        self._uniform = account.trace.description.guarantees.uniform
        self._continuity = Continuity(views, self._members)
        self._restored = restored_by_node(account.trace)
        self._owed: dict[NodeId, Flags] = {}
        self.delivered = {node: self._marks(node) for node in self._all_receivers()}
        """For each receiver, which messages it delivered, in any life."""

    def receivers(self, groups: Groups) -> list[NodeId]:
        """The receivers of some groups together, in ascending order."""
        return sorted(self.account.trace.receivers(groups))

    def correct(self, groups: Groups) -> list[NodeId]:
        """The correct receivers of some groups."""
        return [node for node in self.receivers(groups) if self.population.correct(node)]

    def lacking(self) -> Ints:
        """The messages that some correct receiver of their groups did not deliver."""
        lacked = np.zeros(self.count, bool)
        order, starts = by_key(self.account.destination[: self.count], len(self.account.destinations))
        for code, groups in enumerate(self.account.destinations):
            mine = order[starts[code] : starts[code + 1]]
            everything = len(mine) == self.count
            for node in self.correct(groups) if len(mine) else ():
                owed = self.owed(node)
                if owed is not None:
                    lacked[mine] |= ~self.delivered[node][mine] & owed[mine]
                elif everything:
                    lacked |= ~self.delivered[node][: self.count]
                else:
                    lacked[mine] |= ~self.delivered[node][mine]
        return np.flatnonzero(lacked)

    def groups(self, place: int) -> Groups:
        """The groups that a message goes to."""
        return self.account.destinations[int(self.account.destination[place])]

    def first_delivery(self, node: NodeId, place: int) -> int:
        """The place of a node's first delivery of a message."""
        return int(self._firsts[node][place])

    def owing(self, place: int, witnesses: Iterable[NodeId]) -> Collection[NodeId]:
        """The receivers that owe a message which these nodes delivered, correct or not."""
        groups = self.groups(place)
        if not self._viewed:
            owing: Collection[NodeId] = self.account.trace.receivers(groups)
        else:
            survivors = [node for node in witnesses if self.survived(node, place)]
            rows = [(node, self._delivery_row(node, place)) for node in survivors]
            owing = self._owing(groups, rows)
        if not self._members.changed and not self._restored:
            return owing
        return [node for node in owing if self.owes(node, place)]

    def owes(self, node: NodeId, place: int) -> bool:
        """Whether a message is ordered while a receiver is in one of its groups."""
        owed = self.owed(node)
        return owed is None or bool(owed[place])

    def owed(self, node: NodeId) -> Flags | None:
        """For each submitted message, whether it is ordered while a receiver is in one of its groups.

        None if the receiver owes all messages to its groups, because it never joined or left a group, or took
        over a state that stands for some.
        """
        changed, restored = node in self._members.changed, self._restored.get(node, [])
        if not changed and not restored:
            return None
        if node not in self._owed:
            owed = self._find_owed(node) if changed else np.ones(self.count, bool)
            for state in restored:
                owed &= ~self.stands_for(state)
            self._owed[node] = owed
        return self._owed[node]

    def stands_for(self, state: RestoredState) -> Flags:
        """Which messages were delivered in the group of a state, up to its place."""
        places, known = self._places_in(state.group) if self._separate else self._message_places
        to = self.account.going_to(state.group)[self.account.destination[: self.count]]
        flags: Flags = to & known & places.stamped & ~places.above(state.clock, state.issuer)
        return flags

    def has_state_of(self, node: NodeId, place: int) -> bool:
        """Whether a node took over a state that stands for a message."""
        return any(self.stands_for(state)[place] for state in self._restored.get(node, ()))

    def _find_owed(self, node: NodeId) -> Flags:
        account, (places, known) = self.account, self._message_places
        submitted = account.trace.time[account.submit_row]
        owed = np.zeros(self.count, bool)
        for group in self._groups:
            to = account.going_to(group)[account.destination[: self.count]]
            spans = self._members.spans.get((node, group))
            if spans is None:
                owed |= to & (node in self._groups[group])
            for span in spans or ():
                if not span.void:
                    owed |= to & self._members.owes(span, places, known, submitted)
        return owed

    @cached_property
    def _message_places(self) -> tuple[OrderPlaces, Flags]:
        """Where each submitted message was delivered first, and which of them were delivered at all."""
        return self._first_places(self._binding if self._viewed else np.ones(len(self.account.place), bool))

    def _places_in(self, group: GroupId) -> tuple[OrderPlaces, Flags]:
        """The same, in the order of one group."""
        return self._first_places(np.isin(self.account.node, list(self._groups[group])))

    def _first_places(self, counting: Flags) -> tuple[OrderPlaces, Flags]:
        account = self.account
        where = np.flatnonzero((account.place < self.count) & counting)
        where = where[np.argsort(account.row[where], kind="stable")[::-1]]
        first = np.full(self.count, -1, np.int64)
        first[account.place[where]] = account.row[where]
        names = ("stamp_clock", "stamp_issuer", "config")
        return OrderPlaces(*(account.trace.column(name)[first] for name in names)), first >= 0

    def survived(self, node: NodeId, place: int) -> bool:
        """Whether a node went on from the view in which it delivered a message, or was in none."""
        if not self._viewed or self._uniform:
            return True
        row = self._delivery_row(node, place)
        stays = [self._stays.stay_at(node, group, row) for group in self.groups(place)]
        mine = [stay for stay in stays if stay is not None]
        return not mine or any(map(self._continuity.goes_on, mine))

    def _delivery_row(self, node: NodeId, place: int) -> int:
        return int(self.account.row[self.first_delivery(node, place)])

    def owing_slot(self, slot: Slot, witnesses: Iterable[NodeId]) -> Collection[NodeId]:
        """The receivers that owe a slot; these nodes were notified of its drop."""
        if not self._viewed:
            return self.account.trace.receivers((slot.group,))
        return self._owing((slot.group,), [(node, self._drop_rows[slot, node]) for node in witnesses])

    def notified(self, node: NodeId, place: int) -> bool:
        """Whether a receiver got a notification for a message, in some group of its own."""
        return any(node in self.holders.get(slot, ()) for slot in self.slots(place))

    def binds(self, slot: Slot) -> bool:
        """Whether a slot binds its group. All slots of an issuer that is not removed do.

        A slot above the last number binds if most of the group got it, as message or as notification, or if
        most of any group delivered its message.
        """
        if not self._removals.cut_off(slot.issuer, slot.group, slot.number):
            return True
        got = set(self.holders.get(slot, ()))
        for place in self.carried.get(slot, ()):
            got.update(self._deliverers(place, slot.group))
            if any(self._most(self._deliverers(place, s.group), s.group) for s in self.slots(place)):
                return True
        return self._most(got, slot.group)

    def bound(self, node: NodeId, place: int) -> bool:
        """Whether a message has a binding slot in a group of a receiver, or no known slot there."""
        slots = self.slots(place) if self._removals.last else []
        mine = [slot for slot in slots if node in self._groups.get(slot.group, ())]
        return not mine or any(self.binds(slot) for slot in mine)

    def _deliverers(self, place: int, group: GroupId) -> list[NodeId]:
        return [node for node in self._groups.get(group, ()) if self.delivered[node][place]]

    def _most(self, nodes: Collection[NodeId], group: GroupId) -> bool:
        return len(nodes) > len(self._groups.get(group, ())) // 2

    def slots(self, place: int) -> list[Slot]:
        """The slots of a message, as its first delivery names them."""
        columns = self._slot_columns
        first, last = np.searchsorted(columns.place, (place, place + 1))
        return [
            Slot(int(columns.issuer[i]), int(columns.group[i]), int(columns.number[i]))
            for i in range(first, last)
        ]

    @cached_property
    def slotted(self) -> Flags:
        """For each message, whether some delivery of it names its slots."""
        marks = np.zeros(len(self.account.messages), bool)
        marks[self._slot_columns.place] = True
        return marks

    @cached_property
    def carried(self) -> dict[Slot, list[int]]:
        """The messages of each slot that is above the last number or that some node was notified of."""
        columns = self._slot_columns
        numbers = np.array([slot.number for slot in self.holders], np.int64)
        cut_off = self._removals.all_cut_off(columns.issuer, columns.group, columns.number)
        found: dict[Slot, list[int]] = {}
        for i in np.flatnonzero(cut_off | np.isin(columns.number, numbers)).tolist():
            slot = Slot(int(columns.issuer[i]), int(columns.group[i]), int(columns.number[i]))
            if cut_off[i] or slot in self.holders:
                found.setdefault(slot, []).append(int(columns.place[i]))
        return found

    @cached_property
    def bundled(self) -> bool:
        """Whether several messages of the run share a slot."""
        columns = self._slot_columns
        keys = np.zeros(len(columns.place), np.int64)
        for column in columns[:3]:
            distinct, places = factorize(column)
            _, keys = factorize(keys * max(1, len(distinct)) + places)
        return int(keys.max(initial=-1)) + 1 < len(keys)

    def unexplained(self) -> Counter[tuple[NodeId, GroupId]]:
        """For each receiver and group, its notifications for slots whose message nobody delivered."""
        return Counter(
            (node, slot.group)
            for slot, holders in self.holders.items()
            if slot not in self.carried
            for node in holders
        )

    def _all_receivers(self) -> list[NodeId]:
        return self.receivers(tuple(self._groups))

    @cached_property
    def _spans(self) -> dict[NodeId, slice]:
        """The slice of each node's deliveries."""
        nodes = self.account.node
        wanted = self._all_receivers()
        ids, starts = np.unique(nodes, return_index=True) if len(nodes) else (nodes, nodes)
        stops = [*starts[1:].tolist(), len(nodes)]
        found = {
            int(node): slice(int(start), int(stop))
            for node, start, stop in zip(ids.tolist(), starts.tolist(), stops, strict=False)
        }
        return {node: found.get(node, slice(0, 0)) for node in wanted}

    def _marks(self, node: NodeId) -> Flags:
        marks = np.zeros(len(self.account.messages), bool)
        places = self.account.place[self._spans[node]]
        marks[places[self._binding[self._spans[node]]] if self._viewed else places] = True
        return marks

    @cached_property
    def _binding(self) -> Flags:
        """For each delivery, whether its node was in the view of some group of the message, or had none."""
        account = self.account
        binding = np.ones(len(account.row), bool)
        for node in {stay.node for stay in self._stays.all if stay.excluded}:
            span = self._spans.get(node, slice(0, 0))
            rows = account.row[span]
            destination = account.to[span]
            outside = {group: self._outside(node, group, rows) for group in self._groups}
            for code in np.unique(destination).tolist():
                mine = [group for group in account.destinations[code] if node in self._groups[group]]
                if mine:
                    everywhere = np.logical_and.reduce([outside[group] for group in mine])
                    binding[span] &= ~(everywhere & (destination == code))
        return binding

    def _outside(self, node: NodeId, group: GroupId, rows: Ints) -> Flags:
        """For each of a node's rows, whether the node was in a view of the group that leaves it out."""
        stays = self._stays.of.get((node, group), [])
        excluded = np.array([*(stay.excluded for stay in stays), False], bool)  # the last is for no stay
        flags: Flags = excluded[self._stays.numbers_at(node, group, rows)]
        return flags

    @cached_property
    def _firsts(self) -> dict[NodeId, Ints]:
        """For each receiver and message, the place of its first binding delivery."""
        found = {}
        for node, span in self._spans.items():
            first = np.full(len(self.account.messages), -1, np.int64)
            where = np.arange(span.start, span.stop)
            if self._viewed:
                where = where[self._binding[span]]
            first[self.account.place[where[::-1]]] = where[::-1]
            found[node] = first
        return found

    @cached_property
    def _slot_columns(self) -> _SlotColumns:
        """The slots of each message, from the first delivery that names them; by message."""
        account, trace = self.account, self.account.trace
        lengths, *places = list_columns(trace.table["numbers"])
        issuers = trace.column("stamp_issuer")
        naming = (lengths[account.row] > 0) & (issuers[account.row] != null_of(issuers))
        if self._viewed:
            naming &= self._binding
        where = np.flatnonzero(naming)
        sample = np.full(len(account.messages), -1, np.int64)
        to = np.zeros(len(account.messages), np.int64)
        # The row that comes first in the trace, whatever its node.
        order = where[np.argsort(account.row[where], kind="stable")[::-1]]
        sample[account.place[order]] = account.row[order]
        to[account.place[order]] = account.to[order]
        named = np.flatnonzero(sample >= 0)
        parts: list[Sequence[Ints]] = []
        sizes = np.array([len(groups) for groups in account.destinations], np.int64)
        for at, column in enumerate(places):
            there = named[(lengths[sample[named]] > at) & (sizes[to[named]] > at)]
            group = np.array([groups[at] if len(groups) > at else -1 for groups in account.destinations])
            rows = sample[there]
            parts.append((issuers[rows], group[to[there]], column[rows], there))
        empty = np.empty(0, np.int64)
        columns = [np.concatenate(part) for part in zip(*parts, strict=True)] if parts else [empty] * 4
        by_place = np.argsort(columns[3], kind="stable")
        return _SlotColumns(*(column[by_place] for column in columns))

    def _owing(self, groups: Groups, places: list[tuple[NodeId, int]]) -> Collection[NodeId]:
        owing: set[NodeId] = set()
        for group in groups:
            stays = [self._stays.stay_at(node, group, row) for node, row in places]
            views = {(stay.view.config, stay.view.members) for stay in stays if stay is not None}
            for node in self._groups[group]:
                left_out = self._continuity.left_out.get((group, node))
                # One that joined later is in none of these views, though no view leaves it out.
                never = left_out is None and not views
                if never or any(node in m and config > (left_out or 0) for config, m in views):
                    owing.add(node)
        return owing
