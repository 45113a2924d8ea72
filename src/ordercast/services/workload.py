"""Operations for a service, drawn at random: for simulations, benchmarks and trials."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ordercast.core import Groups, MessageId, OrdercastError, Service, ServiceType, ShardType, shard_of
from ordercast.core.general import Prepare, pack_abort, pack_commit, pack_prepare, read_general, unpack_values

GENERAL = "*general"
"""In the place of the name of an operation: a general transaction, which locks its keys. Its arguments are
the keys to write, and those to read."""


class DrawnOperation(NamedTuple):
    """One operation as bytes."""

    payload: bytes
    read: bool
    groups: Groups | None = None
    """The groups that it goes to; None if whoever submits it chooses."""


Drawn: TypeAlias = tuple[str, tuple[object, ...]]
"""The name of an operation and its arguments."""
Generate = Callable[[Random, int, bool, int], Drawn]
"""Draws an operation: from a stream of random numbers, its own number, whether it reads, and how many bytes a
value should have."""
Continue = Callable[[Random, list[str], Mapping[str, Any]], dict[str, Any] | None]
"""What a general transaction writes, by the keys that it may write and the values that it has read; None: it
aborts."""


class Sum(NamedTuple):
    """An operation that adds up everything, and what it must always come to."""

    operation: str
    total: int


class ServiceWorkload(NamedTuple):
    """A class of services, and how its operations are drawn."""

    service: type[Service]
    generate: Generate
    proceed: Continue | None = None
    """How general transactions go on, if there are any."""
    sum: Sum | None = None
    """What no operation changes, if there is anything."""


class Operations:
    """Draws the operations of a workload."""

    def __init__(
        self,
        workload: ServiceWorkload,
        reads: float,
        size: int,
        shards: int = 0,
        groups: Groups | None = None,
    ) -> None:
        """`reads` is the share of reads, `size` the bytes of a value. `shards`: how many there are; 0 if
        whoever submits an operation chooses its group, unless it goes to `groups`."""
        self._type = ServiceType.of(workload.service)
        self._workload = workload
        self._reads = reads
        self._size = size
        self._shards = shards
        self._groups = groups

    def draw_call(self, rng: Random, number: int) -> Drawn:
        """The name of an operation, and its arguments."""
        return self._workload.generate(rng, number, rng.random() < self._reads, self._size)

    def draw(self, rng: Random, number: int) -> DrawnOperation:
        """An operation."""
        name, arguments = self.draw_call(rng, number)
        if name == GENERAL:
            writes, reads = arguments
            assert isinstance(writes, list) and isinstance(reads, list)
            return self._place(pack_prepare(writes, reads), False)
        kind = self._type.find(name)
        return self._place(kind.pack(arguments, {}), kind.reads)

    def _place(self, payload: bytes, read: bool) -> DrawnOperation:
        if not self._shards or not isinstance(self._type, ShardType):
            return DrawnOperation(payload, read, self._groups)
        return DrawnOperation(payload, read, self._type.groups(payload, self._shards))

    def total(self, operation: bytes, result: bytes) -> int | None:
        """What an operation that adds up everything came to; None if it is another one, or has no answer."""
        wanted = self._workload.sum
        kind = None if wanted is None else self._type.find(wanted.operation)
        if kind is None or not operation.startswith(kind.head):
            return None
        try:
            found = kind.unpack_result(result)
        except OrdercastError:
            return None
        return found if isinstance(found, int) else None

    def proceed(self, message: MessageId, operation: bytes, result: bytes) -> DrawnOperation | None:
        """What a client submits when an operation was answered: the end of a general transaction."""
        if self._workload.proceed is None:
            return None
        prepare = read_general(operation)
        if not isinstance(prepare, Prepare):
            return None
        groups = tuple(sorted({shard_of(key, self._shards or 1) for key in prepare.keys.all}))
        try:
            values = {key: msgspec.msgpack.decode(value) for key, value in unpack_values(result).items()}
            written = self._workload.proceed(Random(message), list(prepare.writes), values)
        except OrdercastError:
            written = None
        end = pack_abort(message, groups) if written is None else pack_commit(message, groups, written)
        return self._place(end, False)
