"""From which row on a node knows what it delivered or was answered, over columns.

A client forgets what came before it recovered last. A replica forgets what came before it recovered without
its state, or before it recovered with a state but began anew in the group: with the state of another
replica, or with a view that says so.
"""

from collections.abc import Iterable

import numpy as np

from ordercast.core import ANEW, GroupId, NodeId
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.trace import Trace
from ordercast.trace import CARRYING, CONFIGURING, LOST, RESTORED, UNDOING, Kind


class Memory:
    """When each node forgot something."""

    def __init__(self, trace: Trace, firsts: Ints) -> None:
        """`firsts` is the first group of each row."""
        back: dict[NodeId, list[int]] = {}
        for row in trace.rows(Kind.RECOVER).tolist():
            back.setdefault(int(trace.node[row]), []).append(row)
        self._back = {node: np.array(rows) for node, rows in back.items()}
        self._forgot: dict[tuple[NodeId, GroupId], Ints] = {}
        telling = trace.rows(*CARRYING, *UNDOING, *CONFIGURING, Kind.CHECKPOINT) if back else firsts[:0]
        for node, rows in self._back.items():
            lost = {row for row, label in zip(rows.tolist(), trace.label(rows), strict=True) if label == LOST}
            told = telling[trace.node[telling] == node]
            for group in trace.description.groups:
                ours = told[firsts[told] == group]
                forgot = sorted(lost | _anew(trace, rows, ours))
                self._forgot[node, group] = np.array(forgot, np.int64)

    def since(self, node: NodeId, group: GroupId, *, answers: bool, until: int) -> int:
        """The last row before another one in which a node forgot its answers, or its deliveries; or -1."""
        rows = self._back.get(node) if answers else self._forgot.get((node, group))
        if rows is None:
            return -1
        place = int(np.searchsorted(rows, until))
        return int(rows[place - 1]) if place else -1


def _anew(trace: Trace, back: Iterable[int], told: Ints) -> set[int]:
    """The recoveries of a node after which it began a group anew; `told` is what it said of the group."""
    rows = np.array(list(back), np.int64)
    following = np.searchsorted(told, rows)
    until = np.append(rows[1:], len(trace.kind))
    said = following < len(told)
    said[said] = told[following[said]] < until[said]
    rows, first = rows[said], told[following[said]]
    anew = trace.is_kind(*CONFIGURING)[first] & trace.labelled(first, ANEW)
    anew |= trace.is_kind(Kind.CHECKPOINT)[first] & trace.labelled(first, RESTORED)
    return set(rows[anew].tolist())
