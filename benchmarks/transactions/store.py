"""The store of the measurement as a service over shards, and what the tasks draw."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from benchmarks.services.contender import VALUE_BYTES
from ordercast.core import transaction
from ordercast.services import Operations
from ordercast.services.keys import DrawnKeys
from ordercast.services.sharded import START, Retwis, Ycsb, retwis, two_keys, ycsb
from ordercast.services.workload import GENERAL, ServiceWorkload

KEYS = 1_000
READS = 0.5
PAIRS = DrawnKeys(KEYS, name="pair")
ALL_PAIRS = [f"pair-{number}" for number in range(KEYS)]
WORKLOADS: dict[str, ServiceWorkload] = {
    "ycsb": ycsb(DrawnKeys(KEYS)),
    "two": two_keys(PAIRS, 0.5),
    "retwis": retwis(KEYS),
}
MAIN = "ycsb"
GENERAL_MOVE = "general move"
POSTS_MAX = 16
"""What a timeline and a list of followers keep."""


class Store(Ycsb, Retwis):
    """Values, amounts, and a small Twitter."""

    @transaction(reads="keys", combine=sum)
    def total(self, keys: list[str]) -> int:
        """The sum of some amounts."""
        return sum(self.get(key, START) for key in self.held)


class Drawn(NamedTuple):
    """A transaction of a task."""

    name: str
    """That of a procedure of the store, or a general move."""
    arguments: tuple[Any, ...]


class Draws:
    """The transactions of one task."""

    def __init__(self, workload: str, task: int) -> None:
        self._operations = Operations(WORKLOADS[workload], READS, VALUE_BYTES)
        self._rng = Random(f"{workload}/{task}")
        self._number = 0

    def next(self) -> Drawn:
        """Another transaction."""
        self._number += 1
        name, arguments = self._operations.draw_call(self._rng, self._number)
        if name != GENERAL:
            return Drawn(name, arguments)
        writes = arguments[0]
        assert isinstance(writes, list)
        return Drawn(GENERAL_MOVE, (*writes, self._rng.randint(1, 9)))


class Change(NamedTuple):
    """A transaction as a store without procedures runs it: what it reads, and what it then writes."""

    keys: list[str]
    write: Callable[[Mapping[str, Any]], dict[str, Any]]
    """The new values by those that were read; a key without one is missing."""


def change_of(drawn: Drawn) -> Change:
    """What a transaction that reads and writes does."""
    match drawn:
        case ("move" | "general move", (source, target, amount)):
            moved = {source: -amount, target: amount}
            return Change(
                [*moved], lambda values: {key: values.get(key, START) + by for key, by in moved.items()}
            )
        case ("add_user", keys):
            return Change([*keys], lambda values: {key: values.get(key, []) for key in keys})
        case ("follow", (followed, followers, user)):
            return _noted([followed, followers], user)
        case ("post", (timelines, text)):
            return _noted(timelines, text)
    raise ValueError(f"{drawn.name} is no transaction that reads and writes")


def _noted(keys: list[str], what: str) -> Change:
    kept = POSTS_MAX - 1
    named = [*dict.fromkeys(keys)]
    return Change(named, lambda values: {key: [*values.get(key, [])[-kept:], what] for key in named})
