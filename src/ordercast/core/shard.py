"""Shards as users write them: the keys of one group, and the transactions that run on them.

    class Bank(Shard):
        @transaction(keys=("source", "target"))
        def transfer(self, source: str, target: str, amount: int) -> None:
            for key, change in ((source, -amount), (target, amount)):
                if self.holds(key):
                    self[key] = self.get(key, 0) + change

A stable hash maps keys to shards (`shard_of`). A transaction names its keys by its parameters, and runs once
in each shard that holds one of them, on those that the shard holds: it is independent of what the
others hold.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar
from zlib import crc32

import msgspec

from ordercast.core.errors import LocalError, OrdercastError
from ordercast.core.ids import GroupId
from ordercast.core.operation_type import MARK
from ordercast.core.service_class import Service, ServiceType

if TYPE_CHECKING:
    from ordercast.core.open_transaction import Transaction

P = ParamSpec("P")
R = TypeVar("R")

DECLARED = "__ordercast_keys__"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def shard_of(key: str, shards: int) -> GroupId:
    """The shard that holds a key: CRC-32 (that of zlib) of its UTF-8 bytes, modulo the number of shards.

    It never changes, because a cluster would not find its keys again.
    """
    return crc32(key.encode()) % shards


class WrongKey(OrdercastError):
    """Raised in a transaction that touches a key which it did not name, or which another shard holds."""


class Keys(NamedTuple):
    """The keys that a transaction names, each once."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]
    """Those that it does not change."""

    @property
    def all(self) -> tuple[str, ...]:
        """The keys of both kinds."""
        return self.writes + self.reads

    @classmethod
    def of(cls, writes: Sequence[str], reads: Sequence[str]) -> "Keys":
        """The keys of two lists, each once; a key in both is written."""
        first = dict.fromkeys(writes)
        return cls(tuple(first), tuple(key for key in dict.fromkeys(reads) if key not in first))

    def within(self, shard: GroupId, shards: int) -> "Keys":
        """Those that a shard holds."""
        if shards == 1:
            return self
        writes = tuple(key for key in self.writes if shard_of(key, shards) == shard)
        return Keys(writes, tuple(key for key in self.reads if shard_of(key, shards) == shard))

    def excludes(self, other: "Keys") -> bool:
        """Whether one may change a key that the other names."""
        mine = not set(self.writes).isdisjoint(other.all)
        return mine or not set(other.writes).isdisjoint(self.reads)


class Declaration(NamedTuple):
    """What the decorator of a transaction says."""

    keys: tuple[str, ...]
    """The parameters that hold keys which the transaction may change."""
    reads: tuple[str, ...]
    """Those whose keys it only reads."""
    combine: Callable[[list[Any]], Any] | None


def transaction(
    *,
    keys: str | Sequence[str] = (),
    reads: str | Sequence[str] = (),
    combine: Callable[[list[Any]], Any] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a method of a `Shard` as a transaction on the keys in some of its parameters.

    `keys` names the parameters whose keys it may change, `reads` those whose keys it only reads. Such a
    parameter is text, or a list, tuple, set or dictionary of texts. `combine` makes one result of those of
    several shards, which it gets in the order of the shards. Without it, dictionaries are merged, and lists
    put end to end.
    """
    declared = Declaration(_names(keys), _names(reads), combine)
    if not declared.keys and not declared.reads:
        raise LocalError("a transaction must name the parameters that hold its keys: @transaction(keys=...)")

    def mark(method: Callable[P, R]) -> Callable[P, R]:
        setattr(method, MARK, "transaction")
        setattr(method, DECLARED, declared)
        return method

    return mark


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


class Scope:
    """The keys of one transaction in one shard. What it writes is kept apart until it has ended."""

    __slots__ = ("_data", "_here", "_named", "fault", "written")

    def __init__(self, data: dict[str, bytes], named: Keys, here: Keys) -> None:
        self._data = data
        self._named = named
        self._here = here
        self.written: dict[str, bytes | None] = {}
        """New values as bytes; None if a key is removed."""
        self.fault = ""
        """The first wrong key. The transaction fails of it, also if it catches the exception."""

    @property
    def held(self) -> tuple[str, ...]:
        """The named keys that this shard holds."""
        return self._here.all

    def holds(self, key: str) -> bool:
        """Whether this shard holds a key that the transaction named."""
        here = self._here
        if key in here.writes or key in here.reads:
            return True
        if key not in self._named.writes and key not in self._named.reads:
            raise self._wrong(f"the transaction touches the key {key!r}, which it did not name")
        return False

    def load(self, key: str) -> bytes | None:
        """The value of a key; None if it has none."""
        self._own(key)
        return self.written[key] if key in self.written else self._data.get(key)

    def store(self, key: str, value: bytes | None) -> None:
        """Change a key."""
        self._own(key)
        if key not in self._here.writes:
            raise self._wrong(f"the transaction changes the key {key!r}, which it named as one that it reads")
        self.written[key] = value

    def _own(self, key: str) -> None:
        if not self.holds(key):
            raise self._wrong(f"another shard holds the key {key!r}; ask self.holds(key) before")

    def _wrong(self, text: str) -> WrongKey:
        self.fault = self.fault or text
        return WrongKey(text)


class Shard(Service):
    """Base of stores in shards: a map of the keys that one shard holds, for the running transaction.

    Values are msgpack data. To change one, assign it: a value that was read is a copy. A shard has no other
    state, so attributes cannot be set.
    """

    _scope: Scope

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse what no snapshot would have."""
        if name not in ("context", "_scope"):
            raise LocalError(f"a shard has no state but its keys; self.{name} cannot be set")
        object.__setattr__(self, name, value)

    @property
    def held(self) -> tuple[str, ...]:
        """The keys of the transaction that this shard holds."""
        return self._scope.held

    def holds(self, key: str) -> bool:
        """Whether this shard holds a key of the transaction. Another one does if not."""
        return self._scope.holds(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key that this shard holds."""
        value = self._scope.load(key)
        return default if value is None else _decode(value)

    def __contains__(self, key: str) -> bool:
        """Whether a key that this shard holds has a value."""
        return self._scope.load(key) is not None

    def __getitem__(self, key: str) -> Any:
        """The value of a key that this shard holds; KeyError if it has none."""
        value = self._scope.load(key)
        if value is None:
            raise KeyError(key)
        return _decode(value)

    def __setitem__(self, key: str, value: object) -> None:
        """Set the value of a key that this shard holds."""
        self._scope.store(key, _encode(value))

    def __delitem__(self, key: str) -> None:
        """Remove a key that this shard holds; KeyError if it has no value."""
        if self._scope.load(key) is None:
            raise KeyError(key)
        self._scope.store(key, None)

    def transaction(
        self, writes: Sequence[str] = (), reads: Sequence[str] = ()
    ) -> "AbstractContextManager[Transaction, bool]":
        """A general transaction of a program that uses `connect_sync`: entered with ``with``, it locks and
        reads all of its keys at once. Leaving the block commits it; an exception aborts it.

            with bank.transaction(writes=("alice", "bob")) as t:
                if t["alice"] < 30:
                    raise ordercast.Abort
                t["alice"] -= 30
                t["bob"] += 30
        """
        raise LocalError("a shard runs general transactions; only a program that is connected makes one")

    @classmethod
    def _describe(cls) -> ServiceType:
        from ordercast.core.shard_type import ShardType  # it describes this class

        return ShardType(cls)
