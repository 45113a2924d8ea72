"""The rows about locks, by shard and transaction. Most runs have few, so they are taken one by one."""

from typing import NamedTuple, TypeAlias

from ordercast.core import GroupId, MessageId, NodeId
from ordercast.judge.columns.columns import null_of
from ordercast.judge.columns.trace import Trace
from ordercast.trace import COMMITTED, Kind

Place: TypeAlias = tuple[int, int]


class LockRow(NamedTuple):
    """A shard holds locks for a transaction from a place on, or ended the transaction there."""

    place: Place
    ends: bool
    row: int
    node: NodeId
    committed: bool


Locks: TypeAlias = dict[tuple[GroupId, MessageId], list[LockRow]]


def locks_of(trace: Trace) -> Locks:
    """All rows about locks that name a transaction and a place, by their shards and transactions."""
    rows = trace.rows(Kind.LOCKED, Kind.RELEASED)
    clocks, issuers = trace.column("stamp_clock"), trace.column("stamp_issuer")
    for column in (trace.message, clocks, issuers):
        rows = rows[column[rows] != null_of(column)]
    ends, committed = trace.is_kind(Kind.RELEASED)[rows], trace.labelled(rows, COMMITTED)
    found: Locks = {}
    for row, end, commits in zip(rows.tolist(), ends.tolist(), committed.tolist(), strict=True):
        code = int(trace.groups.codes[row])
        place = (int(clocks[row]), int(issuers[row]))
        for group in trace.known(trace.groups.tuples[code]) if code >= 0 else ():
            one = LockRow(place, end, row, int(trace.node[row]), commits)
            found.setdefault((group, int(trace.message[row])), []).append(one)
    return found


def unmatched(rows: list[LockRow]) -> tuple[list[tuple[LockRow, LockRow]], list[LockRow]]:
    """Each beginning with its end, and the beginnings without one. A place counts once."""
    distinct = {(one.place, one.ends): one for one in reversed(rows)}
    begun: list[LockRow] = []
    pairs: list[tuple[LockRow, LockRow]] = []
    for _, one in sorted(distinct.items()):
        if not one.ends:
            begun.append(one)
        elif begun:
            pairs.append((begun.pop(0), one))
    return pairs, begun
