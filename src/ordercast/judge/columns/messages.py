"""Messages by number: each submitted message gets the place of its submission among all.

Identities are sparse (a sender times 2^40, plus its own number), but the numbers of one sender are usually
dense. So a table gives the place of a message without a search. If the numbers are not dense, a search is
used.
"""

import numpy as np

from ordercast.judge.columns.columns import TABLE_MAX, Ints

_SHIFT = 40
_SENDERS_MAX = 1 << 16


class Places:
    """The place of each message in the order of first submissions."""

    def __init__(self, submitted: Ints) -> None:
        dense = _Table.fits(submitted)
        self._table: _Table | _Sorted = _Table(submitted) if dense else _Sorted(submitted)
        first = self._table.first(submitted)
        self.is_first = first == np.arange(len(submitted))
        """For each submission, whether it is the first of its message."""
        self.messages: Ints = submitted
        """The different messages, in the order of their places."""
        self._renumbered: Ints | None = None
        if not self.is_first.all():
            self.messages = submitted[self.is_first]
            self._renumbered = np.cumsum(self.is_first) - 1

    def of(self, messages: Ints) -> Ints:
        """The place of each message; -1 if it was never submitted."""
        first = self._table.first(messages)
        if self._renumbered is None:
            return first
        return np.where(first < 0, -1, self._renumbered[np.maximum(first, 0)])


class _Table:
    """For dense identities: a table for each sender, all in one array."""

    def __init__(self, submitted: Ints) -> None:
        senders, numbers = _parts(submitted)
        self._top = np.full(int(senders.max(initial=-1)) + 1, -1, np.int64)
        np.maximum.at(self._top, senders, numbers)
        self._base = np.cumsum(self._top + 1) - (self._top + 1)
        self._first = np.full(int((self._top + 1).sum()), -1, np.int32)
        places = np.arange(len(submitted), dtype=np.int32)
        self._first[(self._base[senders] + numbers)[::-1]] = places[::-1]

    @staticmethod
    def fits(submitted: Ints) -> bool:
        """Whether a table would not be much larger than what it holds."""
        if not len(submitted):
            return True
        senders, numbers = _parts(submitted)
        if submitted.min() < 0 or senders.max() >= _SENDERS_MAX or len(submitted) >= 1 << 31:
            return False
        top = np.zeros(int(senders.max()) + 1, np.int64)
        np.maximum.at(top, senders, numbers + 1)
        return int(top.sum()) <= max(TABLE_MAX, 8 * len(submitted))

    def first(self, messages: Ints) -> Ints:
        """Where each message was first submitted, or -1."""
        senders, numbers = _parts(messages)
        if not len(self._first):
            return np.full(len(messages), -1, np.int32)
        known = (senders >= 0) & (senders < len(self._top))
        if known.all():
            known = numbers <= self._top[senders]
        else:
            known[known] = numbers[known] <= self._top[senders[known]]
        if known.all():
            found: Ints = self._first[self._base[senders] + numbers]
            return found
        places = np.full(len(messages), -1, np.int32)
        places[known] = self._first[self._base[senders[known]] + numbers[known]]
        return places


class _Sorted:
    """For any identities: a sorted array."""

    def __init__(self, submitted: Ints) -> None:
        self._messages, self._first = np.unique(submitted, return_index=True)

    def first(self, messages: Ints) -> Ints:
        """Where each message was first submitted, or -1."""
        near = np.minimum(np.searchsorted(self._messages, messages), len(self._messages) - 1)
        return np.where(self._messages[near] == messages, self._first[near], -1)


def _parts(messages: Ints) -> tuple[Ints, Ints]:
    return messages >> _SHIFT, messages & ((1 << _SHIFT) - 1)
