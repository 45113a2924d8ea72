"""What nodes can still know of what they delivered or were answered before they crashed.

A replica that recovers without its state has forgotten its earlier lives. So has one that recovers with a
saved state, if the first that it says of a group is that it starts anew there, or with the state of another
replica: it keeps its service in memory. A client has forgotten the answers of its earlier lives.
"""

from bisect import bisect_left

from ordercast.core import ANEW, GroupId, NodeId
from ordercast.trace import ANSWERING, CARRYING, CONFIGURING, LOST, RESTORED, UNDOING, Event, Kind

SPEAKING = (*CARRYING, *UNDOING, *CONFIGURING, Kind.CHECKPOINT)
"""The kinds of rows in which a replica says where it is in the order of a group."""


class Memory:
    """The rows in which nodes recovered, and what they had forgotten then."""

    def __init__(self) -> None:
        self._recovered: dict[NodeId, list[int]] = {}
        self._lost: dict[NodeId, list[int]] = {}
        self._anew: dict[tuple[NodeId, GroupId], list[int]] = {}
        self._silent: dict[NodeId, set[GroupId]] = {}
        """For each node that has recovered, the groups of which it has said something since."""

    def take(self, row: int, event: Event) -> None:
        """Take note of the next row of the run."""
        node = event.node
        if event.kind is Kind.RECOVER:
            self._recovered.setdefault(node, []).append(row)
            if event.label == LOST:
                self._lost.setdefault(node, []).append(row)
            self._silent[node] = set()
        elif event.kind in SPEAKING and node in self._silent and event.groups:
            group = event.groups[0]
            if group not in self._silent[node]:
                self._silent[node].add(group)
                if _begins_anew(event):
                    self._anew.setdefault((node, group), []).append(self._recovered[node][-1])

    def remembers(self, event: Event, row: int, later: int) -> bool:
        """Whether the node of a delivery or an answer can still know of it in a later row of its own."""
        node, group = event.node, (event.groups or (0,))[0]
        if event.kind in ANSWERING:
            return row > _last_before(self._recovered.get(node, ()), later)
        anew = _last_before(self._anew.get((node, group), ()), later)
        return row > max(anew, _last_before(self._lost.get(node, ()), later))


def _begins_anew(event: Event) -> bool:
    if event.kind in CONFIGURING:
        return event.label == ANEW
    return event.kind is Kind.CHECKPOINT and event.label == RESTORED


def _last_before(rows: list[int] | tuple[()], row: int) -> int:
    place = bisect_left(rows, row)
    return rows[place - 1] if place else -1
