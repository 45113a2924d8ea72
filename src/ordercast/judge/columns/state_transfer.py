"""State: a node that joins a group gets the state of its application as its view finds it, and nothing less.

What a node has of a group is a slice of its deliveries, from where it began with a state, and what that state
stands for. The sums over all slices come from one pass; there are few rows about states, views and members,
so they are processed one by one. Sets are made only to name a difference.
"""

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ordercast.core import GroupId, MessageId, NodeId, format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import KINDS, Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import messages_named
from ordercast.trace import CONFIGURING, ENTERING, LEAVING, TALLY, Kind
from ordercast.trace.tally import Tally

ROWS = (
    *ENTERING, *LEAVING, *CONFIGURING, Kind.STATE_WANTED, Kind.GIVE_STATE, Kind.STATE,
    Kind.CRASH, Kind.RECOVER,
)  # fmt: skip
BEGINNING = (Kind.STATE, Kind.RECOVER)
"""The kinds of rows with which an application begins with a state, or with nothing."""
Key = tuple[NodeId, GroupId, int]
"""Who was asked for the state of which group, at which view."""
Awaited = dict[tuple[NodeId, GroupId], list[tuple[int, int]]]


class Row(NamedTuple):
    """A row about states, views or members, for one of its groups."""

    row: int
    node: NodeId
    kind: Kind
    group: GroupId
    config: int
    members: tuple[NodeId, ...]
    peer: NodeId | None
    size: int
    digest: int
    label: str | None

    @property
    def key(self) -> Key:
        """The place that it names."""
        return self.node, self.group, self.config


class GroupDeliveries(NamedTuple):
    """What a node delivered of a group while it was in it: rows, messages, and the sums of all up to each."""

    rows: Ints
    messages: Ints
    sums: NDArray[np.uint64]

    def upto(self, row: int) -> int:
        """How many come before a row."""
        return int(np.searchsorted(self.rows, row))

    def total(self, start: int, stop: int) -> int:
        """The sum of some of them."""
        return (int(self.sums[stop]) - int(self.sums[start])) % (1 << 64)


class Slice(NamedTuple):
    """What a node has at a row: its deliveries from one place up to another, and the state it began with."""

    at: Row
    deliveries: GroupDeliveries
    start: int
    stop: int
    base: Key | None

    @property
    def messages(self) -> list[MessageId]:
        """The messages of the slice."""
        found: list[MessageId] = self.deliveries.messages[self.start : self.stop].tolist()
        return found


def state_transfer(case: Case, findings: Findings) -> None:
    """Judge the states of all groups."""
    rows = list(_rows(case))
    awaited = _awaited(rows)
    for group in case.description.groups:
        _Group(case, findings, group, awaited).judge([one for one in rows if one.group == group])


def _awaited(rows: list[Row]) -> Awaited:
    """For each node and group, from which row up to which one a state is awaited."""
    found: Awaited = {}
    since: dict[tuple[NodeId, GroupId], int] = {}
    for one in rows:
        key = (one.node, one.group)
        passing = one.kind in (Kind.STATE_WANTED, Kind.GIVE_STATE, Kind.RECOVER)
        if passing or (one.kind in CONFIGURING and one.node not in one.members):
            continue
        if key in since:
            found.setdefault(key, []).append((since.pop(key), one.row))
        if one.kind in ENTERING:
            since[key] = one.row
    for key, row in since.items():
        found.setdefault(key, []).append((row, 1 << 62))
    return found


def _rows(case: Case) -> Iterator[Row]:
    trace = case.trace
    where = trace.rows(*ROWS)
    null = null_of(trace.column("peer"))
    names = ("groups", "members")
    groups, members = (trace.table[name].take(where).to_pylist() for name in names)
    columns = (trace.column(name)[where].tolist() for name in ("config", "peer", "size", "digest"))
    labels = trace.label(where)
    for row, named, seated, config, peer, size, digest, label in zip(
        where.tolist(), groups, members, *columns, labels, strict=True
    ):
        kind = KINDS[trace.kind[row]]
        everywhere = tuple(case.description.groups) if kind in (Kind.CRASH, Kind.RECOVER) else ()
        who, donor = int(trace.node[row]), None if peer == null else peer
        for group in everywhere or named or ():
            yield Row(row, who, kind, group, config, tuple(seated or ()), donor, size, digest, label)


