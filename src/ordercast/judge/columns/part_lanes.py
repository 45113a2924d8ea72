"""Lanes and configurations in the parts of a large run.

Where gaps are notified, the numbers of a lane grow by one from bundle to bundle, and views say where they
begin and end (`lane.py`). A part shows that they do so in its rows, and tells the first and the last number
of each lane. `doubt_of_lanes` follows the lanes from part to part. If they are regular, no receiver delivered
two bundles with one number, and drop detection needs no closer look. Configurations are treated alike: a part
tells where each node named each of them first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from ordercast.core import Gaps, GroupId, Groups, MessageId, NodeId
from ordercast.judge.columns.changes import Change, changes_of
from ordercast.judge.columns.columns import CODE, Flags, Ints, by_key, factorize, list_columns, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.notices import Drop, drops_of, views_of
from ordercast.judge.columns.trace import Trace
from ordercast.trace import CONFIGURING, RETURNING, SETTLING, Kind, RunDescription

NOTICES = (*SETTLING, *CONFIGURING, *RETURNING)
"""The kinds of rows that are few, and are judged together with the messages that need a closer look."""
NOT_REGULAR = "the numbers of a lane are not regular"
NOTHING = -1
"""Stands for the message of a notification."""


class LaneEnd(msgspec.Struct, frozen=True, array_like=True):
    """The first or the last number of a lane in a part, and the row in which it came."""

    number: int
    step: int
    message: MessageId
    clock: int


class PartLane(msgspec.Struct, frozen=True, array_like=True):
    """A lane in a part: its numbers there are regular."""

    node: NodeId
    issuer: int
    group: GroupId
    first: LaneEnd
    last: LaneEnd


class NamedConfig(msgspec.Struct, frozen=True, array_like=True):
    """The first row in which a node installed a configuration, or named it for messages to some groups."""

    node: NodeId
    groups: Groups
    config: int
    step: int


class PartLanes(msgspec.Struct):
    """What a part says about numbers and configurations."""

    doubt: str = ""
    lanes: list[PartLane] = msgspec.field(default_factory=list)
    changes: list[Change] = msgspec.field(default_factory=list)
    """The views that add or remove an issuer, with their steps in place of their rows."""
    installed: list[NamedConfig] = msgspec.field(default_factory=list)
    named: list[NamedConfig] = msgspec.field(default_factory=list)
    notices: int = 0
    """The rows of the kinds `NOTICES`."""


class HasLanes(Protocol):
    """A summary of a part."""

    @property
    def lanes(self) -> PartLanes:
        """What it says about numbers and configurations."""


def part_lanes(trace: Trace, step: Ints, delivered: Ints) -> PartLanes:
    """What a part says; `delivered` are the rows of its deliveries, by node."""
    found = PartLanes(notices=len(trace.rows(*NOTICES)))
    views, drops = views_of(trace, Findings("")), drops_of(trace, Findings(""))
    found.changes = [change._replace(row=int(step[change.row])) for change in changes_of(trace, views)]
    found.installed = [NamedConfig(v.node, v.groups, v.config, int(step[v.row])) for v in views]
    rows = np.concatenate([delivered, trace.rows(*SETTLING)])
    found.named = list(_first_named(trace, step, rows))
    if trace.description.guarantees.gaps is Gaps.NOTIFIED:
        found.doubt = _walk(trace, step, delivered, drops, found.lanes)
    elif trace.table["numbers"].null_count < len(step):
        found.doubt = "rows have numbers, but no gaps are notified"
    return found


def _first_named(trace: Trace, step: Ints, rows: Ints) -> Iterator[NamedConfig]:
    """Where each node named each configuration but the first one for messages to the same groups."""
    config = trace.column("config")[rows]
    rows = rows[(config != 0) & (config != null_of(config))]
    rows = rows[np.argsort(step[rows], kind="stable")]
    kinds = np.zeros(len(rows), np.int64)
    for column in (trace.node[rows], trace.column("config")[rows], trace.groups.codes[rows]):
        keys, which = factorize(column)
        _, kinds = factorize(kinds * max(1, len(keys)) + which)
    _, firsts = np.unique(kinds, return_index=True)
    for row in rows[firsts].tolist():
        groups = trace.groups.tuples[trace.groups.codes[row]]
        yield NamedConfig(int(trace.node[row]), groups, int(trace.column("config")[row]), int(step[row]))


def _walk(trace: Trace, step: Ints, delivered: Ints, drops: list[Drop], lanes: list[PartLane]) -> str:
    """Note the lanes of a part; return why they are not regular, empty if they are."""
    if trace.description.resumed:
        return "a node began the run with saved state"
    lengths, *places = list_columns(trace.table["numbers"])
    issuers, clocks = trace.column("stamp_issuer"), trace.column("stamp_clock")
    codes = trace.groups.codes
    sizes = np.array([*map(len, trace.groups.tuples), -1], np.int64)
    if (lengths[delivered] != sizes[codes[delivered]]).any() or (
        issuers[delivered] == null_of(issuers)
    ).any():
        return "deliveries lack numbers or their issuer"
    kept = delivered[~_continued(trace, delivered, (lengths, *places, clocks, issuers))]
    parts: list[tuple[Ints, ...]] = []
    for code, groups in enumerate(trace.groups.tuples):
        mine = kept[codes[kept] == code]
        for at, one in enumerate(groups if len(mine) else ()):
            rows = mine[np.isin(trace.node[mine], list(trace.description.groups[one]))]
            parts.append((rows, np.full(len(rows), one), issuers[rows], places[at][rows]))
    parts.append(tuple(np.array([_of(drop) for drop in drops], np.int64).reshape(-1, 4).T))
    rows, group, issuer, number = (np.concatenate(column) for column in zip(*parts, strict=True))
    if (number == null_of(number)).any():
        return "deliveries lack numbers or their issuer"
    is_drop = trace.kind[rows] == CODE[Kind.DROP]
    message = np.where(is_drop, NOTHING, trace.message[rows])
    for lane in _by_lane(rows, trace.node[rows], issuer, group):
        if (np.diff(number[lane]) != 1).any():
            return NOT_REGULAR
        first, last = (
            LaneEnd(int(number[i]), int(step[rows[i]]), int(message[i]), int(clocks[rows[i]]))
            for i in lane[[0, -1]].tolist()
        )
        node = int(trace.node[rows[lane[0]]])
        lanes.append(PartLane(node, int(issuer[lane[0]]), int(group[lane[0]]), first, last))
    return ""


def _of(drop: Drop) -> tuple[int, int, int, int]:
    return drop.row, drop.group, drop.issuer, drop.number


def _continued(trace: Trace, delivered: Ints, columns: Iterable[Ints]) -> Flags:
    """For each delivery, whether it belongs to the bundle of the one before it at its node."""
    flags = np.zeros(len(delivered), bool)
    one, other = delivered[:-1], delivered[1:]
    same = trace.message[other] == trace.message[one] + 1
    same &= (trace.node[other] == trace.node[one]) & (trace.groups.codes[other] == trace.groups.codes[one])
    for column in columns:
        same &= column[other] == column[one]
    for row in trace.rows(Kind.RECOVER, *CONFIGURING).tolist():
        # What comes again after a restart, or in another configuration, is another bundle.
        same &= ~((trace.node[one] == trace.node[row]) & (one < row) & (row < other))
    flags[1:] = same
    return flags


def _by_lane(rows: Ints, *keys: Ints) -> Iterator[Ints]:
    """The places of each lane's rows, in the order of the rows."""
    if not len(rows):
        return
    lanes = np.zeros(len(rows), np.int64)
    for column in keys:
        distinct, places = factorize(column)
        _, lanes = factorize(lanes * len(distinct) + places)
    in_time = np.argsort(rows, kind="stable")
    order, starts = by_key(lanes[in_time], int(lanes.max()) + 1)
    for first, last in pairwise(starts.tolist()):
        yield in_time[order[first:last]]


