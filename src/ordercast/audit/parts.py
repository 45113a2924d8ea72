"""A run too large to be judged in one piece: its parts, each summed up by itself.

A *part* is some row groups of a Parquet file. Its summary has, for each node, the first and last of what
must grow along its rows, and a fingerprint of what it delivered of each *block* of messages: how many, and
the sum of a hash over identity, address, bytes and stamp. `blocks.py` puts the summaries of a run together.

A fingerprint never condemns: it shows which blocks need not be looked at again. Two of 64 bits each agree
by chance once in 10^19.
"""

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.audit.columns import CODE, Flags, Ints, by_key, factorize, filled, list_columns, null_of
from ordercast.audit.trace import PACKETS, Trace
from ordercast.core import Causality, Gaps, Groups, NodeId, Order
from ordercast.trace import Kind, RunDescription

BLOCK_BITS = 12
SUBMITTED: NodeId = -1
"""In place of a node: the submissions."""
Key = tuple[int, int, int]
"""A delivery's place in the protocol's order: stamp clock, stamp issuer, message."""
PROVABLE = (Kind.SUBMIT, Kind.DELIVER, Kind.COMPLETE, Kind.CRASH, Kind.RECOVER, *PACKETS)


class Edges(msgspec.Struct, frozen=True):
    """A node in a part: the first and the last of its rows."""

    step: tuple[int, int]
    time_ns: tuple[int, int]
    clock_ns: tuple[int, int]
    key: tuple[Key, Key] | None = None
    """Of its deliveries, where order is promised; None if it has none."""


class Lane(msgspec.Struct, frozen=True):
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


class Summary(msgspec.Struct):
    """What a part says of its rows."""

    rows: int = 0
    deliveries: int = 0
    doubt: str = ""
    """Why only the whole run can be judged; empty if the parts may do."""
    edges: dict[NodeId, Edges] = msgspec.field(default_factory=dict)
    lanes: list[Lane] = msgspec.field(default_factory=list)
    prints: list[Print] = msgspec.field(default_factory=list)
    turns: list[Turn] = msgspec.field(default_factory=list)
    back: list[tuple[Key, Key]] = msgspec.field(default_factory=list)
    """Where a node's deliveries step back in the protocol's order: from the second key to the first."""


def may_be_parted(description: RunDescription) -> bool:
    """Whether a run promises nothing but what parts can show."""
    promised = description.guarantees
    return (
        not promised.views
        and promised.gaps is not Gaps.NOTIFIED
        and promised.causality is not Causality.CAUSAL
    )


def summarize(description: RunDescription, table: pa.Table, block_bits: int = BLOCK_BITS) -> Summary:
    """Sum up a part of a run, its rows as they stand in the file."""
    kinds = _Rows(description, table)
    summary = Summary(rows=len(table), deliveries=len(kinds.delivered), doubt=kinds.doubt)
    for walk in (_walk_nodes, _walk_order, _walk_lanes):
        if not summary.doubt:
            walk(kinds, summary)
    if not summary.doubt:
        summary.prints = _Printer(kinds, block_bits).prints()
    return summary