class _Group:
    """One group of a run."""

    def __init__(self, case: Case, findings: Findings, group: GroupId, awaited: Awaited) -> None:
        self._case = case
        self._findings = findings
        self._group = group
        self._awaited = awaited
        self._going = np.array([group in groups for groups in case.trace.groups.tuples] + [False], bool)
        self._deliveries: dict[NodeId, GroupDeliveries] = {}
        self._installed: dict[int, list[Slice]] = {}
        self._asked: dict[Key, Slice] = {}
        self._given: dict[Key, Row] = {}
        self._begun: list[Slice] = []
        """What each node has from a state on, up to where that ends."""

    def judge(self, rows: list[Row]) -> None:
        """Follow each node, and then compare them."""
        for node in self._case.trace.node_ids:
            mine = [one for one in rows if one.node == node]
            self._follow(mine, self._of(node, mine))
        for begun in self._begun:
            self._judge_state(begun)
        for key, given in self._given.items():
            self._judge_given(key, given)
        for config, slices in self._installed.items():
            self._judge_view(config, slices)

    # One node

    def _of(self, node: NodeId, mine: list[Row]) -> GroupDeliveries:
        """The deliveries of a node. Between two beginnings each message counts once."""
        trace = self._case.trace
        rows = trace.order.carried
        rows = rows[(trace.node[rows] == node) & self._going[trace.groups.codes[rows]]]
        rows = rows[trace.message[rows] != null_of(trace.message)]
        rows = rows[trace.members.inside(node, self._group, rows)]
        begins = np.array([one.row for one in mine if one.kind in BEGINNING], np.int64)
        pairs = np.stack([np.searchsorted(begins, rows), trace.message[rows]])
        rows = rows[np.sort(np.unique(pairs, axis=1, return_index=True)[1])]
        messages = trace.message[rows]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_spread(messages), dtype=np.uint64)])
        return GroupDeliveries(rows, messages, sums)

    def _follow(self, rows: list[Row], deliveries: GroupDeliveries) -> None:
        start, base, began = 0, None, None
        awaited: Row | None = None
        view: tuple[int, int] | None = None
        for one in rows:
            here = Slice(one, deliveries, start, deliveries.upto(one.row), base)
            if awaited is not None and self._is_early(awaited, one, deliveries):
                awaited = None
            if one.kind in ENTERING:
                awaited = one
            elif one.kind in LEAVING or one.kind is Kind.CRASH:
                awaited = None
            elif one.kind in CONFIGURING and one.node in one.members:
                view = (one.config, here.stop - here.start)
                self._installed.setdefault(one.config, []).append(here)
            elif one.kind is Kind.STATE_WANTED:
                self._judge_wanted(here, view)
                self._asked[one.key] = here
            elif one.kind is Kind.GIVE_STATE:
                self._given[one.key] = one
            elif one.kind in BEGINNING:
                self._end(began, here.stop)
                start, base, began = here.stop, None, None
            if one.kind is Kind.STATE:
                self._judge_turn(awaited, one)
                awaited = None
                base = None if one.peer is None else (one.peer, self._group, one.config)
                began = Slice(one, deliveries, start, start, base)
        self._end(began, len(deliveries.rows))
        if awaited is not None:
            self._judge_last(awaited, deliveries)

    def _end(self, began: Slice | None, stop: int) -> None:
        if began is not None:
            self._begun.append(began._replace(stop=stop))

    def _is_early(self, joined: Row, one: Row, deliveries: GroupDeliveries) -> bool:
        """Whether something of the group came after a node joined, and before its state."""
        for at in range(deliveries.upto(joined.row), deliveries.upto(one.row)):
            if not self._has_reason(joined.node, int(deliveries.rows[at])):
                message = int(deliveries.messages[at])
                what = f"delivered {messages_named([message])}"
                self._tell_early(int(deliveries.rows[at]), joined, what, (message,))
                return True
        if one.kind in CONFIGURING and one.node in one.members:
            self._tell_early(one.row, joined, f"installed view {one.config}")
            return True
        return False

    def _has_reason(self, node: NodeId, row: int) -> bool:
        """Whether a node delivers a message because it is in another of its groups, with its state."""
        trace, at = self._case.trace, np.array([row])
        groups = trace.known(trace.groups.tuples[trace.groups.codes[row]])
        inside = [group for group in groups if bool(trace.members.inside(node, group, at)[0])]
        return any(
            not any(first < row < last for first, last in self._awaited.get((node, group), ()))
            for group in inside
        )

    def _tell_early(self, row: int, joined: Row, what: str, messages: tuple[MessageId, ...] = ()) -> None:
        what = f"{what} of group {self._group}, which it had joined, before it got the state of the group"
        self._tell(row, (joined.node,), what, messages, step=row)

    def _judge_wanted(self, here: Slice, view: tuple[int, int] | None) -> None:
        config, count = view or (None, 0)
        if (config, count) != (here.at.config, here.stop - here.start):
            what = f"was asked for the state of group {self._group} at view {here.at.config},"
            messages = tuple(here.messages[count:])
            self._tell(
                here.at.row, (here.at.node,), f"{what} but not as it began", messages, step=here.at.row
            )

    def _judge_turn(self, joined: Row | None, one: Row) -> None:
        if joined is None or joined.config != one.config:
            what = f"got a state of group {self._group} at view {one.config}, which it had not just joined"
            self._tell(one.row, (one.node,), what, step=one.row)

    def _judge_last(self, joined: Row, deliveries: GroupDeliveries) -> None:
        """A node joined, and no later row says that it has the state."""
        end = joined._replace(row=len(self._case.trace.kind))
        if not self._is_early(joined, end, deliveries) and self._case.description.complete:
            time_ns = int(self._case.trace.time[joined.row])
            detail = f"node {joined.node} joined group {self._group} at {format_ns(time_ns)},"
            self._findings.add((joined.node,), (), (time_ns,), f"{detail} and never got its state")

    # Several nodes

    def _judge_state(self, begun: Slice) -> None:
        one = begun.at
        if begun.base is None:
            return
        donor, asked, given = begun.base[0], self._asked.get(begun.base), self._given.get(begun.base)
        what = f"got the state of group {self._group} at view {one.config} from node {donor}"
        if asked is None or given is None or one.node not in asked.at.members:
            self._tell(one.row, (one.node, donor), f"{what}, which did not give it to this node")
        elif (given.size, given.digest) != (one.size, one.digest):
            detail = f"{what} with {one.size} bytes and digest {one.digest}; node {donor} gave {given.size}"
            self._tell(one.row, (one.node, donor), f"{detail} bytes with digest {given.digest}")
        stands_for = np.array(sorted(self._messages(asked)) if asked else [], np.int64)
        own = begun.deliveries.messages[begun.start : begun.stop]
        twice = tuple(own[np.isin(own, stands_for)].tolist())
        if twice:
            detail = f"delivered {messages_named(twice)}, which its state of group {self._group} stands for"
            self._tell(one.row, (one.node, donor), f"{detail} already", twice)

    def _judge_given(self, key: Key, given: Row) -> None:
        """A state that is a tally must be that of what its node had delivered."""
        asked = self._asked.get(key)
        sums = None if asked is None else self._sums(asked)
        if given.label != TALLY or sums is None:
            return
        if crc32(Tally(*sums).pack()) != given.digest:
            what = f"gave a state of group {self._group} at view {key[2]} that is not that of the {sums[0]}"
            self._tell(given.row, (given.node,), f"{what} messages that it had then")

    def _judge_view(self, config: int, slices: list[Slice]) -> None:
        known = [(one, sums) for one in slices if (sums := self._sums(one)) is not None]
        for one, sums in known:
            first, expected = known[0]
            if sums == expected:
                continue
            here, there = self._messages(one), self._messages(first)
            differing = tuple(sorted(here ^ there))
            nodes = (one.at.node, first.at.node)
            what = (
                f"installed view {config} of group {self._group} with {len(here)} messages, node {nodes[1]}"
                f" with {len(there)}; they differ in {messages_named(differing)}"
            )
            self._tell(one.at.row, nodes, what, differing)

    def _sums(self, one: Slice) -> tuple[int, int] | None:
        """The count and the sum of all messages of a slice; None if its state is of nobody that was asked."""
        chain = self._chain(one)
        if chain[-1].base is not None:
            return None
        total = sum(link.deliveries.total(link.start, link.stop) for link in chain)
        return sum(link.stop - link.start for link in chain), total % (1 << 64)

    def _messages(self, one: Slice) -> set[MessageId]:
        return {message for link in self._chain(one) for message in link.messages}

    def _chain(self, one: Slice) -> list[Slice]:
        """A slice, the one that its state was taken of, and so on; each is of an earlier view."""
        chain, before = [one], 1 << 63
        while (base := chain[-1].base) is not None and base[2] < before and base in self._asked:
            chain.append(self._asked[base])
            before = base[2]
        return chain

    def _tell(
        self,
        row: int,
        nodes: tuple[NodeId, ...],
        what: str,
        messages: tuple[MessageId, ...] = (),
        step: int | None = None,
    ) -> None:
        time_ns = int(self._case.trace.time[row])
        detail = f"node {nodes[0]} {what} (at {format_ns(time_ns)})"
        if step is None:
            self._findings.add(nodes, messages, (time_ns,), detail)
        else:
            self._findings.add(nodes, messages, (time_ns,), detail, step)


def _spread(messages: Ints) -> NDArray[np.uint64]:
    """The numbers of messages in a sum, as `trace/tally.py` has them."""
    value = messages.astype(np.uint64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return found
