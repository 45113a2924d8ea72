"""Combines the summaries of a large run's parts: what they prove, and what must be judged in depth.

The summaries prove the following, of a run whose record is not damaged (`record.py`). Each node's times and
clocks grow over all parts. Nothing happened between a node's crash and its recovery. All submissions of a
sender are different messages. Every receiver delivered, from each block, exactly the messages that were
submitted to it, and all receivers with the same stamps. The protocol's own order grows along every node's
deliveries, so that no two nodes contradict each other. For each issuer there is a receiver that has all its
messages, so that no stamp belongs to two of them. Numbers grow by one, without gaps, between the views that
add and remove their issuer (`part_lanes.py`). Messages are complete only after their deliveries.

If the fingerprints of a block differ, or deliveries step back in the order, the messages concerned are read
from the file with all their rows and judged like a separate run. This is correct because each property except
order is about one message (or about two messages of one sender in the same lane), and a cycle of order lies
within one stretch of steps back, as in `line.py`. If the parts cannot decide, the whole run is judged.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.core import Gaps, Groups, LocalError, NodeId, Order
from ordercast.judge.columns.columns import Ints, filled, is_kind, kinds_of, list_columns, null_of
from ordercast.judge.columns.part_completion import unproved
from ordercast.judge.columns.part_lanes import NOTICES, doubt_of_lanes
from ordercast.judge.columns.parts import BLOCK_BITS, SUBMITTED, Edges, Key, Print, Summary, Turn
from ordercast.judge.finding import END_OF_RUN, Holes, Verdict
from ordercast.trace import ORDERED, Kind, RunDescription

JudgeTable = Callable[[RunDescription, pa.Table], Verdict]
"""Judges a whole run by all properties that it promises."""
STAMP = "stamp"
"""The property which says that stamps are the same at all receivers."""
INTEGRITY = "integrity"
"""The property that refuses deliveries, so that others do not see them."""
SHARE_MAX = 0.5
"""The largest share of messages that is worth judging separately."""


class Selection(NamedTuple):
    """What must be judged in depth: whole blocks, and stretches of the order."""

    blocks: frozenset[int]
    stretches: tuple[tuple[Key, Key], ...]
    doubt: str = ""
    """Why the whole run must be judged; empty if the selection is enough."""
    notices: bool = False
    """Whether the run has views, notifications of drops, or messages that may be lost."""

    @property
    def nothing(self) -> bool:
        """Whether the summaries prove that the run kept its promises."""
        return not (self.blocks or self.stretches or self.doubt or self.notices)


def select(description: RunDescription, summaries: Iterable[Summary]) -> Selection:
    """What the summaries of all parts cannot prove."""
    parts = sorted(summaries, key=lambda part: (part.segment, part.first))
    doubt = next((part.doubt for part in parts if part.doubt), "")
    doubt = doubt or _doubt_of_nodes(parts) or _doubt_of_ranges(parts)
    if doubt:
        return Selection(frozenset(), (), doubt)
    all_turns = _turns(parts)
    down = {node for node, turns in all_turns.items() if not turns[-1].up}
    recovered = {node: [turn.step for turn in turns if turn.up] for node, turns in all_turns.items()}
    doubt = _doubt_of_issuers(description, parts, down) or doubt_of_lanes(description, parts, recovered)
    if doubt:
        return Selection(frozenset(), (), doubt)
    complete = {block for part in parts for block in part.completion.blocks}
    blocks, total = _differing(description, [p for part in parts for p in part.prints], down, complete)
    blocks |= unproved(parts)
    if len(blocks) > SHARE_MAX * total:
        return Selection(frozenset(), (), "most of its messages need a closer look")
    notices = any(part.lanes.notices for part in parts)
    return Selection(frozenset(blocks), tuple(_stretches(description, parts)), notices=notices)


def files_in_order(summaries: Iterable[Summary]) -> bool:
    """Whether the rows of each node are in the order of its steps if the files are read in order."""
    parts = sorted(summaries, key=lambda part: (part.segment, part.first))
    nodes = {node for part in parts for node in part.edges}
    return all(
        a.step < b.step
        for node in nodes
        for a, b in pairwise([part.edges[node] for part in parts if node in part.edges])
    )


def judge_selected(
    judge_table: JudgeTable,
    judge_excerpt: JudgeTable,
    description: RunDescription,
    selection: Selection,
    read_parts: Callable[[], Iterator[pa.Table]],
    read_whole: Callable[[], pa.Table],
    block_bits: int = BLOCK_BITS,
) -> Verdict:
    """The verdict on a run, from what the summaries could not prove; its rows are read when needed.

    `judge_excerpt` judges some messages, with all their rows and all notices. `read_whole` raises a
    `LocalError` if there is no memory for the whole run.
    """
    if selection.nothing:
        return Verdict([], {}, Holes() if description.counts_holes else None)
    found: Verdict | None = None
    if not selection.doubt:
        found = _judge_excerpt(judge_excerpt, description, selection, read_parts, block_bits)
        if not found.violations or _enough(description, selection, found):
            return found
    try:
        return judge_table(description, read_whole())
    except LocalError:
        if found is None or selection.notices:
            raise
        return found  # all of it is true, but there may be more


def _enough(description: RunDescription, selection: Selection, found: Verdict) -> bool:
    """Whether the whole run would be condemned for the same as the excerpt.

    If receivers disagree on stamps, the order of stamps proves nothing. What a notice excuses may not be in
    the excerpt. And a delivery that integrity refuses leaves a gap in its lane.
    """
    broken = {violation.property for violation in found.violations}
    gaps = description.guarantees.gaps is Gaps.NOTIFIED
    return not selection.notices and STAMP not in broken and not (gaps and INTEGRITY in broken)


def _judge_excerpt(
    judge_table: JudgeTable,
    description: RunDescription,
    selection: Selection,
    read_parts: Callable[[], Iterator[pa.Table]],
    block_bits: int,
) -> Verdict:
    """Judge the selected messages, with all their rows, the crashes and recoveries, and all notices."""
    blocks = np.array(sorted(selection.blocks), np.int64)
    messages = _messages_in(selection.stretches, read_parts()) if selection.stretches else blocks[:0]
    if len(blocks):
        messages = np.union1d(messages, _sharing_stamps(blocks, block_bits, read_parts))
    tables, rows, before = [], [], 0
    for part in read_parts():
        kind, message = kinds_of(part["kind"]), filled(part["message"])
        wanted = np.isin(message >> block_bits, blocks) | np.isin(message, messages)
        wanted &= is_kind(kind, Kind.SUBMIT, *ORDERED, Kind.COMPLETE)
        wanted |= is_kind(kind, Kind.CRASH, Kind.RECOVER, *NOTICES)
        tables.append(part.filter(wanted))
        rows.append(before + np.flatnonzero(wanted))
        before += len(part)
    verdict = judge_table(description, pa.concat_tables(tables))
    row_of = np.concatenate(rows)
    violations = [
        violation
        if violation.step == END_OF_RUN
        else msgspec.structs.replace(violation, step=int(row_of[violation.step]))
        for violation in verdict.violations
    ]
    # Every block with a missing message is selected, so these are all the holes.
    return Verdict(violations, verdict.suppressed, verdict.holes)


def _messages_in(stretches: tuple[tuple[Key, Key], ...], parts: Iterator[pa.Table]) -> Ints:
    """The messages delivered within stretches of the order, by the clock; a few more do no harm."""
    found = []
    firsts = np.array([first[0] for first, _ in stretches])  # ascending, as the stretches are
    lasts = np.maximum.accumulate([last[0] for _, last in stretches])
    for part in parts:
        clock, message = filled(part["stamp_clock"]), filled(part["message"])
        near = np.searchsorted(firsts, clock, side="right") - 1
        inside = (near >= 0) & (clock <= lasts[near])
        found.append(np.unique(message[inside & is_kind(kinds_of(part["kind"]), *ORDERED)]))
    return np.unique(np.concatenate(found))


def _sharing_stamps(blocks: Ints, block_bits: int, read_parts: Callable[[], Iterator[pa.Table]]) -> Ints:
    """The messages whose stamp has a clock or a number as one of these blocks: it may be the same."""
    values: list[list[Ints]] = [[blocks[:0]], [blocks[:0]]]
    for part in read_parts():
        mine = np.isin(filled(part["message"]) >> block_bits, blocks)
        for seen, columns in zip(values, _clock_and_numbers(part), strict=True):
            seen += [np.unique(column[mine]) for column in columns]
    wanted = [_known(np.unique(np.concatenate(seen))) for seen in values]
    found = [blocks[:0]]
    for part in read_parts():
        shares = np.zeros(len(part), bool)
        for known, columns in zip(wanted, _clock_and_numbers(part), strict=True):
            for column in columns if len(known) else ():
                shares |= np.isin(column, known)
        found.append(np.unique(filled(part["message"])[shares]))
    return _known(np.unique(np.concatenate(found)))


def _clock_and_numbers(part: pa.Table) -> tuple[list[Ints], list[Ints]]:
    return [filled(part["stamp_clock"])], list_columns(part["numbers"])[1:]


def _known(values: Ints) -> Ints:
    """Values without those that stand for nothing."""
    known: Ints = values[(values != null_of(values)) & (values != -1)]
    return known


def _doubt_of_issuers(description: RunDescription, parts: list[Summary], down: set[NodeId]) -> str:
    """Which issuer's messages no receiver has all; then two of them might share a stamp. Empty if none."""
    if description.guarantees.order is Order.NONE:
        return ""
    if any(members and down.issuperset(members) for members in description.groups.values()):
        return "all receivers of a group are down"
    members = {group: set(nodes) for group, nodes in description.groups.items()}
    having: dict[int, set[NodeId]] = {}
    for issuer, groups in (pair for part in parts for pair in part.issuers):
        receivers = set().union(*(members[group] for group in groups)) - down
        having[issuer] = having.get(issuer, receivers) & receivers
    torn = sorted(issuer for issuer, nodes in having.items() if not nodes)
    return f"no receiver has all messages of issuer {torn[0]}" if torn else ""


