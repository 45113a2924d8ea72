"""The clock of a live host: the machine's clock, but it never goes back."""

from collections.abc import Callable

from ordercast.core import Nanos


class HostClock:
    """Reads the time for all processes of a host."""

    __slots__ = ("_read", "now")

    def __init__(self, read: Callable[[], Nanos]) -> None:
        self._read = read
        self.now: Nanos = 0
        """The latest reading."""

    def read(self) -> Nanos:
        """The time, never before an earlier reading."""
        now = self._read()
        if now > self.now:
            self.now = now
        return self.now

    def begin(self, first: Callable[[Nanos], Nanos]) -> Nanos:
        """Begin a life; `first` turns the machine's reading into the first one of the host."""
        self.now = first(self._read())
        return self.now
