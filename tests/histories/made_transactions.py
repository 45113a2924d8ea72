"""Histories of transactions that tests make, by a correct store and by broken ones, and the definition."""

from collections.abc import Callable, Sequence
from itertools import count
from random import Random

from ordercast.judge.histories.transactions import Append, Fate, Read, Transaction

Lists = dict[object, tuple[object, ...]]
Micro = Append | Read


def transaction(
    client: int, invoked: int, answered: int | None, *operations: Micro, fate: Fate = Fate.COMMITTED
) -> Transaction:
    """A transaction; without an answer its fate is unknown."""
    return Transaction(client, invoked, answered, fate if answered is not None else Fate.UNKNOWN, operations)


def executed(lists: Lists, operations: Sequence[Micro]) -> tuple[Micro, ...] | None:
    """Apply a transaction to lists; None if it read something else."""
    for one in operations:
        if isinstance(one, Append):
            lists[one.key] = (*lists.get(one.key, ()), one.element)
        elif one.elements is not None and one.elements != lists.get(one.key, ()):
            return None
    return tuple(operations)


def has_order(transactions: Sequence[Transaction], *, strict: bool) -> bool:
    """The definition: some order of the committed ones, and of any that are unknown, explains all reads."""
    return _extends({}, tuple(one for one in transactions if one.fate is not Fate.ABORTED), strict)


def _extends(lists: Lists, left: tuple[Transaction, ...], strict: bool) -> bool:
    if all(one.fate is Fate.UNKNOWN for one in left):
        return True
    for one in left:
        if any(_before(other, one) and (strict or other.client == one.client) for other in left):
            continue
        after = dict(lists)
        known = one.fate is Fate.COMMITTED
        wanted = one.operations if known else [o for o in one.operations if isinstance(o, Append)]
        rest = tuple(other for other in left if other is not one)
        if executed(after, wanted) is not None and _extends(after, rest, strict):
            return True
    return False


def _before(one: Transaction, other: Transaction) -> bool:
    return one.answered is not None and one.answered < other.invoked


class Store:
    """A store of lists that runs each transaction at one moment, correctly."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now: Lists = {}

    def run(self, operations: Sequence[Micro]) -> tuple[Micro, ...]:
        """Execute a transaction, and say what it read."""
        told: list[Micro] = []
        for one in operations:
            if isinstance(one, Append):
                self.append(one)
                told.append(one)
            else:
                told.append(Read(one.key, self.read(one.key)))
        return tuple(told)

    def append(self, one: Append) -> None:
        """Append an element."""
        self.now[one.key] = (*self.now.get(one.key, ()), one.element)

    def read(self, key: object) -> tuple[object, ...]:
        """Read a list."""
        return self.now.get(key, ())


class Stale(Store):
    """Reads of a transaction are sometimes of an older moment; so they break the order of time, and more."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.old: Lists = {}

    def run(self, operations: Sequence[Micro]) -> tuple[Micro, ...]:
        """Remember an old state now and then."""
        if self.rng.random() < 0.3:
            self.old = dict(self.now)
        self.late = self.rng.random() < 0.4
        self.own: set[object] = set()
        return super().run(operations)

    def append(self, one: Append) -> None:
        """Note what the transaction has of its own."""
        self.own.add(one.key)
        super().append(one)

    def read(self, key: object) -> tuple[object, ...]:
        """Read the old state, but see what the transaction did itself."""
        return self.old.get(key, ()) if self.late and key not in self.own else super().read(key)


class Losing(Store):
    """An append is sometimes lost."""

    def append(self, one: Append) -> None:
        """Append, or forget."""
        if self.rng.random() < 0.85:
            super().append(one)


class Swapping(Store):
    """The last two elements of a list sometimes change places."""

    def append(self, one: Append) -> None:
        """Append before the last element."""
        super().append(one)
        whole = self.now[one.key]
        if len(whole) > 1 and self.rng.random() < 0.2:
            self.now[one.key] = (*whole[:-2], whole[-1], whole[-2])


STORES: tuple[Callable[[Random], Store], ...] = (Store, Stale, Losing, Swapping)


def made(
    seed: int, store: Callable[[Random], Store], *, size: int, clients: int = 3, keys: int = 2
) -> list[Transaction]:
    """A history: each transaction takes effect at a moment between its invocation and its answer."""
    rng, elements = Random(seed), count(1)
    machine, found = store(rng), []
    ready = [0] * clients
    for moment in range(10, 10 * size + 10, 10):
        client = rng.choice([c for c in range(clients) if ready[c] < moment] or [rng.randrange(clients)])
        invoked = rng.randint(ready[client], max(ready[client], moment))
        answered = max(moment, invoked) + rng.randint(1, 25)
        ready[client] = answered + 1
        asked = [
            Append(rng.randrange(keys), next(elements))
            if rng.random() < 0.5
            else Read(rng.randrange(keys), None)
            for _ in range(rng.randint(1, 3))
        ]
        draw = rng.random()
        if draw < 0.08:
            found.append(transaction(client, invoked, answered, *asked, fate=Fate.ABORTED))
        elif draw < 0.16:
            if rng.random() < 0.5:
                machine.run(asked)
            found.append(transaction(client, invoked, None, *asked))
        else:
            found.append(transaction(client, invoked, answered, *machine.run(asked)))
    return found


def as_edn(transactions: Sequence[Transaction]) -> str:
    """A history as Jepsen writes it. Its times must differ."""
    lines: list[tuple[int, int, str]] = []
    for number, one in enumerate(transactions):
        asked = [_micro(o if isinstance(o, Append) else Read(o.key, None)) for o in one.operations]
        lines.append((one.invoked, 1, _entry(number, "invoke", asked)))
        if one.answered is not None:
            word = {Fate.COMMITTED: "ok", Fate.ABORTED: "fail"}[one.fate]
            told = [_micro(o) for o in one.operations] if one.fate is Fate.COMMITTED else asked
            lines.append((one.answered, 0, _entry(number, word, told)))
    return "\n".join(line for _, _, line in sorted(lines)) + "\n"


def _entry(process: int, word: str, operations: Sequence[str]) -> str:
    return f"{{:process {process}, :type :{word}, :f :txn, :value [{' '.join(operations)}]}}"


def _micro(one: Micro) -> str:
    if isinstance(one, Append):
        return f'[:append "{one.key}" {one.element}]'
    return f'[:r "{one.key}" {"nil" if one.elements is None else list(one.elements)}]'