def _doubt_of_nodes(parts: list[Summary]) -> str:
    """Why the parts of some node do not follow each other, or have rows while it is down; empty if none."""
    all_turns = _turns(parts)
    for node in {node for part in parts for node in part.edges}:
        edges = _edges_of(node, parts)
        for a, b in pairwise(edges):
            if b.time_ns[0] < a.time_ns[1] or b.clock_ns[0] < a.clock_ns[1]:
                return f"the times or clocks of node {node} go back"
        turns = all_turns.get(node, [])
        for place, turn in enumerate(turns):
            if turn.up == (place % 2 == 0):
                return f"the crashes and recoveries of node {node} do not alternate"
            until = turns[place + 1].step if place + 1 < len(turns) else _steps(node, parts)
            if not turn.up and until != turn.step + 1:
                return f"node {node} has rows while it is down"
    return ""


def _edges_of(node: NodeId, parts: list[Summary]) -> list[Edges]:
    """The edges of a node in all parts, in the order of its steps."""
    edges = [part.edges[node] for part in parts if node in part.edges]
    return sorted(edges, key=lambda found: found.step)


def _steps(node: NodeId, parts: list[Summary]) -> int:
    """The number of steps of a node; packets count."""
    return 1 + max(part.record.spans[node].highest for part in parts if node in part.record.spans)


