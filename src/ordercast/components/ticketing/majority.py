"""Uniform delivery: a message is delivered when a majority of the view has it and its place in the order.

The next view is decided by a majority of this one and contains what any of them has. So what a majority has
is delivered by all who go on, and nobody delivers what the others do not.
"""

from collections import deque
from collections.abc import Iterator

from ordercast.components.ticketing.ordering import Ordered
from ordercast.core import NodeId


class Majority:
    """What is ordered here and not safe yet, and how much of the order each member has."""

    __slots__ = ("_beyond", "_me", "_members", "_places", "_safe", "_voters", "_waiting")

    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._members: tuple[NodeId, ...] = ()
        self._places: dict[NodeId, int] = {}
        self._voters: tuple[NodeId, ...] = ()
        self._waiting: deque[Ordered] = deque()
        self._safe = 0
        """How many messages of this view are safe."""
        self._beyond = 0
        """How many voters have more of the order than that."""

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, members: tuple[NodeId, ...], voters: tuple[NodeId, ...]) -> None:
        """A view begins."""
        self._members = members
        self._voters = voters
        self._places = dict.fromkeys(members, 0)
        self._waiting.clear()
        self._safe = self._beyond = 0

    def add(self, ordered: Ordered) -> None:
        """The next message in the order here."""
        self._waiting.append(ordered)
        self._raise(self._me, self._places.get(self._me, 0) + 1)

    def note(self, member: NodeId, place: int) -> None:
        """A member has so much of the order."""
        if place > self._places.get(member, place):
            self._raise(member, place)

    def _raise(self, member: NodeId, place: int) -> None:
        if self._places.get(member, 0) <= self._safe < place and member in self._voters:
            self._beyond += 1
        self._places[member] = place

    def behind(self) -> list[NodeId]:
        """The members that have not said that they have all that waits here."""
        mine = self._places.get(self._me, 0)
        return [node for node in self._members if self._places[node] < mine]

    def take(self) -> Iterator[Ordered]:
        """What has become safe."""
        if not self._waiting or 2 * self._beyond < len(self._voters):
            return
        agreed = self._agreed()
        while self._waiting and self._safe < agreed:
            self._safe += 1
            yield self._waiting.popleft()
        self._beyond = sum(self._places.get(voter, 0) > self._safe for voter in self._voters)

    def _agreed(self) -> int:
        """The place up to which at least half of the voters have the order."""
        places = sorted((self._places.get(voter, 0) for voter in self._voters), reverse=True)
        return places[(len(places) - 1) // 2]

    def take_all(self) -> Iterator[Ordered]:
        """The view is over: all who go on have all of it."""
        while self._waiting:
            yield self._waiting.popleft()