class _Rows:
    """The rows of a part, by kind and by node."""

    def __init__(self, description: RunDescription, table: pa.Table) -> None:
        self.trace = Trace(description, table)
        self.step = filled(table["step"])
        trace = self.trace
        self.submitted = trace.rows(Kind.SUBMIT)
        delivered = trace.rows(Kind.DELIVER)
        _, nodes = factorize(trace.node[delivered])
        order, _ = by_key(nodes, int(nodes.max(initial=-1)) + 1)
        self.delivered = delivered[order]
        """By node, each node's in order."""
        self.doubt = self._doubt()

    def _doubt(self) -> str:
        trace = self.trace
        if not trace.is_kind(*PROVABLE).all():
            return "it has views, notifications or deliveries out of order"
        if trace.lost:
            return "a node recovered without its state"
        for rows in (self.submitted, self.delivered):
            messages = trace.message[rows]
            if len(messages) and (messages.min() < 0 or (trace.groups.codes[rows] < 0).any()):
                return "rows lack a message or its groups"
        if (trace.message[self.submitted] >> 40 != trace.node[self.submitted]).any():
            return "a node submitted a message of another"
        if any(trace.known(groups) != groups or not groups for groups in trace.groups.tuples):
            return "rows name groups that the run does not have"
        submitted = trace.column("submitted_ns")
        late, own = trace.time[self.delivered], trace.time[self.submitted]
        if (late < submitted[self.delivered]).any() or (own != submitted[self.submitted]).any():
            return "times of submission do not fit"
        peer = trace.column("peer")[self.delivered]
        named = (peer != null_of(peer)) & (peer != trace.message[self.delivered] >> 40)
        return "a delivery names another sender" if named.any() else ""


def _walk_nodes(rows: _Rows, summary: Summary) -> None:
    """Each node's rows: time and clock do not go back; where they begin and end; crashes."""
    trace = rows.trace
    kept = np.flatnonzero(~trace.is_kind(*PACKETS))
    nodes, index = factorize(trace.node[kept])
    order, starts = by_key(index, len(nodes))
    kept = kept[order]
    same = np.ones(max(0, len(kept) - 1), bool)
    same[starts[1:-1] - 1] = False
    columns = [values[kept] for values in (rows.step, trace.time, trace.column("clock_ns"))]
    steps = columns[0]
    grows = [~same | (values[1:] >= values[:-1]) for values in columns]
    if not all(growing.all() for growing in grows) or (same & (steps[1:] == steps[:-1])).any():
        summary.doubt = "the steps, times or clocks of a node go back"
        return
    for place, node in enumerate(nodes.tolist()):
        first, last = int(starts[place]), int(starts[place + 1]) - 1
        step, time_ns, clock_ns = [(int(column[first]), int(column[last])) for column in columns]
        summary.edges[node] = Edges(step, time_ns, clock_ns)
    for row in trace.rows(Kind.CRASH, Kind.RECOVER).tolist():
        up = trace.kind[row] == CODE[Kind.RECOVER]
        summary.turns.append(Turn(int(trace.node[row]), int(rows.step[row]), bool(up)))


def _walk_order(rows: _Rows, summary: Summary) -> None:
    """Along a node's deliveries the key grows, or the steps back are noted."""
    trace, delivered = rows.trace, rows.delivered
    if trace.description.guarantees.order is Order.NONE or not len(delivered):
        return
    clock, issuer = trace.column("stamp_clock")[delivered], trace.column("stamp_issuer")[delivered]
    message, node = trace.message[delivered], trace.node[delivered]
    if (clock == null_of(clock)).any():
        summary.doubt = "deliveries have no stamp"
        return
    back: Flags = clock[1:] <= clock[:-1]
    if back.any():
        tie = clock[1:] == clock[:-1]
        issued, same = issuer[1:] > issuer[:-1], issuer[1:] == issuer[:-1]
        back &= ~(tie & (issued | (same & (message[1:] > message[:-1]))))
    changes = node[1:] != node[:-1]

    def key(place: int) -> Key:
        return int(clock[place]), int(issuer[place]), int(message[place])

    for place in np.flatnonzero(back & ~changes).tolist():
        summary.back.append((key(place + 1), key(place)))
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    for first, following in zip(firsts, [*firsts[1:], len(delivered)], strict=True):
        edges = summary.edges[int(node[first])]
        ends = (key(first), key(following - 1))
        summary.edges[int(node[first])] = msgspec.structs.replace(edges, key=ends)


