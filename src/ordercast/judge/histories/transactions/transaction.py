"""Transactions on lists: each appends elements to the ends of lists, and reads whole lists.

No element is appended to one list twice, so an element that is read names the transaction that appended it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import msgspec

from ordercast.core import LocalError
from ordercast.judge.histories.operation import Value, shown

Elements: TypeAlias = tuple[Value, ...]


class Append(NamedTuple):
    """Adds an element to the end of a list."""

    key: Value
    element: Value

    def __str__(self) -> str:
        """A phrase for people."""
        return f"append {shown(self.element)} to {shown(self.key)}"


class Read(NamedTuple):
    """Reads a list; what it read is None if nobody knows."""

    key: Value
    elements: Elements | None

    def __str__(self) -> str:
        """A phrase for people."""
        told = "unknown" if self.elements is None else shown(self.elements)
        return f"read {shown(self.key)} = {told}"


class Fate(StrEnum):
    """What became of a transaction, as far as its client knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """It changed nothing."""
    UNKNOWN = "unknown"
    """It may take effect at any time after it was invoked, or never."""


class Transaction(msgspec.Struct, frozen=True):
    """A transaction of a history. Times may have any unit: they are only compared."""

    client: int
    invoked: int
    answered: int | None
    """None if its fate is unknown."""
    fate: Fate
    operations: tuple[Append | Read, ...]
    source: str = ""
    """Where it is recorded, for people."""

    def appended_to(self, key: Value) -> list[Value]:
        """What it appends to a list, in its order."""
        return [one.element for one in self.operations if isinstance(one, Append) and one.key == key]

    def __str__(self) -> str:
        """A phrase for people: ``client 3: append 4 to "x" (lines 5 and 8)``."""
        source = f" ({self.source})" if self.source else ""
        return f"client {self.client}: {', '.join(map(str, self.operations))}{source}"


class Transactions(NamedTuple):
    """A history of transactions."""

    transactions: Sequence[Transaction]


def writers_of(transactions: Sequence[Transaction]) -> dict[Append, int]:
    """The number of the transaction that appends each element; an error if two do."""
    found: dict[Append, int] = {}
    for number, transaction in enumerate(transactions):
        for one in transaction.operations:
            if isinstance(one, Append):
                if one in found:
                    first = transactions[found[one]]
                    raise LocalError(f"{transaction} appends what another one appends: {first}")
                found[one] = number
    return found
