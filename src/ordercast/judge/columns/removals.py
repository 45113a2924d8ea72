"""Removed issuers: which of their numbers are above the last number that a group settles."""

import numpy as np

from ordercast.core import GroupId
from ordercast.judge.columns.changes import Change
from ordercast.judge.columns.columns import Flags, Ints


class Removals:
    """The last number of each removed issuer for each group: the largest number that a view has."""

    def __init__(self, changes: list[Change]) -> None:
        ascending = sorted((c.issuer, c.group, c.number) for c in changes if not c.added)
        self.last = {(issuer, group): number for issuer, group, number in ascending}

    def cut_off(self, issuer: int, group: GroupId, number: int) -> bool:
        """Whether a number is above the last one."""
        return number > self.last.get((issuer, group), number)

    def all_cut_off(self, issuers: Ints, groups: Ints, numbers: Ints) -> Flags:
        """The same as `cut_off`, for many numbers at once."""
        removed = np.unique(np.array([issuer for issuer, _ in self.last], np.int64))
        known = np.unique(np.array([group for _, group in self.last], np.int64))
        limits = np.full((len(removed), len(known)), np.iinfo(np.int64).max)
        for (issuer, group), number in self.last.items():
            limits[np.searchsorted(removed, issuer), np.searchsorted(known, group)] = number
        flags = np.zeros(len(numbers), bool)
        rows = np.flatnonzero(np.isin(issuers, removed) & np.isin(groups, known))
        lasts = limits[np.searchsorted(removed, issuers[rows]), np.searchsorted(known, groups[rows])]
        flags[rows] = numbers[rows] > lasts
        return flags
