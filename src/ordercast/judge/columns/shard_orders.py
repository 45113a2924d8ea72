"""The orders of all shards, and cycles that they have together with each other and with time.

First, all calls are put in one line: by their stamps, or, where each shard has an order of its own, by when
they were first delivered or answered. If no call is behind one that must come after it, there is no cycle.
That is the whole cost of a run that kept its promise. Otherwise the strongly connected parts of the relation
show the cycles. To keep it small, it goes over the ends of spans: a call comes behind the last end before its
beginning.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, format_ns, message_name
from ordercast.judge.columns.answered import judge_places, judge_replies
from ordercast.judge.columns.calls import NOWHERE, Calls
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.cycles import Edge, strong_parts, way_round
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.lock_spans import Locks, Place, locks_of, unmatched
from ordercast.judge.columns.trace import Trace

NEVER = np.iinfo(np.int64).max
"""The end of a span that has none."""


class Spans(NamedTuple):
    """When calls are on one timeline: a shard's, or one of a clock or a client."""

    shard: GroupId | None
    call: Ints
    start: Ints
    end: Ints


def judge_orders(case: Case, findings: Findings, *, strict: bool) -> None:
    """Judge answers, and the orders of shards and of clients, or those of shards and of time."""
    calls, trace = case.calls, case.trace
    judge_replies(trace, calls, findings)
    judge_places(trace, calls, findings)
    counted = np.flatnonzero((calls.delivery >= 0) | (calls.first_reply >= 0))
    spans = [*_times(trace, calls, counted, strict), *_shards(trace, calls, counted)]
    line = _line(trace, calls, counted)
    if all(_climbs(one, line) for one in spans):
        return
    after = _relation(spans, len(calls.row))
    parts = [part for part in strong_parts(after) if len(part) > 1]
    for part in findings.wanted(parts):
        _tell(trace, calls, findings, spans, way_round(after, part))


def _times(trace: Trace, calls: Calls, counted: Ints, strict: bool) -> Iterator[Spans]:
    """When clients waited for their calls, by clock or by client."""
    nodes, reply = trace.node[calls.row[counted]], calls.first_reply[counted]
    clocks = trace.description.clocks()
    which = np.array([clocks[node] for node in nodes.tolist()], np.int64) if strict else nodes
    invoked = trace.time[calls.row[counted]]
    answered = np.where(reply >= 0, trace.time[np.maximum(reply, 0)], NEVER)
    for one in np.unique(which).tolist():
        mine = which == one
        yield Spans(None, counted[mine], invoked[mine], answered[mine])


def _shards(trace: Trace, calls: Calls, counted: Ints) -> Iterator[Spans]:
    locks = locks_of(trace) if calls.separate else {}
    for group in trace.description.groups:
        yield _shard(trace, calls, counted, group, locks)


def _shard(trace: Trace, calls: Calls, counted: Ints, group: GroupId, locks: Locks) -> Spans:
    """At which places calls are in a shard."""
    to = np.array([group in groups for groups in (*trace.groups.tuples, ())])
    mine = counted[to[trace.groups.codes[calls.row[counted]]]]
    alone = np.array([len(groups) == 1 for groups in (*trace.groups.tuples, ())])
    reads, reply = calls.reads[mine], calls.first_reply[mine]
    delivery = calls.delivery_in(group)[mine] if calls.separate else calls.delivery[mine]
    source = np.where(reads | (delivery < 0), reply, delivery)
    tells = (delivery >= 0) | ~np.bool_(calls.separate) | to[trace.groups.codes[np.maximum(reply, 0)]]
    clock, issuer, named = calls.place(np.maximum(source, 0))
    first = reads & ~named
    clock, issuer = np.where(first, NOWHERE, clock), np.where(first, 0, issuer)
    single = alone[trace.groups.codes[calls.row[mine]]]
    has = (source >= 0) & np.where(reads, single, named & tells)
    mine, clock, issuer, reads = mine[has], clock[has], issuer[has], reads[has]
    places = list(zip(clock.tolist(), issuer.tolist(), strict=True))
    starts, ends = (places, places) if not locks else _held(calls, group, mine, places, locks)
    kept = np.array([start is not None for start in starts], bool)
    found = [
        [(*place, int(read)) for place, read in zip(column, reads.tolist(), strict=True) if place is not None]
        for column in (starts, ends)
    ]
    rank = {place: number for number, place in enumerate(sorted({*found[0], *found[1]}))}
    start, end = (np.array([rank[place] for place in column], np.int64) for column in found)
    return Spans(group, mine[kept], start, end)


