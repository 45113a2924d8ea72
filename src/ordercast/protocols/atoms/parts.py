"""Cuts what the store and its nodes tell each other into parts that fit into messages and into its log.

What one group needs is never cut. It grows with its members and with those who send to it, so their number
has a limit.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from ordercast.core import LocalError

PART_BYTES = 512 << 10
PROCESSES_MAX = 50_000
"""Publishers and subscribers: of each, a plan and a report have less than 32 bytes."""

T = TypeVar("T", bound=msgspec.Struct)
_encoder = msgspec.msgpack.Encoder()


def size_of(value: msgspec.Struct) -> int:
    """The bytes of a value."""
    return len(_encoder.encode(value))


def parts(values: Iterable[T], most: int | None = None) -> Iterator[tuple[T, ...]]:
    """Some values in their order, so many in a part that it is small enough, and at least one."""
    part: list[T] = []
    size = 0
    for value in values:
        size += size_of(value)
        if part and (size > PART_BYTES or len(part) == most):
            yield tuple(part)
            part, size = [], size_of(value)
        part.append(value)
    if part:
        yield tuple(part)


def check_processes(subscribers: int, publishers: int) -> None:
    """Refuse a deployment in which what one group needs may not fit into a message."""
    if subscribers + publishers > PROCESSES_MAX:
        raise LocalError(
            f"atoms: there are {subscribers} subscribers and {publishers} publishers;"
            f" the limit is {PROCESSES_MAX} together"
        )