def _walk_lanes(rows: _Rows, summary: Summary) -> None:
    """The submissions of a sender grow, and so they are different; its deliveries, where that is promised."""
    trace = rows.trace
    messages = trace.message[rows.submitted]
    lanes = [(np.full(len(messages), SUBMITTED), messages)]
    if trace.description.guarantees.causality is Causality.FIFO:
        lanes.append((trace.node[rows.delivered], trace.message[rows.delivered]))
    for nodes, found in lanes:
        senders, sender = factorize(found >> 40)
        ids, index = factorize(nodes)
        order, starts = by_key(index * max(1, len(senders)) + sender, len(ids) * len(senders))
        ordered = found[order]
        grows = ordered[1:] > ordered[:-1]
        bounds = starts[(starts > 0) & (starts < len(order))]
        grows[bounds - 1] = True
        if not grows.all():
            summary.doubt = "the messages of a sender are not in order"
            return
        for lane in np.flatnonzero(np.diff(starts)).tolist():
            node, who = int(ids[lane // len(senders)]), int(senders[lane % len(senders)])
            ends = (int(ordered[starts[lane]]), int(ordered[starts[lane + 1] - 1]))
            summary.lanes.append(Lane(node, who, *ends))


class _Printer:
    """Fingerprints of a part."""

    def __init__(self, rows: _Rows, block_bits: int) -> None:
        self._rows = rows
        self._trace = rows.trace
        self._bits = block_bits

    def prints(self) -> list[Print]:
        """One for each node (or the submissions), set of groups, and block."""
        trace = self._trace
        where = np.concatenate([self._rows.submitted, self._rows.delivered])
        if not len(where):
            return []
        messages = trace.message[where]
        nodes = np.where(np.arange(len(where)) < len(self._rows.submitted), SUBMITTED, trace.node[where])
        ids, node = factorize(nodes)
        senders, sender = factorize(messages >> 40)
        own = (messages & ((1 << 40) - 1)) >> self._bits
        width = int(own.max()) + 1
        width_of_groups = len(trace.groups.tuples)
        keys = ((node * width_of_groups + trace.groups.codes[where]) * len(senders) + sender) * width + own
        found, index = factorize(keys)
        count = np.bincount(index, minlength=len(found))
        content = self._content(messages, where)
        stamped = self._stamped(content, where)
        sums = [_sums(index, values, len(found)) for values in (content, stamped)]
        prints = []
        for place, key in enumerate(found.tolist()):
            rest, block = divmod(key, width)
            rest, who = divmod(rest, len(senders))
            which, groups = divmod(rest, width_of_groups)
            prints.append(
                Print(
                    int(ids[which]),
                    trace.groups.tuples[groups],
                    (int(senders[who]) << (40 - self._bits)) + block,
                    int(count[place]),
                    int(sums[0][place]),
                    int(sums[1][place]),
                )
            )
        return prints

    def _content(self, messages: Ints, where: Ints) -> Ints:
        mixed = _mix(np.zeros(len(where), np.uint64), messages)
        for name in ("digest", "size", "submitted_ns"):
            mixed = _mix(mixed, self._trace.column(name)[where])
        return mixed

    def _stamped(self, content: Ints, where: Ints) -> Ints:
        mixed = content
        for name in ("stamp_clock", "stamp_issuer"):
            mixed = _mix(mixed, self._trace.column(name)[where])
        numbers = self._trace.table["numbers"]
        if numbers.null_count < len(numbers):
            for column in list_columns(numbers):
                mixed = _mix(mixed, column[where])
        return mixed


def _mix(mixed: Ints, values: Ints) -> Ints:
    """Fold a column into a hash of 64 bits: a multiplication spreads, the shift brings the top down."""
    folded = values.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    folded ^= mixed
    folded *= np.uint64(0xD6E8FEB86659FD93)
    folded ^= folded >> np.uint64(32)
    folded *= np.uint64(0xD6E8FEB86659FD93)
    return folded


def _sums(index: Ints, values: Ints, count: int) -> Ints:
    """The sum of the values of each index, modulo 2^64."""
    sums = np.zeros(count, np.uint64)
    np.add.at(sums, index, values)
    return sums
