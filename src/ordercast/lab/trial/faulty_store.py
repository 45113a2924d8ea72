"""A store whose disk refuses writes, or is slow, for a while."""

import time
from collections.abc import Mapping

from ordercast.core import LocalError, Nanos
from ordercast.net.host.check_sum import Key
from ordercast.net.host.store import Store
from ordercast.scenario.faults import DiskTrouble

SLOW_S = 0.005

_REFUSALS: Mapping[DiskTrouble, str] = {
    "io-error": "disk I/O error",
    "full": "database or disk is full",
    "read-only": "attempt to write a readonly database",
}


class FaultyStore(Store):
    """A store that can be made to fail."""

    _trouble: DiskTrouble | None = None
    _until_ns: Nanos = 0

    def trouble(self, what: DiskTrouble, duration: Nanos) -> None:
        """Let the disk refuse writes or be slow from now on, for a while."""
        self._trouble, self._until_ns = what, time.monotonic_ns() + duration

    def commit(self, saves: Mapping[Key, bytes | None]) -> None:
        """Save values, if the disk allows it."""
        if self._trouble is not None and time.monotonic_ns() < self._until_ns:
            if self._trouble in _REFUSALS:
                raise LocalError(f"{self.path}: cannot use the saved state: {_REFUSALS[self._trouble]}")
            time.sleep(SLOW_S)
        super().commit(saves)
