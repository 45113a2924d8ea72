"""Summaries of the parts of a run that is too large to be judged in one piece.

A *part* is some row groups of a Parquet file. For each node, its summary has the first and last of the values
that must grow along the node's rows, and a fingerprint of the messages that it delivered from each *block* of
messages: their number, and the sum of the fingerprints of its rows (`fingerprints.py`) over identity, bytes,
time of submission and stamp. `blocks.py` combines the summaries of a run.

A fingerprint never shows a violation: it shows which blocks need no closer look. Two different fingerprints
of 64 bits agree by chance once in 10^19.
"""

from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.core import Causality, Groups, NodeId, Order
from ordercast.judge.columns.columns import (
    CODE,
    Flags,
    Ints,
    by_key,
    factorize,
    filled,
    list_columns,
    null_of,
    places_of,
)
from ordercast.judge.columns.fingerprints import Mixer, chunks, folded
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.columns.part_completion import PartCompletion, part_completion
from ordercast.judge.columns.part_lanes import NOTICES, PartLanes, part_lanes
from ordercast.judge.columns.record import RecordPart, examine_part
from ordercast.judge.columns.trace import Trace
from ordercast.trace import ORDERED, PACKETS, Kind, RunDescription

BLOCK_BITS = 12
SUBMITTED: NodeId = -1
"""Stands for the submissions, instead of a node."""
Key = tuple[int, int, int]
"""A delivery's place in the protocol's order: stamp clock, stamp issuer, message."""
PROVABLE = (Kind.SUBMIT, *ORDERED, Kind.COMPLETE, Kind.CRASH, Kind.RECOVER, *PACKETS, *NOTICES)


class Edges(msgspec.Struct, frozen=True):
    """A node in a part: the first and the last of its rows."""

    step: tuple[int, int]
    time_ns: tuple[int, int]
    clock_ns: tuple[int, int]
    key: tuple[Key, Key] | None = None
    """First and last key of its deliveries, if order is promised; None if it has none."""


class SenderRange(msgspec.Struct, frozen=True):
    """The messages of one sender at one node (or as submitted) in a part: the first and the last."""

    node: NodeId
    sender: NodeId
    first: int
    last: int


class Print(msgspec.Struct, frozen=True):
    """The fingerprint of what a node delivered, or what was submitted, of a block to the same groups."""

    node: NodeId
    groups: Groups
    block: int
    count: int
    content: int
    stamped: int


class Turn(msgspec.Struct, frozen=True):
    """A crash or a recovery."""

    node: NodeId
    step: int
    up: bool


class Place(NamedTuple):
    """Where a part is: the name and the number of its file, and its first row and row group there."""

    file: str = "events.parquet"
    segment: int = 0
    row: int = 0
    group: int = 0


START = Place()


class Summary(msgspec.Struct):
    """The summary of the rows of a part."""

    record: RecordPart
    segment: int = 0
    """The number of the part's file."""
    first: int = 0
    """The first row group of the part in its file."""
    deliveries: int = 0
    doubt: str = ""
    """Why the whole run must be judged; empty if the parts may be enough."""
    edges: dict[NodeId, Edges] = msgspec.field(default_factory=dict)
    ranges: list[SenderRange] = msgspec.field(default_factory=list)
    prints: list[Print] = msgspec.field(default_factory=list)
    turns: list[Turn] = msgspec.field(default_factory=list)
    back: list[tuple[Key, Key]] = msgspec.field(default_factory=list)
    """Where a node's deliveries step back in the protocol's order: from the second key to the first. Also
    where two messages that are not of one bundle have the same stamp."""
    issuers: list[tuple[int, Groups]] = msgspec.field(default_factory=list)
    """If the run has several groups: to which groups each issuer's messages go."""
    completion: PartCompletion = msgspec.field(default_factory=PartCompletion)
    lanes: PartLanes = msgspec.field(default_factory=PartLanes)


def summarize(
    description: RunDescription,
    table: pa.Table,
    key: int,
    place: Place = START,
    block_bits: int = BLOCK_BITS,
) -> Summary:
    """Summarise a part of a run, with its rows in the order of the file.

    All parts of a run must have the same `key`, which fingerprints are drawn from.
    """
    order = NodeOrder(table)
    record = examine_part(description, table, order, place.file, place.row)
    summary = Summary(record, place.segment, place.group)
    if record.damages:
        summary.doubt = "its record is damaged"
        return summary
    kinds = _Rows(description, table, order)
    summary.doubt, summary.deliveries = kinds.doubt, len(kinds.delivered)
    for walk in (_walk_nodes, _walk_order, _walk_lanes):
        if not summary.doubt:
            walk(kinds, summary)
    if not summary.doubt:
        summary.lanes = part_lanes(kinds.trace, kinds.step, kinds.delivered)
        summary.completion = part_completion(kinds.trace, kinds.delivered, block_bits)
        summary.prints = _prints(kinds, key, block_bits)
    return summary


