"""The saved state of an active replica: a snapshot, and the calls after it.

The protocol below delivers a message once, over restarts too. So what it has delivered must be saved here
before the next effect of the replica, and executed again after a restart.
"""

from collections.abc import Mapping

import msgspec

from ordercast.components.execution import Executor, unpack_call
from ordercast.core import MALFORMED, Env, LocalError, RemoteError, Stamp


class Journal:
    """Saves what a replica executes."""

    def __init__(self, env: Env, prefix: str, every: int) -> None:
        """The names of what it saves begin with `prefix`. A snapshot replaces the calls after so many."""
        self._env = env
        self._snapshot = f"{prefix}snapshot"
        self._call = f"{prefix}call."
        self._every = every
        self._first = 0
        self._next = 0

    def note(self, call: bytes, stamp: Stamp) -> None:
        """Save a call that is executed next."""
        self._env.save(f"{self._call}{self._next}", msgspec.msgpack.encode((call, stamp.clock, stamp.issuer)))
        self._next += 1

    def prune(self, executor: Executor) -> None:
        """Replace the calls by a snapshot, if there are many."""
        if self._next - self._first >= self._every:
            self.replace(executor)

    def replace(self, executor: Executor) -> None:
        """Save a snapshot instead of what is saved."""
        self._env.save(self._snapshot, executor.snapshot())
        for number in range(self._first, self._next):
            self._env.save(f"{self._call}{number}", None)
        self._first = self._next

    def load(self, saved: Mapping[str, bytes], executor: Executor) -> None:
        """Bring a fresh executor to where the saved state ends."""
        if self._snapshot in saved:
            executor.restore(saved[self._snapshot])
        mine = (name for name in saved if name.startswith(self._call))
        numbers = sorted(int(name.removeprefix(self._call)) for name in mine)
        for number in numbers:
            try:
                call, clock, issuer = msgspec.msgpack.decode(
                    saved[f"{self._call}{number}"], type=tuple[bytes, int, int]
                )
                executor.execute(unpack_call(call), Stamp(clock, issuer))
            except (*MALFORMED, RemoteError) as error:
                raise LocalError(f"a saved call cannot be read: {error}") from error
        if numbers:
            self._first, self._next = numbers[0], numbers[-1] + 1
