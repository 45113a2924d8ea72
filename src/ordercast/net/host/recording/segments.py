"""Spool files as tables in the one schema of traces.

Many records are converted at once: each column of the messages in some thousand bundles is gathered from the
bytes of the file by index arrays. The few other events are decoded one by one and put in their places.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.core import NodeId, Outcome, RemoteError
from ordercast.net.host.recording import spool_file as layout
from ordercast.net.host.recording.spool_file import Spool
from ordercast.trace import LOST, READ, SAVED, SCHEMA, Event, Kind, build_table
from ordercast.trace.table import count_within, is_ordered

ROWS_MAX = 1 << 19
"""About how many rows are converted at once."""

Ints = np.ndarray[tuple[int], np.dtype[Any]]

_KINDS = pa.array([str(kind) for kind in Kind], pa.string())
_CODES = {kind: code for code, kind in enumerate(Kind)}
_CODE_OF_RECORD = np.zeros(256, np.int8)
_CODE_OF_RECORD[layout.SUBMITTED] = _CODES[Kind.SUBMIT]
for _kind, _record in layout.CARRIED.items():
    _CODE_OF_RECORD[_record] = _CODES[_kind]
_CODE_OF_RECORD[layout.REPLIED] = _CODES[Kind.REPLY]
_BUNDLES = (layout.SUBMITTED, layout.REPLIED, *layout.CARRIED.values())
_LABELS = ("", *(one.name.lower() for one in Outcome if one is not Outcome.ANSWERED), READ)
"""The labels of operations and answers: nothing, an outcome by its number, or that it is a read."""
_READ = len(_LABELS) - 1
_HEAD_WORDS = layout.HEAD_BYTES // 8

_decoder = msgspec.msgpack.Decoder(Event)


class NodeState(msgspec.Struct):
    """How far a node's part of the trace has come."""

    steps: int = 0
    positions: int = 0
    up: bool = True


class TraceState(msgspec.Struct):
    """How far the trace of a host has come; the next spool file continues from here."""

    number: int = -1
    """The last spool file that became a segment."""
    life: int = -1
    ended: bool = False
    """Whether that life is known to have ended in good order."""
    time_ns: int = 0
    """The time of the last event."""
    resumed: bool = False
    """Whether it had lives before this run; it may have the state that they saved."""
    nodes: dict[NodeId, NodeState] = msgspec.field(default_factory=dict)


def tables_of(spool: Spool, state: TraceState) -> Iterator[pa.Table]:
    """The events of a spool file, in batches; the state has followed when all are read."""
    header = spool.header
    known = {node: state.nodes.get(node, NodeState()) for node in header.nodes}
    state.nodes |= known
    if header.life != state.life:
        yield from _between_lives(spool, state)
    state.life, state.number, state.ended = header.life, header.number, False
    records = _Records(spool)
    for first, last in records.portions():
        table = records.table(first, last)
        if len(table):
            yield _numbered(table, state)
    state.ended = records.ended


def crash_table(run: str, state: TraceState) -> pa.Table | None:
    """The crash of a host that was found dead, at the time of its last event; None if all nodes are down."""
    down = [node for node, found in state.nodes.items() if found.up]
    rows = [Event(state.time_ns, state.time_ns, node, Kind.CRASH) for node in down]
    return _numbered(build_table(run, rows), state) if rows else None


def _between_lives(spool: Spool, state: TraceState) -> Iterator[pa.Table]:
    """The end of an earlier life, if there was one, and the beginning of this one."""
    header = spool.header
    if state.life < 0:
        state.time_ns, state.resumed = header.started_ns, header.saved or header.past
        if not header.late:
            return
        # A newcomer counts as one that was down before: it owes nothing that was sent until it came.
        state.nodes = {node: NodeState() for node in header.nodes}
    crash = crash_table(header.run, state)
    if crash is not None:
        yield crash
    label = SAVED if header.saved else LOST
    start = header.started_ns
    rows = [Event(start, start, node, Kind.RECOVER, label=label) for node in header.nodes]
    yield _numbered(build_table(header.run, rows), state)