class _Rows:
    """The rows of a part, sorted by kind and by node."""

    def __init__(self, description: RunDescription, table: pa.Table, order: NodeOrder) -> None:
        self.trace = trace = Trace(description, table, order)
        self.step = filled(table["step"])
        self.is_submit: Flags = trace.kind == CODE[Kind.SUBMIT]
        self.is_delivery: Flags = trace.is_kind(*ORDERED)
        rows, self.starts = trace.by_node
        self.by_node = rows
        """All rows except packet rows, by node, each node's in order; `starts` says where each begins."""
        self.delivered, _ = order.delivered
        """The deliveries, in the same order."""
        self.doubt = self._doubt()

    def _doubt(self) -> str:
        trace = self.trace
        if not trace.is_kind(*PROVABLE).all():
            return "it has joins, states, answers or deliveries out of order"
        if trace.lost:
            return "a node recovered without its state"
        speaks = self.is_submit | self.is_delivery
        answered: Flags = trace.is_kind(Kind.COMPLETE) & (trace.message < 0)
        if answered.any() or (speaks & ((trace.message < 0) | (trace.groups.codes < 0))).any():
            return "rows lack a message or its groups"
        sender = trace.message >> 40
        if (self.is_submit & (sender != trace.node)).any():
            return "a node submitted a message of another"
        if any(trace.known(groups) != groups or not groups for groups in trace.groups.tuples):
            return "rows name groups that the run does not have"
        submitted = trace.column("submitted_ns")
        wrong = self.is_submit & (trace.time != submitted)
        if trace.description.source == "simulator":  # clocks of different machines need not agree
            wrong |= self.is_delivery & (trace.time < submitted)
        if wrong.any():
            return "times of submission do not fit"
        peer = trace.column("peer")
        other = self.is_delivery & (peer != sender)
        if other.any() and (other & (peer != null_of(peer))).any():
            return "a delivery names another sender"
        return self._doubt_of_columns(speaks)

    def _doubt_of_columns(self, speaks: Flags) -> str:
        """Values that single rows must have, or must not have."""
        table = self.trace.table
        if table["digest"].null_count and (speaks & ~table["digest"].is_valid().to_numpy()).any():
            return "rows lack a digest"
        return ""


def _walk_nodes(rows: _Rows, summary: Summary) -> None:
    """Check that the times and clocks of each node grow, and note their edges and the crashes."""
    trace, order = rows.trace, rows.by_node
    columns = (rows.step, trace.time, trace.column("clock_ns"))
    changes = rows.starts[1:-1] - 1
    for values in columns[1:]:  # the record has shown that steps grow
        if (values[1:] >= values[:-1]).all():
            continue  # in order altogether, so at each node
        ordered = values[order]
        grows: Flags = ordered[1:] >= ordered[:-1]
        grows[changes[(changes >= 0) & (changes < len(grows))]] = True
        if not grows.all():
            summary.doubt = "the times or clocks of a node go back"
            return
    for place in np.flatnonzero(np.diff(rows.starts)).tolist():
        first, last = order[rows.starts[place]], order[rows.starts[place + 1] - 1]
        step, time_ns, clock_ns = [(int(values[first]), int(values[last])) for values in columns]
        summary.edges[int(trace.node[first])] = Edges(step, time_ns, clock_ns)
    for row in trace.rows(Kind.CRASH, Kind.RECOVER).tolist():
        up = trace.kind[row] == CODE[Kind.RECOVER]
        summary.turns.append(Turn(int(trace.node[row]), int(rows.step[row]), bool(up)))


def _walk_order(rows: _Rows, summary: Summary) -> None:
    """Check that the key grows along each node's deliveries, and note the steps back."""
    trace, delivered = rows.trace, rows.delivered
    if trace.description.guarantees.order is Order.NONE:
        if trace.table["stamp_clock"].null_count < len(trace.kind):
            summary.doubt = "deliveries have stamps, but no order is promised"
        return
    if not len(delivered):
        return
    clocks, issuers = trace.column("stamp_clock"), trace.column("stamp_issuer")
    clock, node = clocks[delivered], trace.node[delivered]
    if (clock == null_of(clock)).any():
        summary.doubt = "deliveries have no stamp"
        return

    def key(place: int) -> Key:
        row = delivered[place]
        return int(clocks[row]), int(issuers[row]), int(trace.message[row])

    changes = node[1:] != node[:-1]
    near = np.flatnonzero((clock[1:] <= clock[:-1]) & ~changes)
    for place in near[~_of_one_bundle(trace, delivered[near], delivered[near + 1])].tolist():
        one, other = sorted((key(place), key(place + 1)))
        if key(place + 1) <= key(place) or one[:2] == other[:2]:
            summary.back.append((one, other))
    if len(trace.description.groups) > 1:
        summary.issuers = _issuers(trace, delivered)
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    for first, following in pairwise([*firsts, len(delivered)]):
        edges = summary.edges[int(node[first])]
        ends = (key(first), key(following - 1))
        summary.edges[int(node[first])] = msgspec.structs.replace(edges, key=ends)


