"""Who has a seat in a group: the replicas of the plan, and those that have joined, but none that has left.

Replicas take a seat and give it up by entries of the group's order, so all members agree on who has one after
each place. A crash takes nobody's seat. Where views need a majority, it is one of the seats (section IV has
no rule for that: its groups need no majority). One seat changes at a time, and the next only when that has
been settled: any majority of the seats before a change then meets any majority of those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.core import NodeId
from ordercast.replication.llft.orders import OrderLog, SeatOrder


class Seats:
    """The seats of a group after the last place that a member has performed."""

    __slots__ = ("_founders", "_me", "changed_at", "leaving", "left_at", "silent", "since", "told")

    def __init__(self, me: NodeId, founders: Iterable[NodeId]) -> None:
        self._me = me
        self._founders = dict.fromkeys(founders, 0)
        self.since: dict[NodeId, int] = dict(self._founders)
        """Who has a seat, and the place at which it was taken."""
        self.changed_at = 0
        """The place of the last change."""
        self.told = True
        """Whether the application of this replica counts itself in the group."""
        self.silent = False
        """Whether it is told of nothing yet: this replica has not taken a seat since its last state."""
        self.leaving = False
        """Whether the application of this replica wants to leave."""
        self.left_at: int | None = None
        """The place at which the seat of this replica has ended."""

    @property
    def mine(self) -> int | None:
        """The place at which this replica has taken its seat, if it has one."""
        return self.since.get(self._me)

    def change(self, place: int, entry: SeatOrder) -> bool:
        """A replica takes a seat or gives it up; whether it is this one, and its application comes in."""
        self.changed_at = place
        if entry.joins:
            self.since[entry.node] = place
        else:
            self.since.pop(entry.node, None)
        if entry.node != self._me:
            return False
        self.left_at = None if entry.joins else place
        comes_in = entry.joins and self.silent
        self.silent = self.silent and not entry.joins
        return comes_in

    def restore(self, since: Mapping[NodeId, int], changed_at: int, place: int) -> None:
        """Go on with the seats of a checkpoint. If the group has ended the seat of a replica that wants to
        leave, its wish is granted: its application hears of the group until it goes."""
        self.since = dict(since if changed_at else self._founders)
        self.changed_at = changed_at
        granted = self.leaving and self.told and self.mine is None
        self.silent = not granted and (self.mine is None or not self.told)
        self.left_at = place if granted else None

    def after(self, log: OrderLog, place: int, upto: int) -> set[NodeId]:
        """Who has a seat after a later place, by the ordering information behind the one performed last."""
        seated = set(self.since)
        for at in range(max(place, log.after) + 1, min(upto, log.end) + 1):
            entry = log.at(at)
            if isinstance(entry, SeatOrder):
                (seated.add if entry.joins else seated.discard)(entry.node)
        return seated