def _numbered(table: pa.Table, state: TraceState) -> pa.Table:
    """The table with steps and positions that continue from the state, and the state after it."""
    nodes = table["node"].to_numpy()
    codes = table["kind"].combine_chunks().indices.to_numpy()
    delivered = is_ordered(codes)
    ids = np.unique(nodes)
    counters = [state.nodes.setdefault(int(node), NodeState()) for node in ids]
    place = np.searchsorted(ids, nodes)
    steps = count_within(nodes) + np.array([counter.steps for counter in counters])[place]
    positions = np.zeros(len(nodes), np.int64)
    positions[delivered] = count_within(nodes[delivered])
    positions += np.array([counter.positions for counter in counters])[place]
    for index, counter in enumerate(counters):
        mine = place == index
        counter.steps += int(np.count_nonzero(mine))
        counter.positions += int(np.count_nonzero(mine & delivered))
    for row in np.flatnonzero((codes == _CODES[Kind.CRASH]) | (codes == _CODES[Kind.RECOVER])).tolist():
        state.nodes[int(nodes[row])].up = bool(codes[row] == _CODES[Kind.RECOVER])
    state.time_ns = int(table["time_ns"][-1].as_py())
    table = table.set_column(
        SCHEMA.get_field_index("step"), SCHEMA.field("step"), pa.array(steps, pa.int64())
    )
    column = pa.array(positions, pa.int64(), mask=~delivered)
    return table.set_column(SCHEMA.get_field_index("position"), SCHEMA.field("position"), column)


