"""The services of the experiments: one takes large requests, one gives large replies."""

from random import Random

from ordercast.core import Service, operation


class Take(Service):
    """Large requests and short replies."""

    def __init__(self) -> None:
        self.calls = 0

    @operation
    def take(self, data: bytes) -> int:
        """Take some bytes; return how many."""
        self.calls += 1
        return len(data)

    @staticmethod
    def generate(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
        """A request of a size."""
        return "take", (bytes(size),)


class Give(Service):
    """Short requests and large replies."""

    def __init__(self) -> None:
        self.calls = 0

    @operation
    def give(self, size: int) -> bytes:
        """Give so many bytes."""
        self.calls += 1
        return bytes(size)

    @staticmethod
    def generate(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
        """A request for a reply of a size."""
        return "give", (size,)
