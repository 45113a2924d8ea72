"""The built-in services, each with a generator of operations."""

from random import Random

from ordercast.core import Refused, Service, operation, read
from ordercast.services.workload import ServiceWorkload

KEYS = 16
"""How many keys the generators use: few, so that operations meet."""


class Echo(Service):
    """Gives back what it gets; it counts, so that it has a state."""

    def __init__(self) -> None:
        self.calls = 0

    @operation
    def echo(self, data: bytes) -> bytes:
        """Give back `data`."""
        self.calls += 1
        return data

    @read
    def count(self) -> int:
        """How many times `echo` was called."""
        return self.calls


class Register(Service):
    """One value."""

    def __init__(self) -> None:
        self.value: int | None = None

    @operation
    def write(self, value: int) -> None:
        """Set the value."""
        self.value = value

    @operation
    def swap(self, expected: int | None, value: int) -> bool:
        """Set the value if it is the expected one; return whether it was."""
        if self.value != expected:
            return False
        self.value = value
        return True

    @read
    def get(self) -> int | None:
        """The value."""
        return self.value


class KeyValue(Service):
    """A map of strings."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    @operation
    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self.data[key] = value

    @operation
    def append(self, key: str, value: str) -> str:
        """Add to the value of a key; return the new value."""
        self.data[key] = self.data.get(key, "") + value
        return self.data[key]

    @operation
    def delete(self, key: str) -> None:
        """Remove a key; refused if it is not there."""
        if key not in self.data:
            raise Refused(f"there is no key {key}")
        del self.data[key]

    @read
    def get(self, key: str) -> str | None:
        """The value of a key."""
        return self.data.get(key)


class Counter(Service):
    """A number that never falls below zero."""

    def __init__(self) -> None:
        self.value = 0

    @operation
    def add(self, amount: int) -> int:
        """Add to the number, and return it; refused if it would become negative."""
        if self.value + amount < 0:
            raise Refused(f"{self.value} is less than {-amount}")
        self.value += amount
        return self.value

    @read
    def get(self) -> int:
        """The number."""
        return self.value


def _echo(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
    return ("count", ()) if reads else ("echo", (number.to_bytes(8, "little")[:size].ljust(size, b"\0"),))


def _register(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
    if reads:
        return "get", ()
    if rng.random() < 0.5:
        return "write", (number,)
    return "swap", (rng.choice((None, *range(max(0, number - 8), number))), number)


def _kv(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
    key = f"key-{rng.randrange(KEYS)}"
    if reads:
        return "get", (key,)
    value = f"{number:x}".ljust(size, ".")
    what = rng.random()
    if what < 0.7:
        return "put", (key, value)
    return ("append", (key, value[:8])) if what < 0.9 else ("delete", (key,))


def _counter(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
    return ("get", ()) if reads else ("add", (rng.randint(-3, 5),))


PLAIN = {
    "counter": ServiceWorkload(Counter, _counter),
    "echo": ServiceWorkload(Echo, _echo),
    "kv": ServiceWorkload(KeyValue, _kv),
    "register": ServiceWorkload(Register, _register),
}
"""The built-in services without shards, by name."""