def _held(
    calls: Calls, group: GroupId, mine: Ints, places: list[Place], locks: Locks
) -> tuple[list[Place | None], list[Place | None]]:
    """From where to where calls held locks; None for those that were aborted."""
    messages = calls.message[mine].tolist()
    mates = {p: m for p, m in zip(places, messages, strict=True) if (group, m) in locks}
    starts: list[Place | None] = []
    ends: list[Place | None] = []
    for message, place in zip(messages, places, strict=True):
        pairs, open_ = unmatched(locks.get((group, mates.get(place, message)), []))
        done = [(one.place, other.place) for one, other in pairs if other.committed]
        gone = not done and bool(pairs or open_)
        starts.append(None if gone else min([start for start, _ in done], default=place))
        ends.append(None if gone else max([end for _, end in done], default=place))
    return starts, ends


def _line(trace: Trace, calls: Calls, counted: Ints) -> Ints:
    """For each call, its place in a line of all."""
    reply, delivery, reads = calls.first_reply[counted], calls.delivery[counted], calls.reads[counted]
    invoked = trace.time[calls.row[counted]]
    if calls.separate:
        times = [np.where(rows >= 0, trace.time[np.maximum(rows, 0)], NEVER) for rows in (reply, delivery)]
        order = np.lexsort((calls.message[counted], np.minimum(*times)))
    else:
        clock, issuer, _ = calls.place(np.maximum(np.where(reads | (delivery < 0), reply, delivery), 0))
        order = np.lexsort((np.where(reads, invoked, calls.message[counted]), reads, issuer, clock))
    line = np.full(len(calls.row), -1, np.int64)
    line[counted[order]] = np.arange(len(counted))
    return line


def _climbs(spans: Spans, line: Ints) -> bool:
    """Whether every call is behind all whose spans have ended before its own begins."""
    ended = spans.end < NEVER
    order = np.argsort(spans.end[ended], kind="stable")
    ends = spans.end[ended][order]
    highest = np.maximum.accumulate(line[spans.call[ended]][order])
    earlier = np.searchsorted(ends, spans.start, side="left")
    behind = earlier > 0
    return bool((highest[earlier[behind] - 1] < line[spans.call[behind]]).all())


def _relation(spans: list[Spans], count: int) -> dict[int, dict[int, Edge]]:
    """From each vertex to those behind it; ends of spans come after the calls. An edge names its timeline."""
    after: dict[int, dict[int, Edge]] = {}

    def add(timeline: int, tail: int, head: int) -> None:
        after.setdefault(tail, {}).setdefault(head, (timeline, tail, head))

    for timeline, (_, call, start, end) in enumerate(spans):
        ended = np.flatnonzero(end < NEVER)
        ended = ended[np.argsort(end[ended], kind="stable")]
        for number, one in enumerate(call[ended].tolist(), count):
            add(timeline, one, number)
            if number > count:
                add(timeline, number - 1, number)
        earlier = np.searchsorted(end[ended], start, side="left")
        for one, ends in zip(call.tolist(), earlier.tolist(), strict=True):
            if ends:
                add(timeline, count + ends - 1, one)
        count += len(ended)
    return after


def _tell(trace: Trace, calls: Calls, findings: Findings, spans: list[Spans], cycle: list[Edge]) -> None:
    rows = [int(calls.row[before]) for _, before, _ in cycle]
    messages = [int(trace.message[row]) for row in rows]
    parts = [_told(trace, calls, spans, edge) for edge in cycle]
    names = " < ".join(message_name(one) for one in (*messages, messages[0]))
    findings.add(
        dict.fromkeys(int(trace.node[row]) for row in rows),
        messages,
        [int(trace.time[row]) for row in rows],
        f"{'; '.join(parts)}: this is the cycle {names}",
    )


def _told(trace: Trace, calls: Calls, spans: list[Spans], edge: Edge) -> str:
    timeline, one, other = edge
    before, after = (message_name(int(calls.message[call])) for call in (one, other))
    shard = spans[timeline].shard
    if shard is not None:
        return f"shard {shard} has {before} before {after}"
    answered, invoked = int(trace.time[calls.first_reply[one]]), int(trace.time[calls.row[other]])
    return (
        f"{before} had its answer at {format_ns(answered)}, before {after} was called at {format_ns(invoked)}"
    )
