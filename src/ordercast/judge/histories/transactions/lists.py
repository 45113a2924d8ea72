"""What the reads of a history say about each list by itself: the order of its elements, and what is wrong.

A list only grows, so every read of it is a beginning of every later one, and the longest read has its order
(Kingsbury and Alvaro, "Elle", VLDB 2020, section 4: the order is *traceable*). Reads of committed
transactions count. An element that is read was committed, though its client may not know.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ordercast.judge.histories.operation import Value, shown
from ordercast.judge.histories.transactions.transaction import Append, Elements, Fate, Read, Transaction


class Flaw(NamedTuple):
    """Something that no order of the transactions explains, and that needs no cycle to be seen."""

    kind: str
    key: Value
    transactions: tuple[int, ...]
    text: str


class Seen(NamedTuple):
    """The first read of a list by a transaction: how many elements were there before its own."""

    transaction: int
    before: int


class List:
    """One list."""

    def __init__(self, key: Value) -> None:
        self.key = key
        self.order: Elements = ()
        """Its elements, as the longest read has them."""
        self.longest = -1
        """The transaction that read so; -1 if nobody read the list."""
        self.reads: list[Seen] = []
        self.appended: dict[Value, int] = {}
        """The transactions that append its elements, in the order of the history."""
        self.sound = True
        """Whether its reads agree on its order."""


class Lists:
    """All lists of a history."""

    def __init__(self, transactions: Sequence[Transaction], writers: dict[Append, int]) -> None:
        self._transactions = transactions
        self._writers = writers
        self.flaws: list[Flaw] = []
        self._lists: dict[Value, List] = {}
        for (key, element), writer in writers.items():
            self._of(key).appended[element] = writer
        for number, transaction in enumerate(transactions):
            if transaction.fate is Fate.COMMITTED:
                self._read_all(number, transaction)
        for number, key, elements in self._whole_reads():
            self._compare(number, self._lists[key], elements)
        for one in self._lists.values():
            self._judge_turns(one)
        self.committed = self._committed()
        """The transactions that took effect."""

    def __iter__(self) -> Iterator[List]:
        """The lists whose order is known."""
        return (one for one in self._lists.values() if one.sound)

    def _of(self, key: Value) -> List:
        found = self._lists.get(key)
        if found is None:
            found = self._lists[key] = List(key)
        return found

    def _whole_reads(self) -> Iterator[tuple[int, Value, Elements]]:
        for number, transaction in enumerate(self._transactions):
            if transaction.fate is Fate.COMMITTED:
                for one in transaction.operations:
                    if isinstance(one, Read) and one.elements is not None:
                        yield number, one.key, one.elements

    def _read_all(self, number: int, transaction: Transaction) -> None:
        """Follow a transaction: what it must see of its own, and what it saw of others."""
        own: dict[Value, list[Value]] = {}
        known: dict[Value, Elements] = {}
        for one in transaction.operations:
            if isinstance(one, Append):
                own.setdefault(one.key, []).append(one.element)
            elif one.elements is not None:
                mine, last = tuple(own.get(one.key, ())), known.get(one.key)
                start = len(one.elements) - len(mine)
                if one.elements != last + mine if last is not None else one.elements[max(start, 0) :] != mine:
                    self._tell_internal(number, one, last, mine)
                elif last is None:
                    self._note(number, one.key, one.elements, start)
                known[one.key], own[one.key] = one.elements, []

    def _tell_internal(self, number: int, read: Read, last: Elements | None, mine: Elements) -> None:
        before = "" if last is None else f"had read {shown(last)} and "
        text = f"{self._transactions[number]}: {before}had appended {shown(mine)}, but {read}"
        self.flaws.append(Flaw("internal", read.key, (number,), text))
        self._of(read.key).sound = False

    def _note(self, number: int, key: Value, elements: Elements, before: int) -> None:
        """Take note of what a transaction saw of a list first."""
        one = self._of(key)
        one.reads.append(Seen(number, before))
        if before:
            self._judge_last(number, one, elements[before - 1])

    def _judge_last(self, number: int, one: List, element: Value) -> None:
        """Whether a read ends in the middle of another transaction."""
        writer = one.appended.get(element)
        if writer is None or writer == number:
            return
        if self._transactions[writer].appended_to(one.key)[-1] != element:
            text = (
                f"{self._transactions[number]} read {shown(element)} as the last element of {shown(one.key)},"
                f" from the middle of: {self._transactions[writer]}"
            )
            self.flaws.append(Flaw("G1b", one.key, (writer, number), text))

    def _compare(self, number: int, one: List, elements: Elements) -> None:
        """Compare a read with the longest one so far."""
        short, long = sorted((elements, one.order), key=len)
        if long[: len(short)] != short:
            text = (
                f"{self._transactions[number]} does not agree on the order of {shown(one.key)}"
                f" with: {self._transactions[one.longest]}"
            )
            self.flaws.append(Flaw("incompatible-order", one.key, (one.longest, number), text))
            one.sound = False
        if one.longest < 0 or len(elements) > len(one.order):
            self._judge_elements(number, one, elements, len(one.order) if one.sound else 0)
            one.order, one.longest = elements, number

    def _judge_elements(self, number: int, one: List, elements: Elements, start: int) -> None:
        """Whether elements that are read for the first time may be there."""
        if len(set(elements)) < len(elements):
            text = f"{self._transactions[number]} read an element of {shown(one.key)} twice"
            self._tell(Flaw("duplicate-elements", one.key, (number,), text), one)
        for element in elements[start:]:
            writer = one.appended.get(element)
            if writer is None:
                text = f"{self._transactions[number]} read {shown(element)}, which nobody appended"
                self._tell(Flaw("garbage-read", one.key, (number,), text), one)
            elif self._transactions[writer].fate is Fate.ABORTED:
                text = (
                    f"{self._transactions[number]} read {shown(element)} of {shown(one.key)}, which a"
                    f" transaction appended that was aborted: {self._transactions[writer]}"
                )
                self.flaws.append(Flaw("G1a", one.key, (writer, number), text))

    def _judge_turns(self, one: List) -> None:
        """Whether a transaction's elements are read in the order in which it appended them."""
        places = {element: place for place, element in enumerate(one.order)}
        last: dict[int, int] = {}
        for element, writer in one.appended.items():
            place = places.get(element, len(one.order))
            if place < last.get(writer, -1):
                text = f"{shown(one.key)} was read with the elements in another order than they were appended"
                numbers = (one.longest, writer)
                text = f"{text}: {' and '.join(str(self._transactions[n]) for n in numbers)}"
                return self._tell(Flaw("incompatible-order", one.key, numbers, text), one)
            last[writer] = place
        return None

    def _tell(self, flaw: Flaw, one: List) -> None:
        self.flaws.append(flaw)
        one.sound = False

    def _committed(self) -> list[bool]:
        took = [transaction.fate is Fate.COMMITTED for transaction in self._transactions]
        for one in self._lists.values():
            for element in one.order:
                writer = one.appended.get(element)
                if writer is not None and self._transactions[writer].fate is Fate.UNKNOWN:
                    took[writer] = True
        return took
