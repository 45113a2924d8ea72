"""The clock of a sequencer: any that only runs forward will do (section 4.3.1).

It follows the clock of the host. It is *put forward* for good where others are far ahead of it, or where the
clock of the host was set back and stands still. Otherwise one sequencer whose clock is wrong by an hour would
hold back messages for an hour.
"""

from ordercast.core import Env, NodeId, RemoteError
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX

FORWARD_NS_MAX = CLOCK_AHEAD_MAX // 2
"""No clock is put forward by more: receivers refuse clocks that are a year ahead."""


class StampingClock:
    """The last reading that anybody was told, and how far it is ahead of the host."""

    __slots__ = ("_ahead", "_env", "last")

    def __init__(self, env: Env) -> None:
        self._env = env
        self._ahead = 0
        self.last = 0
        """The last reading."""

    @property
    def now(self) -> int:
        """What it shows, unless a later reading was told already."""
        return self._env.now + self._ahead

    def tick(self) -> int:
        """A new reading, strictly later than the last one."""
        self.last = max(self._env.now + self._ahead, self.last + 1)
        return self.last

    def reach(self, clock: int) -> None:
        """Let the next reading be later than this."""
        self.last = max(self.last, clock)

    def put_forward(self, clock: int) -> None:
        """Go on from this reading, for good."""
        self._ahead = max(self._ahead, clock - self._env.now)
        self.reach(clock)

    def check(self, source: NodeId, clock: int) -> None:
        """Refuse to be put forward beyond all reason."""
        if clock - self._env.now > FORWARD_NS_MAX:
            raise RemoteError(f"node {source} asks for the clock {clock}, which is too far ahead")
