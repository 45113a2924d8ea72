"""A lane: what one receiver gets, in one life, of one issuer for one group.

Its numbers come once each, as a message or as a notification, and when the message with a number comes, all
smaller ones have. They begin at 1; behind the number of the view that adds the issuer, if one does; with the
first that comes, if the receiver had recovered without its state. They end at the view that removes the
issuer: all that it settles came before, and nothing comes after.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, NodeId
from ordercast.judge.columns.changes import Change
from ordercast.judge.columns.columns import Ints


class Lane(NamedTuple):
    """Whose numbers, and where they come."""

    node: NodeId
    life: int
    issuer: int
    group: GroupId


def regular(lane: Lane, numbers: Ints, rows: Ints, changes: list[Change]) -> bool:
    """Whether numbers come one after the other, all between the views that add and remove their issuer."""
    if [change.added for change in changes] not in ([], [True], [False], [True, False]):
        return False
    first = int(numbers[0]) if lane.life else 1
    for change in changes:
        if change.added:
            first = change.number + 1
            in_time = change.row < int(rows[0])
        else:
            in_time = int(rows[-1]) < change.row and change.number <= int(numbers[-1])
        if not in_time:
            return False
    return int(numbers[0]) == first and bool((np.diff(numbers) == 1).all())


def faults(
    lane: Lane, numbers: list[int], rows: list[int], dropped: list[bool], changes: list[Change]
) -> Iterator[tuple[int, str]]:
    """What is wrong in a lane, with the rows that show it."""
    came = [(row, number, drop, None) for row, number, drop in zip(rows, numbers, dropped, strict=True)]
    turns = [(change.row, change.number, False, change) for change in changes]
    walk = _Walk(lane)
    for row, number, drop, change in sorted([*came, *turns], key=lambda step: step[0]):
        told = walk.come(number, drop) if change is None else walk.turn(change)
        yield from ((row, what) for what in told)


class _Walk:
    """A way along a lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._first = None if lane.life else 1
        self._low = 0  # all up to here has come, or its lack has been told
        self._came: dict[int, bool] = {}
        self._early: list[int] = []
        self._removal: Change | None = None

    def come(self, number: int, drop: bool) -> Iterator[str]:
        """A message or a notification comes: twice, or too late, or past a number that is passed over."""
        slot = f"number {number} of issuer {self._lane.issuer} in group {self._lane.group}"
        what = f"was notified of the drop of {slot}" if drop else f"delivered {slot}"
        if self._removal is not None:
            yield f"{what} after view {self._removal.config} had removed that issuer"
            return
        if self._first is None:
            self._begin(number)
        if number in self._came:
            earlier = "a notification" if self._came[number] else "a message"
            yield f"{what} after {earlier} with that number"
        elif number < (self._first or 0):
            yield f"{what}, below the first number, {self._first}"
        self._came[number] = self._came.get(number, False) or drop
        heappush(self._early, number)
        self._settle(self._low)
        if not drop and self._low < number:
            yield f"{what}, but neither message nor notification for number {self._low + 1}"
            self._settle(number)

    def turn(self, change: Change) -> Iterator[str]:
        """A view adds the issuer or removes it."""
        kind = "adds" if change.added else "removes"
        what = f"installed view {change.config} of group {change.group}, which {kind} issuer {change.issuer}"
        if change.added:
            if self._came or self._removal is not None:
                yield f"{what}, after something of it"
            else:
                self._begin(change.number + 1)
            return
        if self._first is None:
            self._begin(change.number + 1)
        if self._low < change.number:
            missing = f"neither message nor notification for number {self._low + 1}"
            yield f"{what} with last number {change.number}, but {missing}"
            self._settle(change.number)
        self._removal = change

    def _begin(self, first: int) -> None:
        self._first, self._low = first, first - 1

    def _settle(self, low: int) -> None:
        """All up to a number has come; so has what came early and follows it."""
        while self._early and self._early[0] <= low + 1:
            low = max(low, heappop(self._early))
        self._low = low