class _Records:
    """The records of a spool file, as arrays."""

    def __init__(self, spool: Spool) -> None:
        self._run = spool.header.run
        self._origin = f"the spool file {spool.header.number} of host {spool.header.host}"
        self._content = spool.content
        whole = memoryview(spool.content)[: len(spool.content) // 8 * 8]
        self._words: Ints = np.frombuffer(whole, "<i8")
        self._halves: Ints = np.frombuffer(whole, "<u4")
        kinds = np.frombuffer(whole, np.uint8)[spool.starts]
        self.ended = layout.END in kinds[-1:]
        keep = (kinds != layout.END) & (kinds != layout.PROVISO)
        self._starts: Ints = spool.starts[keep]
        self._kinds: Ints = kinds[keep]
        self._further: Ints = np.frombuffer(whole, "<u2")[self._starts // 2 + 1].astype(np.int64)
        """For rows: how many further rows each stands for."""
        self._is_bundle = np.isin(self._kinds, _BUNDLES)
        if not (self._is_bundle | (self._kinds == layout.ROW)).all():
            raise RemoteError(f"{self._origin} has a record of unknown kind")

    def portions(self) -> Iterator[tuple[int, int]]:
        """The records from one to before another that have about `ROWS_MAX` messages together."""
        counts = np.where(self._is_bundle, self._halves[self._starts // 4 + 8], 1 + self._further)
        portion = (np.cumsum(counts) - counts) // ROWS_MAX
        edges = [*np.flatnonzero(np.diff(portion, prepend=-1)).tolist(), len(portion)]
        yield from pairwise(edges)

    def table(self, first: int, last: int) -> pa.Table:
        """The events of some records, in order."""
        index = np.arange(first, last)
        bundled, single = index[self._is_bundle[first:last]], index[~self._is_bundle[first:last]]
        table, records = self._bundles(bundled)
        if not len(single):
            return table
        further = self._further[single]
        starts = zip(self._starts[single].tolist(), further.tolist(), strict=True)
        rows = [row for start, more in starts for row in self._rows(start, more)]
        single = np.repeat(single, 1 + further)
        table = pa.concat_tables([table, build_table(self._run, rows)]).unify_dictionaries()
        order = np.argsort(np.concatenate([records, single]), kind="stable")
        return table.take(order).combine_chunks()

    def _rows(self, start: int, further: int) -> Iterator[Event]:
        """A row, and those that it stands for; their numbers grow by one."""
        row = self._row(start)
        yield row
        for step in range(1, 1 + further):
            yield row._replace(numbers=tuple(number + step for number in row.numbers or ()))

    def _row(self, start: int) -> Event:
        _, _, _, length = layout.PLAIN.unpack_from(self._content, start)
        start += layout.PLAIN.size
        try:
            row: Event = _decoder.decode(self._content[start : start + length])
        except msgspec.MsgspecError as error:
            raise RemoteError(f"{self._origin} has an invalid row: {error}") from error
        return row

    def _bundles(self, index: Ints) -> tuple[pa.Table, Ints]:
        """The messages of some bundles, and the record of each message."""
        word = self._starts[index] // 8
        kinds = self._kinds[index]
        head = [self._words[word + place] for place in range(_HEAD_WORDS)]
        flags = head[0] >> 8 & 0xFF
        group_count, number_count = head[0] >> 16 & 0xFFFF, head[0] >> 32
        count = head[4] & 0xFFFFFFFF
        own_times, own_lengths = flags & layout.OWN_TIMES > 0, flags & layout.OWN_LENGTHS > 0
        number_at = word + _HEAD_WORDS
        time_at = number_at + number_count
        group_at = 2 * (time_at + count * own_times)
        length_at = group_at + group_count
        digest_at = length_at + count * own_lengths
        own_outcomes = flags & layout.OUTCOMES > 0
        outcome_at = digest_at + count
        self._screen(word, outcome_at + count * own_outcomes)
        of = np.repeat(np.arange(len(index)), count)
        within = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)

        def spread(values: Ints) -> Ints:
            return values[of]

        def own(view: Ints, at: Ints, having: Ints, others: Ints) -> Ints:
            """Values from the records' tables; a record without a table has one value for all messages."""
            found = others[of]
            if having.any():
                mine = having[of]
                found[mine] = view[at[of[mine]] + within[mine]]
            return found

        submitted = own(self._words, time_at, own_times, head[8])
        is_submission = kinds == layout.SUBMITTED
        is_reply = kinds == layout.REPLIED
        labels = own(self._halves, outcome_at, own_outcomes, np.where(flags & layout.READS > 0, _READ, 0))
        time = np.where(spread(is_submission), submitted, spread(head[2]))
        unstamped = spread(flags & layout.STAMPED == 0)
        columns: dict[str, Any] = {
            "run": pa.DictionaryArray.from_arrays(np.zeros(len(of), np.int32), pa.array([self._run])),
            "step": pa.array(within),  # both are numbered later
            "position": pa.array(within),
            "time_ns": pa.array(time),
            "clock_ns": pa.array(time),
            "node": pa.array(spread(head[1].astype(np.int32))),
            "kind": pa.DictionaryArray.from_arrays(spread(_CODE_OF_RECORD[kinds]), _KINDS),
            "message": pa.array(spread(head[3]) + within),
            "groups": self._lists(self._halves.view(np.int32), group_at, group_count).take(of),
            "numbers": self._lists(self._words, number_at, number_count, null=number_count == 0).take(of),
            "submitted_ns": pa.array(submitted),
            "stamp_clock": pa.array(spread(head[5]), mask=unstamped),
            "stamp_issuer": pa.array(spread(head[6]), mask=unstamped),
            "config": pa.array(spread(head[7]), mask=spread(is_submission | is_reply)),
            "members": pa.nulls(len(of), SCHEMA.field("members").type),
            "peer": pa.array(spread((head[1] >> 32).astype(np.int32)), mask=spread(is_submission)),
            "size": pa.array(own(self._halves, length_at, own_lengths, head[4] >> 32).astype(np.int32)),
            "digest": pa.array(self._halves[digest_at[of] + within].astype(np.int64)),
            "label": self._labels(labels),
        }
        table = pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
        return table, index[of]

    def _labels(self, codes: Ints) -> pa.Array:
        """The labels of messages by their codes; most have none."""
        if not codes.any():
            return pa.nulls(len(codes), SCHEMA.field("label").type)
        if codes.max() > _READ:
            raise RemoteError(f"{self._origin} has an answer of unknown outcome")
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32), mask=codes == 0), pa.array(_LABELS, pa.string())
        )

    def _screen(self, word: Ints, end: Ints) -> None:
        """Check that each record is exactly as long as its tables."""
        length = self._halves[2 * word - 2]
        if ((end + 1) // 2 != word - 1 + length // 8).any():
            raise RemoteError(f"{self._origin} has a record whose length does not match its tables")

    @staticmethod
    def _lists(view: Ints, at: Ints, count: Ints, null: Ints | None = None) -> pa.ListArray:
        """One list per record, from the places where the lists begin."""
        offsets = np.concatenate([[0], np.cumsum(count)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
        values = pa.array(view[np.repeat(at, count) + within])
        mask = None if null is None else pa.array(null)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