def _turns(parts: list[Summary]) -> dict[NodeId, list[Turn]]:
    """The crashes and recoveries of each node that has any, in order."""
    found: dict[NodeId, list[Turn]] = {}
    for turn in sorted((turn for part in parts for turn in part.turns), key=lambda turn: turn.step):
        found.setdefault(turn.node, []).append(turn)
    return found


def _doubt_of_ranges(parts: list[Summary]) -> str:
    """Which sender's messages do not grow over all parts, as submitted or as delivered; empty if none."""
    last: dict[tuple[NodeId, NodeId], int] = {}
    order = sorted(
        (
            (part.edges[sent.sender if sent.node == SUBMITTED else sent.node].step[0], sent)
            for part in parts
            for sent in part.ranges
        ),
        key=lambda found: found[0],
    )
    for _, sent in order:
        key = (sent.node, sent.sender)
        if sent.first <= last.get(key, -1):
            return f"the messages of node {sent.sender} are not in order"
        last[key] = sent.last
    return ""


def _differing(
    description: RunDescription, prints: list[Print], down: Set[NodeId], complete: Set[int]
) -> tuple[set[int], int]:
    """The blocks from which some receiver did not deliver exactly what was submitted; and the number of all
    blocks.

    A receiver that is down at the end may lack a whole block, unless holes are counted or the block has
    complete messages.
    """
    if description.counts_holes:
        down = frozenset()
    sums: dict[tuple[NodeId, Groups, int], list[int]] = {}
    for found in prints:
        mine = sums.setdefault((found.node, found.groups, found.block), [0, 0, 0])
        for place, more in enumerate((found.count, found.content, found.stamped)):
            mine[place] = (mine[place] + more) % (1 << 64)
    members = {groups: {n for g in groups for n in description.groups[g]} for _, groups, _ in sums}
    stamps: dict[tuple[Groups, int], int] = {}
    blocks: set[int] = set(complete).difference(block for node, _, block in sums if node == SUBMITTED)
    for (node, groups, block), (count, content, stamped) in sums.items():
        if node == SUBMITTED:
            owing = members[groups] if block in complete else members[groups] - down
            same = all((receiver, groups, block) in sums for receiver in owing)
        else:
            submitted = sums.get((SUBMITTED, groups, block), [0, 0, 0])
            same = submitted[:2] == [count, content] and node in members[groups]
            same = same and stamps.setdefault((groups, block), stamped) == stamped
        if not same:
            blocks.add(block)
    return blocks, len({block for _, _, block in sums})


def _stretches(description: RunDescription, parts: list[Summary]) -> list[tuple[Key, Key]]:
    """The stretches of the protocol's order over which some node's deliveries step back."""
    if description.guarantees.order is Order.NONE:
        return []
    steps = [step for part in parts for step in part.back]
    for node in {node for part in parts for node in part.edges}:
        keys = [edges.key for edges in _edges_of(node, parts) if edges.key is not None]
        edges = [(a[1], b[0]) for a, b in pairwise(keys)]
        steps += [(min(edge), max(edge)) for edge in edges if edge[1][:2] <= edge[0][:2]]
    united: list[tuple[Key, Key]] = []
    for first, last in sorted(steps):
        if united and first <= united[-1][1]:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return united
