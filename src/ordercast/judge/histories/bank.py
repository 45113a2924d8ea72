"""A bank: transfers move money between accounts, so every reading of all accounts has the same total.

This is Jepsen's `bank`: `:transfer` with a map of `:from`, `:to` and `:amount`, and `:read`, which is
answered with a map from accounts to balances. Only the totals are judged: that they are equal does not prove
that the transactions have an order.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ordercast.core import LocalError
from ordercast.judge.histories.edn import Table
from ordercast.judge.histories.record import LineError, Record, source_of

WRONG_MAX = 20
"""How many readings with another total a judgement names."""


class Balance(NamedTuple):
    """A reading of all accounts."""

    client: int
    accounts: int
    total: int
    source: str

    def __str__(self) -> str:
        """A phrase for people."""
        return (
            f"client {self.client} read {self.accounts} accounts with {self.total} together ({self.source})"
        )


class Balances(NamedTuple):
    """The readings of a bank, in their order, and how many operations there were."""

    readings: tuple[Balance, ...]
    operations: int


class BankJudgement(NamedTuple):
    """The first reading, and those that disagree with it."""

    first: Balance | None
    wrong: tuple[Balance, ...] = ()
    more: int = 0
    """How many more disagree."""

    @property
    def total_kept(self) -> bool:
        """Whether all readings have the same accounts and the same total."""
        return not self.wrong


def judge_balances(balances: Balances) -> BankJudgement:
    """Compare all readings with the first."""
    if not balances.readings:
        return BankJudgement(None)
    first = balances.readings[0]
    wrong = [one for one in balances.readings if one[1:3] != first[1:3]]
    return BankJudgement(first, tuple(wrong[:WRONG_MAX]), max(0, len(wrong) - WRONG_MAX))


def balances_of(pairs: Iterable[tuple[Record, Record | None]]) -> Balances:
    """The readings that these records tell."""
    readings, operations = [], 0
    for begun, ended in pairs:
        operations += 1
        if begun.call not in ("read", "transfer"):
            raise LineError(begun.line, f"operation :{begun.call} does not belong to a bank (read, transfer)")
        if begun.call == "read" and ended is not None and ended.type == "ok":
            readings.append((ended.line, _balance(begun, ended)))
    if not operations:
        raise LocalError("the file has no operations")
    return Balances(tuple(balance for _, balance in sorted(readings)), operations)


def _balance(begun: Record, ended: Record) -> Balance:
    if not isinstance(ended.value, Table):
        raise LineError(ended.line, f"a bank is read as a map of balances, not as {ended.value!r}")
    amounts = [one for one in ended.value.entries.values() if isinstance(one, int)]
    if len(amounts) < len(ended.value.entries):
        raise LineError(ended.line, "a balance must be a number")
    return Balance(begun.process, len(amounts), sum(amounts), source_of(begun, ended))
