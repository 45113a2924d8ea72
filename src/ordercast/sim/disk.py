"""The disk of a simulated host: what it does to saves, and to what was saved.

A host makes sure that what it reads is what it saved. So damage is found when the host starts again, and
never reaches a process (`World.restart`). A save that the disk refuses stops the host at once.
"""

from random import Random

from ordercast.core import MILLISECOND, HostId, Nanos
from ordercast.scenario.faults import DAMAGES, DiskTrouble

SLOW_NS: Nanos = 5 * MILLISECOND
"""How long a save takes on a slow disk."""


class DiskFailed(BaseException):
    """A disk refused a save. No handler catches it: the world stops the host."""

    def __init__(self, host: HostId) -> None:
        super().__init__(host)
        self.host = host


class SimDisk:
    """The disk of one host that something has happened to."""

    __slots__ = ("_fails_until", "_slow_until", "damaged", "damages", "host")

    def __init__(self, host: HostId) -> None:
        self.host = host
        self.damages: list[DiskTrouble] = []
        """What has happened to the saved state since it was last read."""
        self.damaged = False
        """Whether the saved state was found to be damaged."""
        self._fails_until: Nanos = 0
        self._slow_until: Nanos = 0

    def strike(self, what: DiskTrouble, until: Nanos) -> None:
        """Something happens; if it lasts, until this time."""
        if what in DAMAGES:
            self.damages.append(what)
        elif what == "slow":
            self._slow_until = max(self._slow_until, until)
        else:
            self._fails_until = max(self._fails_until, until)

    def read(self) -> list[DiskTrouble]:
        """Read the saved state: what has happened to it since it was last read."""
        found, self.damages = self.damages, []
        self.damaged |= bool(found)  # a host has something saved, even if its nodes have not
        return found

    def empty(self) -> None:
        """Begin again with nothing saved, and so with nothing damaged."""
        self.damages.clear()
        self.damaged = False

    def cost(self, now: Nanos) -> Nanos:
        """How much longer a save takes now; `DiskFailed` if it is refused."""
        if now < self._fails_until:
            raise DiskFailed(self.host)
        return SLOW_NS if now < self._slow_until else 0


def damage(
    saved: dict[str, bytes], last: tuple[str, bytes | None] | None, what: DiskTrouble, rng: Random
) -> None:
    """Damage what a node saved, whose last save had this name and replaced this state."""
    name = rng.choice(sorted(saved)) if saved else ""
    if what == "wiped":
        saved.clear()
    elif what == "flip" and saved.get(name):
        content = bytearray(saved[name])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        saved[name] = bytes(content)
    elif what == "cut":
        saved.pop(name, None)
    elif what == "lost-writes" and last is not None:
        _undo(saved, *last)


def _undo(saved: dict[str, bytes], name: str, old: bytes | None) -> None:
    if old is None:
        saved.pop(name, None)
    else:
        saved[name] = old
