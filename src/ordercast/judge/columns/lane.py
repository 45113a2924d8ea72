"""A lane: the numbers of one issuer for one group that one receiver gets in one life.

Each number comes once, as a message or as a notification. When the message with a number comes, all smaller
numbers have come. Where the numbers begin depends: after the number of the view that adds the issuer, if
there is such a view; at the first number that comes, if the receiver had recovered without its state or began
the run with state from an earlier one; otherwise at 1. They end at the view that removes the issuer: every
number that the view settles came before it, and no number comes after it.
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
    """Whether the numbers come in order, all between the views that add and remove their issuer."""
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
    """Goes along a lane, number by number, and finds what is wrong."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._first = None if lane.life else 1
        self._low = 0  # all numbers up to here have come, or were reported as missing
        self._came: dict[int, bool] = {}
        self._early: list[int] = []
        self._removal: Change | None = None

    def come(self, number: int, drop: bool) -> Iterator[str]:
        """Take a message or a notification; report one that comes twice, too late, or after a gap."""
        slot = f"number {number} of issuer {self._lane.issuer} in group {self._lane.group}"
        what = f"was notified of the drop of {slot}" if drop else f"delivered {slot}"
        if self._removal is not None:
            yield f"{what} after view {self._removal.config}, which removed the issuer"
            return
        if self._first is None:
            self._begin(number)
        if number in self._came:
            earlier = "a notification" if self._came[number] else "a message"
            yield f"{what} after {earlier} with the same number"
        elif number < (self._first or 0):
            yield f"{what}, which is below the first number, {self._first}"
        self._came[number] = self._came.get(number, False) or drop
        heappush(self._early, number)
        self._settle(self._low)
        if not drop and self._low < number:
            yield f"{what}, but got neither message nor notification for number {self._low + 1}"
            self._settle(number)

    def turn(self, change: Change) -> Iterator[str]:
        """A view adds the issuer or removes it."""
        kind = "added" if change.added else "removed"
        what = f"installed view {change.config} of group {change.group}, which {kind} issuer {change.issuer}"
        if change.added:
            if self._came or self._removal is not None:
                yield f"{what}, after it had heard of that issuer"
            else:
                self._begin(change.number + 1)
            return
        if self._first is None:
            self._begin(change.number + 1)
        if self._low < change.number:
            missing = f"got neither message nor notification for number {self._low + 1}"
            yield f"{what} with last number {change.number}, but {missing}"
            self._settle(change.number)
        self._removal = change

    def _begin(self, first: int) -> None:
        self._first, self._low = first, first - 1

    def _settle(self, low: int) -> None:
        """Note that all numbers up to `low` have come, and those that came early and follow it."""
        while self._early and self._early[0] <= low + 1:
            low = max(low, heappop(self._early))
        self._low = low
