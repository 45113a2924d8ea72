"""Two services of which one asks the other: a shop sells what a stock has."""

from random import Random

from ordercast.core import Answer, Refused, Service, ask, continuation, operation, read
from ordercast.services.workload import ServiceWorkload

ITEMS = ("cup", "jug", "pan", "pot")
PIECES = 50
"""How many pieces of each item a stock has at first."""


class Stock(Service):
    """Pieces of items; none is given out twice."""

    def __init__(self) -> None:
        self.pieces = dict.fromkeys(ITEMS, PIECES)

    @operation
    def take(self, item: str, count: int) -> int:
        """Take pieces; return how many are left."""
        if self.pieces.get(item, 0) < count:
            raise Refused(f"there are no {count} pieces of {item}")
        self.pieces[item] -= count
        return self.pieces[item]

    @operation
    def put(self, item: str, count: int) -> int:
        """Put pieces back; return how many there are."""
        self.pieces[item] = self.pieces.get(item, 0) + count
        return self.pieces[item]

    @read
    def left(self, item: str) -> int:
        """How many pieces there are."""
        return self.pieces.get(item, 0)

    @staticmethod
    def generate(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
        """Put a piece back, or take one."""
        item = rng.choice(ITEMS)
        return ("left", (item,)) if reads else (rng.choice(("put", "take")), (item, 1))


class Shop(Service):
    """Sells pieces of a stock, and knows what it has sold."""

    def __init__(self) -> None:
        self.sold = dict.fromkeys(ITEMS, 0)
        self.refused = 0

    @operation
    def buy(self, item: str, count: int) -> int:
        """Take pieces of the stock for a customer; return how many of the item were sold so far."""
        return ask(Stock.take, item, count, then=self.bought, keep=(item, count))

    @continuation
    def bought(self, answer: Answer[int], item: str, count: int) -> int:
        """The stock has given the pieces, or has not."""
        if answer.error is not None:
            self.refused += 1
        answer.result()
        self.sold[item] = self.sold.get(item, 0) + count
        return self.sold[item]

    @operation
    def change(self, old: str, new: str) -> int:
        """Take back one piece, and give another one for it; return how many of the new item were sold."""
        if not self.sold.get(old):
            raise Refused(f"no {old} was sold here")
        self.sold[old] -= 1
        return ask(Stock.take, new, 1, then=self.found, keep=(old, new))

    @continuation
    def found(self, answer: Answer[int], old: str, new: str) -> int:
        """The stock has another piece: give the old one back. If not, it stays sold."""
        if answer.error is not None:
            self.sold[old] += 1
            self.refused += 1
        answer.result()
        self.sold[new] = self.sold.get(new, 0) + 1
        return ask(Stock.put, old, 1, then=self.changed, keep=(new,))

    @continuation
    def changed(self, answer: Answer[int], new: str) -> int:
        """The old piece is back in the stock."""
        answer.result()
        return self.sold[new]

    @operation
    def look(self, item: str) -> int:
        """Ask the stock how many pieces it has."""
        return ask(Stock.left, item, then=self.seen)

    @continuation
    def seen(self, answer: Answer[int]) -> int:
        """The stock has said it."""
        return answer.result()

    @read
    def total(self) -> int:
        """How many pieces were sold."""
        return sum(self.sold.values())

    @staticmethod
    def generate(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
        """Mostly purchases; sometimes a change, or a question."""
        one, other = rng.sample(ITEMS, 2)
        if reads:
            return "total", ()
        what = rng.random()
        if what < 0.7:
            return "buy", (one, 1)
        return ("change", (one, other)) if what < 0.9 else ("look", (one,))


TIERED = {
    "shop": ServiceWorkload(Shop, Shop.generate),
    "stock": ServiceWorkload(Stock, Stock.generate),
}
"""Services for groups that ask each other, by name: `shop, stock`."""