def doubt_of_lanes(
    description: RunDescription, parts: Iterable[HasLanes], recovered: Mapping[NodeId, Sequence[int]]
) -> str:
    """Why a lane is not regular over all parts, or a configuration came too early; empty if none.

    `recovered` are the steps in which each node recovered.
    """
    lanes = [part.lanes for part in parts]
    doubt = next((part.doubt for part in lanes if part.doubt), "")
    if doubt or (doubt := _doubt_of_configurations(lanes)):
        return doubt
    changes = [change for part in lanes for change in part.changes]
    if not _agree(changes):
        return "nodes do not agree on a configuration"
    came, turns = _grouped(found for part in lanes for found in part.lanes), _grouped(changes)
    cuts = {node: list(steps) for node, steps in recovered.items()}
    for view in (found for part in lanes for found in part.installed):
        cuts.setdefault(view.node, []).append(view.step)
    for key in {*came, *turns}:
        node, _, group = key
        mine = sorted(came.get(key, ()), key=lambda found: found.first.step)
        if node in description.groups.get(group, ()) and not (
            _regular(mine, sorted(turns.get(key, ())))
            and all(_follows(a.last, b.first, cuts.get(node, ())) for a, b in pairwise(mine))
        ):
            return NOT_REGULAR
    return ""


