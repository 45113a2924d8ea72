"""The record of a run over columns: whether rows are missing, doubled or out of order.

Each part of a file is examined by itself; `damage_of` follows the steps and positions of each node from part
to part and from file to file. This says nothing about the protocol: see `finding/damage.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import NodeId
from ordercast.judge.columns.columns import CODE, Ints, filled, null_of, words_at
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.finding import DAMAGES_MAX, Damage
from ordercast.trace import PROBE, Kind, RunDescription
from ordercast.trace.record import (
    expected_submissions,
    list_length_max,
    missing_between,
    missing_files,
    wrong_count,
)

CHUNK = 1 << 16
"""How many rows are looked at together, so that they stay in the cache."""
NOTHING = -1
"""The position of a node that delivered nothing."""


class NodeSpan(msgspec.Struct, frozen=True, array_like=True):
    """The rows of a node in a part or in a file."""

    row: int
    """The first of its rows in the file."""
    first: int
    last: int
    lowest: int
    highest: int
    position: int
    """The position of its first delivery; `NOTHING` if it delivered nothing."""
    next_position: int


class RecordPart(msgspec.Struct):
    """The record of a part of a file."""

    file: str
    first: int
    """The first row of the part in its file."""
    rows: int
    submissions: int = 0
    crashes: int = 0
    spans: dict[NodeId, NodeSpan] = msgspec.field(default_factory=dict)
    damages: list[Damage] = msgspec.field(default_factory=list)


def examine_part(
    description: RunDescription, table: pa.Table, order: NodeOrder, file: str, first: int = 0
) -> RecordPart:
    """Examine a part, with its rows in the order of the file; `first` is its first row."""
    part = RecordPart(file, first, len(table))
    _examine_lists(description, table, part)
    _examine_name(description, table, part)
    submitted = np.flatnonzero(order.kind == CODE[Kind.SUBMIT])
    labels = table["label"]
    probes = 0 if labels.null_count == len(labels) else words_at(labels, submitted).count(PROBE)
    part.submissions = len(submitted) - probes
    part.crashes = int(np.count_nonzero(order.kind == CODE[Kind.CRASH]))
    _examine_nodes(table, order, part)
    return part


def _examine_lists(description: RunDescription, table: pa.Table, part: RecordPart) -> None:
    limit = list_length_max(description)
    for name in ("groups", "numbers"):
        column = table[name]
        if column.null_count == len(column):
            continue
        lengths = pc.list_value_length(column)
        if (pc.max(lengths).as_py() or 0) > limit:
            row = pc.index(pc.greater(lengths, limit), True).as_py()
            detail = f"the row has {lengths[row]} {name}, but the run has {len(description.groups)} groups"
            part.damages.append(Damage("lists", detail, part.file, part.first + row))


def _examine_name(description: RunDescription, table: pa.Table, part: RecordPart) -> None:
    runs = table["run"]
    names = {name for chunk in runs.chunks for name in pc.unique(chunk).to_pylist()}
    if names <= {description.run}:
        return
    row = pc.index(pc.not_equal(runs.cast(pa.string()), description.run), True).as_py()
    detail = f"the row is of the run {runs[row]}, but run.json describes the run {description.run}"
    part.damages.append(Damage("run", detail, part.file, part.first + row))


def _examine_nodes(table: pa.Table, order: NodeOrder, part: RecordPart) -> None:
    """Examine the steps and positions of each node, and note where they begin and end."""
    rows, starts, node = order.rows, order.starts, order.node
    delivered, edges = order.delivered
    step, position = filled(table["step"]), filled(table["position"])
    _examine_undelivered(position, order, part)
    jumps = _jumps(step, rows, starts)
    for place in jumps[:DAMAGES_MAX].tolist():
        before, row = int(rows[place - 1]), int(rows[place])
        part.damages.append(_step_damage(part, row, int(node[row]), int(step[before]), int(step[row])))
    for place in _displaced(position, delivered, edges)[:DAMAGES_MAX].tolist():
        row = int(delivered[place])
        part.damages.append(_position_damage(part, row, int(node[row]), int(position[row])))
    broken = set((np.searchsorted(starts, jumps, side="right") - 1).tolist())
    for place in np.flatnonzero(np.diff(starts)).tolist():
        mine = rows[starts[place] : starts[place + 1]]
        steps = step[mine] if place in broken else step[mine[[0, -1]]]
        part.spans[int(node[mine[0]])] = _span(
            part.first + int(mine[0]), steps, position, delivered[edges[place] : edges[place + 1]]
        )


def _span(row: int, steps: Ints, position: Ints, delivered: Ints) -> NodeSpan:
    """The rows of a node, from its steps and the rows of its deliveries."""
    return NodeSpan(
        row=row,
        first=int(steps[0]),
        last=int(steps[-1]),
        lowest=int(steps.min()),
        highest=int(steps.max()),
        position=int(position[delivered[0]]) if len(delivered) else NOTHING,
        next_position=int(position[delivered[-1]]) + 1 if len(delivered) else NOTHING,
    )


def _examine_undelivered(position: Ints, order: NodeOrder, part: RecordPart) -> None:
    """Find rows with a position that are no deliveries."""
    placed = position != null_of(position)
    placed[order.delivered[0]] = False
    for row in np.flatnonzero(placed)[:DAMAGES_MAX].tolist():
        node = int(order.node[row])
        detail = f"node {node} has the position {position[row]} in a row that is no delivery"
        part.damages.append(Damage("positions", detail, part.file, part.first + row, node))


def _displaced(position: Ints, delivered: Ints, edges: Ints) -> Ints:
    """The deliveries without a position, or with another than the one after that of the delivery before."""
    jumps = _jumps(position, delivered, edges)
    suspects = np.union1d(jumps, edges[edges < len(delivered)])
    nowhere = suspects[position[delivered[suspects]] < 0]
    return np.union1d(np.setdiff1d(jumps, nowhere + 1), nowhere)


def _jumps(values: Ints, rows: Ints, starts: Ints) -> Ints:
    """The places in `rows` where a value is not the one before plus 1, within one node."""
    found = [rows[:0]]
    for first in range(0, len(rows), CHUNK):
        some = values[rows[max(0, first - 1) : first + CHUNK]]
        found.append(np.flatnonzero(np.diff(some) != 1) + max(1, first))
    jumps = np.concatenate(found)
    return jumps[~np.isin(jumps, starts)]


def _step_damage(part: RecordPart, row: int, node: NodeId, before: int, now: int) -> Damage:
    if now > before:
        detail = _lacks(node, before + 1, now - 1)
    elif now == before:
        detail = f"node {node} has step {now} twice"
    else:
        detail = f"step {now} of node {node} comes after its step {before}"
    return Damage("order" if now < before else "steps", detail, part.file, part.first + row, node)


def _position_damage(part: RecordPart, row: int, node: NodeId, position: int) -> Damage:
    has = "no position" if position < 0 else f"position {position}, which is not the next"
    return Damage("positions", f"a delivery of node {node} has {has}", part.file, part.first + row, node)


def damage_of(description: RunDescription, parts: Iterable[RecordPart]) -> list[Damage]:
    """What is wrong with the record of a run, from all its parts in order."""
    parts = list(parts)
    damages = [damage for part in parts for damage in part.damages]
    rows = Counter[str]()
    files: dict[NodeId, list[tuple[str, NodeSpan]]] = {}
    for file, of_file in groupby(parts, key=lambda part: part.file):
        here: dict[NodeId, NodeSpan] = {}
        for part in of_file:
            rows[file] += part.rows
            for node, span in part.spans.items():
                here[node] = _extended(here[node], span, part, node, damages) if node in here else span
        for node, span in here.items():
            files.setdefault(node, []).append((file, span))
    damages += [Damage("files", detail, name) for name, detail in missing_files(description, rows)]
    for node, spans in sorted(files.items()):
        damages += _joined(node, sorted(spans, key=lambda found: found[1].first), rows, damages)
    damages += _miscounted(description, parts, damages)
    unstepped = {damage.node for damage in damages if damage.what in ("steps", "order")}
    return [one for one in damages if one.what != "positions" or one.node not in unstepped][:DAMAGES_MAX]


def _extended(
    before: NodeSpan, after: NodeSpan, part: RecordPart, node: NodeId, damages: list[Damage]
) -> NodeSpan:
    """The rows of a node in two parts of a file, one after the other; what is wrong goes to `damages`."""
    row = after.row - part.first
    if after.first != before.last + 1:
        damages.append(_step_damage(part, row, node, before.last, after.first))
    if NOTHING not in (before.next_position, after.position) and after.position != before.next_position:
        damages.append(_position_damage(part, row, node, after.position))
    return NodeSpan(
        row=before.row,
        first=before.first,
        last=after.last,
        lowest=min(before.lowest, after.lowest),
        highest=max(before.highest, after.highest),
        position=after.position if before.position == NOTHING else before.position,
        next_position=before.next_position if after.next_position == NOTHING else after.next_position,
    )


def _joined(
    node: NodeId, spans: Sequence[tuple[str, NodeSpan]], rows: Mapping[str, int], found: Sequence[Damage]
) -> Iterator[Damage]:
    """What is wrong with the steps and positions of a node from file to file."""
    step, position, before = 0, 0, ""
    placed = not any(damage.node == node for damage in found)
    for file, span in spans:
        if span.lowest != step:
            placed = False
            again = f"node {node} has step {span.lowest} twice, also in {before}"
            lacks = _lacks(node, step, span.lowest - 1) + missing_between(before, file, rows)
            yield Damage("steps", lacks if span.lowest > step else again, file, span.row, node)
        if placed and span.position != NOTHING:
            if span.position != position:
                detail = f"node {node} has position {span.position} instead of {position}"
                yield Damage("positions", detail, file, span.row, node)
            position = span.next_position
        step, before = max(step, span.highest + 1), file


def _miscounted(
    description: RunDescription, parts: Sequence[RecordPart], found: Sequence[Damage]
) -> Iterator[Damage]:
    """Whether the run is empty, or has another number of submissions than its scenario says."""
    if description.complete and not any(part.rows for part in parts) and description.messages_wanted != 0:
        yield Damage("empty", "the run has no events, but run.json says that it is complete")
        return
    sure = not found and not any(part.crashes for part in parts)
    submissions = sum(part.submissions for part in parts)
    detail = wrong_count(submissions, expected_submissions(description, sure=sure))
    if detail:
        yield Damage("submissions", detail)


def _lacks(node: NodeId, first: int, last: int) -> str:
    return (
        f"node {node} lacks step {first}" if first == last else f"node {node} lacks steps {first} to {last}"
    )
