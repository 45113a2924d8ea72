"""Answers: a fresh service that executes the delivered order gives the same answers.

Operations and reads are sorted by their places at once, and executed one by one. What lies behind operations
that perhaps no replica delivered is not judged.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ordercast.core import Context, GroupId, RemoteError, format_ns, message_name
from ordercast.judge.columns.calls import NOWHERE, Calls
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Flags, Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import Replay
from ordercast.judge.finding.shard_replay import ShardStep, combined, is_sharded, replay_shard
from ordercast.trace import ABORTED, Kind


class _Turns(NamedTuple):
    """What is executed: the numbers of the calls, their places, and the answers to compare."""

    number: Ints
    clock: Ints
    issuer: Ints
    reply: Ints
    """The row of an answer; -1 for an operation."""

    def kept(self, flags: Flags) -> "_Turns":
        """Some of them."""
        return _Turns(*(column[flags] for column in self))


def answers(case: Case, findings: Findings) -> None:
    """Execute the operations of each group again, and compare the results with the answers."""
    if case.replay is None or case.description.resumed or not len(case.calls.reply):
        return
    if is_sharded(case.description.guarantees, case.replay):
        _judge_shards(case, case.replay, findings)
        return
    for group in sorted(case.description.groups):
        _judge_group(case, case.replay, group, findings)


def _judge_shards(case: Case, replay: Replay, findings: Findings) -> None:
    """Execute each shard again, and compare what they answer together."""
    trace, calls = case.trace, case.calls
    groups = sorted(case.description.groups)
    messages = calls.message.tolist()
    operations = {
        message: _operation(trace, replay, row)
        for message, row in zip(messages, calls.row.tolist(), strict=True)
    }
    results = {
        group: replay_shard(replay, operations, group, len(groups), _steps(case, group)) for group in groups
    }
    wrong: list[tuple[int, bytes]] = []
    for number, rows in _replies(calls).items():
        if number < 0:
            continue
        parts = [results[group] for group in trace.groups.tuples[trace.groups.codes[calls.row[number]]]]
        expected = combined(replay, operations[messages[number]], messages[number], parts)
        if expected is not None:
            wrong += [(row, expected) for row in rows if not _same(trace, row, expected)]
    for row, result in findings.wanted(wrong):
        _tell(trace, findings, row, result)


def _steps(case: Case, group: GroupId) -> list[ShardStep]:
    """What a shard executes, as far as it is known to be whole."""
    trace, calls = case.trace, case.calls
    times = trace.column("submitted_ns")
    submitted = np.where(times == null_of(times), 0, times)[calls.row].tolist()
    rows = calls.delivery_in(group)
    number = np.flatnonzero(rows >= 0)
    clock, issuer, named = calls.place(rows[number])
    steps = [
        ShardStep((at, by), False, int(calls.message[one]), submitted[one])
        for one, at, by in zip(*(column[named].tolist() for column in (number, clock, issuer)), strict=True)
    ]
    ended = trace.rows(Kind.RELEASED)
    ended = ended[trace.labelled(ended, ABORTED)]
    clock, issuer, _ = calls.place(ended)
    codes, ids = trace.groups.codes[ended], trace.message[ended]
    for code, at, by, message in zip(*map(np.ndarray.tolist, (codes, clock, issuer, ids)), strict=True):
        if group in trace.groups.tuples[code]:
            steps.append(ShardStep((at, by), True, message))
    end = _whole(case, group)
    return [step for step in dict.fromkeys(steps) if step.place <= end]


def _judge_group(case: Case, replay: Replay, group: GroupId, findings: Findings) -> None:
    service = replay.service.part(group)
    if service.asks:  # the deliveries do not tell where its operations went on
        return
    trace, calls = case.trace, case.calls
    turns = _turns(calls, group)
    end_clock, end_issuer = _whole(case, group)
    within = (turns.clock < end_clock) | ((turns.clock == end_clock) & (turns.issuer <= end_issuer))
    turns = turns.kept(within)
    rank = np.lexsort((calls.message[turns.number], calls.reads[turns.number], turns.issuer, turns.clock))
    replies = _replies(calls)
    wrong: list[tuple[int, bytes]] = []
    machine, now = service.make(), 0
    times, null = trace.column("submitted_ns"), null_of(trace.column("submitted_ns"))
    for number, reply in zip(turns.number[rank].tolist(), turns.reply[rank].tolist(), strict=True):
        operation, message = _operation(trace, replay, int(calls.row[number])), int(calls.message[number])
        if reply >= 0:
            result = machine.read(operation, Context(message, now))
            compared = [reply]
        else:
            submitted = int(times[calls.row[number]])
            now = max(now, submitted if submitted != null else 0)
            result = machine.apply(operation, Context(message, now))
            compared = replies.get(number, [])
        wrong += [(row, result) for row in compared if not _same(trace, row, result)]
    for row, result in findings.wanted(wrong):
        _tell(trace, findings, row, result)


def _turns(calls: Calls, group: GroupId) -> _Turns:
    """The operations of a group that were delivered, and its reads that were answered."""
    number = calls.in_group(group)
    number = number[~calls.reads[number] & (calls.delivery[number] >= 0)]
    clock, issuer, named = calls.place(calls.delivery[number])
    operations = _Turns(number, clock, issuer, np.full(len(number), -1)).kept(named)
    asked = np.flatnonzero(calls.of >= 0)
    asked = asked[calls.reads[calls.of[asked]] & (calls.group[calls.of[asked]] == group)]
    clock, issuer, named = calls.place(calls.reply[asked])
    clock, issuer = np.where(named, clock, NOWHERE), np.where(named, issuer, 0)
    reads = _Turns(calls.of[asked], clock, issuer, calls.reply[asked])
    return _Turns(*map(np.concatenate, zip(operations, reads, strict=True)))


def _replies(calls: Calls) -> dict[int, list[int]]:
    """The answers to each call."""
    found: dict[int, list[int]] = {}
    for number, row in zip(calls.of.tolist(), calls.reply.tolist(), strict=True):
        found.setdefault(number, []).append(row)
    return found


def _whole(case: Case, group: GroupId) -> tuple[int, int]:
    """The highest place up to which everything was delivered by some replica."""
    end, waiting = (NOWHERE, 0), list(_stretches(case, group))
    while waiting:
        sound = [last for behind, last in waiting if behind <= end]
        if not sound:
            break
        waiting = [(behind, last) for behind, last in waiting if behind > end]
        end = max(end, *sound)
    return end


def _stretches(case: Case, group: GroupId) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """What each replica delivered in a row: behind which place, and up to which."""
    account, trace = case.account, case.trace
    clocks, issuers = trace.column("stamp_clock"), trace.column("stamp_issuer")
    counts = account.going_to(group)[account.to]
    if case.calls.separate:
        counts &= np.isin(account.node, case.description.groups[group])
    if account.ordered is not None:
        counts &= account.ordered
    counts &= (clocks[account.row] != null_of(clocks)) & (issuers[account.row] != null_of(issuers))
    for node in np.unique(account.node).tolist():
        rows = account.row[counts & (account.node == node)]
        states = [state for state in case.restored if (state.node, state.group) == (node, group)]
        edges = [-1, *(state.row for state in states), len(trace.kind)]
        places = [(NOWHERE, 0), *((state.clock, state.issuer) for state in states)]
        for behind, (first, last) in zip(places, pairwise(edges), strict=True):
            mine = rows[(rows > first) & (rows < last)]
            if len(mine):
                top = mine[np.lexsort((issuers[mine], clocks[mine]))[-1]]
                yield behind, (int(clocks[top]), int(issuers[top]))


def _operation(trace: Trace, replay: Replay, row: int) -> bytes:
    """The bytes of an operation; `RemoteError` if they are not those that were submitted."""
    message, digest = int(trace.message[row]), int(trace.column("digest")[row])
    operation = replay.operations.get(message)
    if operation is None or digest not in (crc32(operation), null_of(trace.column("digest"))):
        raise RemoteError(f"the history lacks the operation {message_name(message)}, or has another one")
    return operation


def _same(trace: Trace, row: int, result: bytes) -> bool:
    """Whether an answer is this result."""
    return (int(trace.column("size")[row]), int(trace.column("digest")[row])) == (len(result), crc32(result))


def _tell(trace: Trace, findings: Findings, row: int, result: bytes) -> None:
    node, message, time_ns = int(trace.node[row]), int(trace.message[row]), int(trace.time[row])
    peer = int(trace.column("peer")[row])
    findings.add(
        (node,) if peer == null_of(trace.column("peer")) else (node, peer),
        (message,),
        (time_ns,),
        f"node {node} got an answer to {message_name(message)} at {format_ns(time_ns)}, which is not that of"
        f" a fresh service that executes the delivered order: {len(result)} bytes, digest {crc32(result)}",
    )
