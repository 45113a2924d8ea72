"""The built-in services over shards, each with a generator of transactions.

- `ycsb`: YCSB+T (Hydra section 7.3 uses it): single keys are read and written, 1:1. `ycsb_zipf` has a skew.
  `ycsb_two` reads and changes two keys at once, half of the time by general transactions. Its changes move an
  amount from one key to the other: the closed economy, whose sum never changes.
- `retwis`: a small Twitter. 5% add a user, 15% follow one, 30% post, 50% read a timeline.
- `bank`: accounts, transfers of both kinds, and sums over all accounts.
- `list_append`: transactions that append unique numbers to lists, and read lists.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from ordercast.core import Shard, transaction
from ordercast.services.keys import DrawnKeys
from ordercast.services.workload import GENERAL, Drawn, ServiceWorkload, Sum

KEYS = 24
"""How many keys the generators use: few, so that transactions meet."""
SKEW = 0.9
START = 100
"""What a key has in the closed economy before anything was moved."""


class Ycsb(Shard):
    """A table of values."""

    @transaction(reads="key")
    def read(self, key: str) -> Any:
        """The value of a key."""
        return self.get(key)

    @transaction(keys="key")
    def write(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self[key] = value

    @transaction(keys=("source", "target"))
    def move(self, source: str, target: str, amount: int) -> dict[str, int]:
        """Read two keys, and move an amount from one to the other; the result is what they have then."""
        changes = {source: -amount, target: amount}
        for key in self.held:
            self[key] = self.get(key, START) + changes[key]
        return {key: int(self[key]) for key in self.held}


class Bank(Shard):
    """Accounts. Each has some money at first."""

    @transaction(keys=("source", "target"))
    def transfer(self, source: str, target: str, amount: int) -> None:
        """Move money; an account may become negative."""
        changes = {source: -amount, target: amount}
        for account in self.held:
            self[account] = self.get(account, START) + changes[account]

    @transaction(reads="accounts", combine=sum)
    def total(self, accounts: list[str]) -> int:
        """The money on some accounts."""
        return sum(self.get(account, START) for account in self.held)


class Retwis(Shard):
    """Users, whom they follow, and what they post; each kind has keys of its own."""

    @transaction(keys=("user", "followers", "timeline"))
    def add_user(self, user: str, followers: str, timeline: str) -> None:
        """Make a user."""
        for key in self.held:
            self[key] = self.get(key, [])

    @transaction(keys=("followed", "followers"))
    def follow(self, followed: str, followers: str, user: str) -> None:
        """Note on both sides that a user follows another one."""
        for key in self.held:
            self[key] = [*self.get(key, [])[-15:], user]

    @transaction(keys="timelines")
    def post(self, timelines: list[str], text: str) -> None:
        """Put a text on some timelines."""
        for key in self.held:
            self[key] = [*self.get(key, [])[-15:], text]

    @transaction(reads="timelines")
    def timeline(self, timelines: list[str]) -> dict[str, list[str]]:
        """The latest texts of some timelines."""
        return {key: self.get(key, []) for key in self.held}


class ListAppend(Shard):
    """Lists of numbers."""

    @transaction(keys="appends", reads="reads")
    def run(self, appends: dict[str, int], reads: list[str]) -> dict[str, list[int]]:
        """Append a number to some lists, and then read others, and those too."""
        for key in self.held:
            if key in appends:
                self[key] = [*self.get(key, []), appends[key]]
        return {key: self.get(key, []) for key in self.held}


def ycsb(keys: DrawnKeys) -> ServiceWorkload:
    """Reads and writes of single keys; `reads` of the workload is the share of reads."""

    def generate(rng: Random, number: int, reads: bool, size: int) -> Drawn:
        key = keys.draw(rng)
        return ("read", (key,)) if reads else ("write", (key, f"{number:x}".ljust(size, ".")))

    return ServiceWorkload(Ycsb, generate)


def two_keys(keys: DrawnKeys, general: float) -> ServiceWorkload:
    """Two keys are read and changed at once, a share of times by general transactions."""

    def generate(rng: Random, number: int, reads: bool, size: int) -> Drawn:
        pair = keys.draw_some(rng, 2)
        if rng.random() < general:
            return GENERAL, (pair, [])
        return "move", (*pair, rng.randint(1, 9))

    return ServiceWorkload(Ycsb, generate, _move)


def _move(rng: Random, writes: list[str], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a general transaction writes when it has read; one in eight aborts."""
    if rng.random() < 0.125:
        return None
    source, target = writes[0], writes[-1]
    amount = rng.randint(1, 9)
    changes = {source: -amount, target: amount} if source != target else {source: 0}
    return {key: values.get(key, START) + change for key, change in changes.items()}


ACCOUNTS = DrawnKeys(KEYS, name="account")
ALL_ACCOUNTS = [f"account-{number}" for number in range(KEYS)]


def _bank(rng: Random, number: int, reads: bool, size: int) -> Drawn:
    if reads:
        return "total", (ALL_ACCOUNTS,)
    pair = ACCOUNTS.draw_some(rng, 2)
    return (GENERAL, (pair, [])) if rng.random() < 0.3 else ("transfer", (*pair, rng.randint(1, 9)))


def retwis(count: int) -> ServiceWorkload:
    """So many users, all alike."""

    def generate(rng: Random, number: int, reads: bool, size: int) -> Drawn:
        users = [f"{rng.randrange(count)}" for _ in range(10)]
        what = rng.random()
        if what < 0.05:
            return "add_user", tuple(f"{kind}/{users[0]}" for kind in ("user", "followers", "timeline"))
        if what < 0.2:
            return "follow", (f"follows/{users[0]}", f"followers/{users[1]}", users[0])
        timelines = [f"timeline/{user}" for user in users[: rng.randint(1, 5 if what < 0.5 else 10)]]
        if what < 0.5:
            return "post", (timelines, f"{number:x}".ljust(size, "."))
        return "timeline", (timelines,)

    return ServiceWorkload(Retwis, generate)


LISTS = DrawnKeys(8, name="list")


def _list_append(rng: Random, number: int, reads: bool, size: int) -> Drawn:
    keys = LISTS.draw_some(rng, rng.randint(1, 4))
    cut = 0 if reads else rng.randint(1, len(keys))
    return "run", (dict.fromkeys(keys[:cut], number), keys[cut:])


SHARDED = {
    "bank": ServiceWorkload(Bank, _bank, _move, Sum("total", KEYS * START)),
    "list_append": ServiceWorkload(ListAppend, _list_append),
    "retwis": retwis(KEYS),
    "ycsb": ycsb(DrawnKeys(KEYS)),
    "ycsb_two": two_keys(DrawnKeys(KEYS), 0.5),
    "ycsb_zipf": ycsb(DrawnKeys(KEYS, SKEW)),
}
"""The built-in services over shards, by name."""
