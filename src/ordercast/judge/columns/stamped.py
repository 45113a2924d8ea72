"""The stamps of a run's deliveries in order, prepared once for the properties about stamps."""

from functools import cached_property

import numpy as np

from ordercast.judge.columns.account import Account
from ordercast.judge.columns.columns import Flags, Ints, list_columns, null_of


class Stamped:
    """The deliveries in order, and the columns of their stamps."""

    def __init__(self, account: Account) -> None:
        self._account = account
        trace = account.trace
        table = trace.table
        names = [n for n in ("stamp_clock", "stamp_issuer") if table[n].null_count < len(table)]
        self.has_places = len(names) == 2
        """Whether some rows may have a whole stamp: a clock and an issuer."""
        self.has_numbers = table["numbers"].null_count < len(table)
        lists = list_columns(table["numbers"]) if self.has_numbers else [np.empty(0, np.int64)]
        self.lengths: Ints = lists[0]
        """How many numbers each row has."""
        self.numbers: list[Ints] = lists[1:]
        """The first number of each row, the second, and so on."""
        self.columns: list[Ints] = [trace.column(name) for name in names]
        """The columns that make up a stamp."""
        if self.has_numbers:
            self.columns += [self.lengths, *self.numbers]
        self.places: Ints = account.place
        """The message of each delivery in order."""
        self.rows: Ints = account.row
        """The row of each delivery in order."""
        if account.ordered is not None:
            self.places, self.rows = account.place[account.ordered], account.row[account.ordered]

    @cached_property
    def sample(self) -> Ints:
        """For each message, one row in which it was delivered; -1 if there is none."""
        return self.sample_of(np.ones(len(self.rows), bool))

    def sample_of(self, deliveries: Flags) -> Ints:
        """The same, of some deliveries."""
        sample = np.full(len(self._account.messages), -1, np.int64)
        sample[self.places[deliveries][::-1]] = self.rows[deliveries][::-1]
        return sample

    @cached_property
    def differs(self) -> Flags:
        """For each delivery, whether its stamp is not that of the sample."""
        return self.differs_from(self.sample)

    def differs_from(self, sample: Ints) -> Flags:
        """For each delivery, whether its stamp is not that of its message in a sample."""
        differs = np.zeros(len(self.rows), bool)
        for column in self.columns:
            differs |= column[self.rows] != column[np.maximum(sample, 0)][self.places]
        return differs

    def grow_along(self, places: Ints) -> bool:
        """Whether each message has one stamp, and their clocks grow strictly along these messages."""
        if not self.has_places or self.differs.any():
            return False
        clock = self.columns[0][self.sample[places]]
        return bool((clock[1:] > clock[:-1]).all())

    def whole(self, rows: Ints) -> Flags:
        """For each of some rows, whether it has a whole stamp."""
        flags = np.ones(len(rows), bool)
        for column in self.columns[:2]:
            flags &= column[rows] != null_of(column)
        return flags