def _regular(lane: list[PartLane], changes: list[Change]) -> bool:
    """Whether the numbers of a lane begin and end where the views say that add and remove the issuer."""
    if [change.added for change in changes] not in ([], [True], [False], [True, False]):
        return False
    below = next((change.number for change in changes if change.added), 0)
    last = lane[-1].last.number if lane else below
    for change in changes:
        if change.added and lane and lane[0].first.step < change.row:
            return False
        if not change.added and (last < change.number or (lane and change.row < lane[-1].last.step)):
            return False
    return not lane or lane[0].first.number == below + 1


def _follows(one: LaneEnd, other: LaneEnd, cuts: Iterable[int]) -> bool:
    """Whether a part goes on where the one before it ends: behind a bundle, or within one that is not cut."""
    if other.number == one.number + 1:
        return True
    within = other.number == one.number and NOTHING not in (one.message, other.message)
    within = within and other.message == one.message + 1 and other.clock == one.clock
    return within and not any(one.step < step < other.step for step in cuts)


def _agree(changes: list[Change]) -> bool:
    """Whether a configuration of a group changes the same at all nodes."""
    known: dict[tuple[GroupId, int], tuple[object, ...]] = {}
    contents = [((one.group, one.config), (one.added, one.issuer, one.number, one.clock)) for one in changes]
    return all(known.setdefault(key, content) == content for key, content in contents)


def _doubt_of_configurations(parts: list[PartLanes]) -> str:
    begun: dict[tuple[NodeId, GroupId, int], int] = {}
    for one in (found for part in parts for found in part.installed):
        for group in one.groups:
            key = (one.node, group, one.config)
            begun[key] = min(one.step, begun.get(key, one.step))
    for one in (found for part in parts for found in part.named):
        steps = [begun[key] for g in one.groups if (key := (one.node, g, one.config)) in begun]
        if not steps or one.step < min(steps):
            return f"node {one.node} names a configuration that it has not installed"
    return ""


Placed = TypeVar("Placed", PartLane, Change)


def _grouped(items: Iterable[Placed]) -> dict[tuple[NodeId, int, GroupId], list[Placed]]:
    """Items by node, issuer and group."""
    found: dict[tuple[NodeId, int, GroupId], list[Placed]] = {}
    for item in items:
        found.setdefault((item.node, item.issuer, item.group), []).append(item)
    return found