def _of_one_bundle(trace: Trace, rows: Ints, following: Ints) -> Flags:
    """For pairs of deliveries in a row, whether they belong to one bundle."""
    flags = trace.message[following] == trace.message[rows] + 1
    for column in (trace.column("stamp_clock"), trace.column("stamp_issuer"), trace.groups.codes):
        flags &= column[following] == column[rows]
    return np.asarray(flags)


def _issuers(trace: Trace, delivered: Ints) -> list[tuple[int, Groups]]:
    """To which groups the messages of each issuer go."""
    issuers, issuer = factorize(trace.column("stamp_issuer")[delivered])
    tuples = trace.groups.tuples
    pairs = np.unique(issuer.astype(np.int64) * len(tuples) + trace.groups.codes[delivered])
    return [(int(issuers[pair // len(tuples)]), tuples[pair % len(tuples)]) for pair in pairs.tolist()]


def _walk_lanes(rows: _Rows, summary: Summary) -> None:
    """Check that a sender's submissions grow, so that they differ, and its deliveries if FIFO is promised."""
    trace = rows.trace
    submitted = rows.by_node[rows.is_submit[rows.by_node]]
    ranges = [(np.full(len(submitted), SUBMITTED), trace.message[submitted])]
    if trace.description.guarantees.causality is Causality.FIFO:
        ranges.append((trace.node[rows.delivered], trace.message[rows.delivered]))
    for nodes, messages in ranges:
        senders, sender = places_of(messages >> 40)
        ids, index = places_of(nodes)
        lanes = len(ids) * len(senders)
        lane_of = index if lanes <= 1 << 16 else index.astype(np.int64)
        order, starts = by_key(lane_of * max(1, len(senders)) + sender, lanes)
        ordered = messages[order]
        grows = ordered[1:] > ordered[:-1]
        grows[starts[(starts > 0) & (starts < len(order))] - 1] = True
        if not grows.all():
            summary.doubt = "the messages of a sender are not in order"
            return
        for lane in np.flatnonzero(np.diff(starts)).tolist():
            node, who = int(ids[lane // len(senders)]), int(senders[lane % len(senders)])
            ends = (int(ordered[starts[lane]]), int(ordered[starts[lane + 1] - 1]))
            summary.ranges.append(SenderRange(node, who, *ends))


def _prints(rows: _Rows, key: int, block_bits: int) -> list[Print]:
    """The fingerprints of a part: one for each node (or the submissions), set of groups, and block."""
    trace = rows.trace
    speaks = rows.is_submit | rows.is_delivery
    where: Ints | slice = slice(None) if speaks.all() else np.flatnonzero(speaks)
    messages = trace.message[where]
    if not len(messages):
        return []
    ids, node = places_of(np.where(rows.is_submit[where], np.int32(SUBMITTED), trace.node[where]))
    senders, sender = places_of(messages >> 40)
    own = (messages & ((1 << 40) - 1)) >> block_bits
    width, widths = int(own.max()) + 1, (len(trace.groups.tuples), len(senders))
    keys = node.astype(np.int64)
    for size, part in zip((*widths, width), (trace.groups.codes[where], sender, own), strict=True):
        if size > 1:
            keys *= size
            keys += part
    found, index = factorize(keys)
    count = np.bincount(index, minlength=len(found))
    sums = _print_sums(trace, where, index, len(found), key)
    prints = []
    for place, code in enumerate(found.tolist()):
        rest, block = divmod(code, width)
        rest, who = divmod(rest, widths[1])
        which, groups = divmod(rest, widths[0])
        block += int(senders[who]) << (40 - block_bits)
        values = (int(count[place]), int(sums[0][place]), int(sums[1][place]))
        prints.append(Print(int(ids[which]), trace.groups.tuples[groups], block, *values))
    return prints


def _print_sums(trace: Trace, where: Ints | slice, index: Ints, count: int, key: int) -> tuple[Ints, Ints]:
    """The sums of the fingerprints of each index: without the stamp, and with it."""
    contents = [_Taken(trace.column(name), where) for name in ("message", "digest", "size", "submitted_ns")]
    stamps = [_Taken(trace.column(name), where) for name in ("stamp_clock", "stamp_issuer")]
    if trace.table["numbers"].null_count < len(trace.kind):
        stamps.append(_Taken(folded(list_columns(trace.table["numbers"]), key), where))
    mixer = Mixer(key, len(contents) + len(stamps))
    content, stamped = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    for rows in chunks(len(index)):
        bits = np.zeros(rows.stop - rows.start, np.uint64)
        for place, column in enumerate(contents):
            mixer.mix(bits, place, column.of(rows))
        np.add.at(content, index[rows], mixer.finish(bits))
        for place, column in enumerate(stamps, len(contents)):
            mixer.mix(bits, place, column.of(rows))
        np.add.at(stamped, index[rows], mixer.finish(bits))
    return content, stamped


class _Taken:
    """Some rows of a column, taken chunk by chunk."""

    def __init__(self, column: Ints, where: Ints | slice) -> None:
        self._column = column
        self._where = where

    def of(self, rows: slice) -> Ints:
        """The rows of a chunk."""
        taken: Ints = self._column[rows if isinstance(self._where, slice) else self._where[rows]]
        return taken
