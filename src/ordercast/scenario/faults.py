"""Faults as data: each says when it happens and what it does to the hosts and the network of a run."""

from collections.abc import Iterable
from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec

from ordercast.core import MICROSECOND, MILLISECOND, HostId, LocalError, Nanos
from ordercast.scenario.conditions import Conditions

# The upper bounds keep infinity out.
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Step = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class FaultTarget(Protocol):
    """The target of faults: the hosts of a run and the network between them, simulated or real."""

    def crash(self, host_id: HostId) -> None:
        """Stop a host at once; do nothing if it is down."""

    def restart(self, host_id: HostId, *, keep_state: bool = True) -> None:
        """Start a host that is down, with its disk or with an empty one."""

    def pause(self, host_id: HostId, duration: Nanos) -> None:
        """Let a host do nothing for a while."""

    def step_clock(self, host_id: HostId, by_ns: Nanos) -> None:
        """Set a host's clock, forward or back."""

    def strike_disk(self, host_id: HostId, what: "DiskTrouble", duration: Nanos) -> None:
        """Damage what a host has saved, or let its disk fail or be slow for a while."""

    def cut(self, links: Iterable[tuple[HostId, HostId]]) -> None:
        """Cut these links, from one host to another, in addition to those that are cut already."""

    def slow(self, links: Iterable[tuple[HostId, HostId]], by_ns: Nanos) -> None:
        """Let packets on these links take so much longer from now on; 0: as long as before."""

    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""

    def heal(self) -> None:
        """End all cuts, all slowness of links, and all loss, duplication and reordering."""


DiskTrouble: TypeAlias = Literal[
    "flip", "cut", "lost-writes", "wiped", "io-error", "full", "read-only", "slow"
]
"""What may happen to a disk: a bit flips, a file is cut, the last writes are lost, or all of them; or the
disk refuses writes, or is slow, for a while."""
DAMAGES: frozenset[DiskTrouble] = frozenset({"flip", "cut", "lost-writes", "wiped"})
"""What changes the saved state; it is found when the host starts."""


class _Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True):
    at_ms: Milliseconds

    @property
    def at_ns(self) -> Nanos:
        """When the fault happens."""
        return round(self.at_ms * MILLISECOND)

    @property
    def ends_ns(self) -> Nanos:
        """When the direct effect of the fault is over."""
        return self.at_ns


class Crash(_Fault, frozen=True, tag="crash"):
    """A host stops at once."""

    host: HostId

    def strike(self, target: FaultTarget) -> None:
        """Stop it."""
        target.crash(self.host)


class Restart(_Fault, frozen=True, tag="restart"):
    """A crashed host comes back, with its disk or with an empty one."""

    host: HostId
    state: Literal["saved", "lost"] = "saved"

    def strike(self, target: FaultTarget) -> None:
        """Start it again."""
        target.restart(self.host, keep_state=self.state == "saved")


class Pause(_Fault, frozen=True, tag="pause"):
    """A host does nothing for a while."""

    host: HostId
    for_ms: Milliseconds

    @property
    def ends_ns(self) -> Nanos:
        """When the host goes on."""
        return self.at_ns + round(self.for_ms * MILLISECOND)

    def strike(self, target: FaultTarget) -> None:
        """Pause the host."""
        target.pause(self.host, round(self.for_ms * MILLISECOND))


class Sides(_Fault, frozen=True):
    """Something happens to the links between hosts on different sides; hosts on no side have none of it.

    With `one_way`, it happens to the links from the first side to the others.
    """

    sides: tuple[tuple[HostId, ...], ...]
    one_way: bool = False

    def __post_init__(self) -> None:
        named = [host for side in self.sides for host in side]
        if len(self.sides) < 2 or len(set(named)) != len(named):
            kind = self.__struct_config__.tag
            raise LocalError(f"a {kind} must have at least two sides, and no host may be on two of them")

    def links(self) -> list[tuple[HostId, HostId]]:
        """The links between the sides, each as (from, to)."""
        links = []
        for index, side in enumerate(self.sides):
            for other in self.sides[index + 1 :]:
                pairs = [(one, two) for one in side for two in other]
                links += pairs if self.one_way else pairs + [(two, one) for one, two in pairs]
        return links


class Partition(Sides, frozen=True, tag="partition"):
    """Hosts on different sides cannot reach each other; hosts on no side reach everybody.

    With `one_way`, the first side cannot reach the others, but they can reach it.
    """

    def strike(self, target: FaultTarget) -> None:
        """Cut the links, in addition to those that are cut already."""
        target.cut(self.links())


class Delay(Sides, frozen=True, kw_only=True, tag="delay"):
    """Packets between hosts on different sides take longer from now on; 0: as long as before."""

    by_us: Annotated[float, msgspec.Meta(ge=0, le=60e6)]

    def strike(self, target: FaultTarget) -> None:
        """Slow the links down, or end that."""
        target.slow(self.links(), round(self.by_us * MICROSECOND))


class Heal(_Fault, frozen=True, tag="heal"):
    """All partitions and delays end, and the network stops losing, duplicating and reordering packets."""

    def strike(self, target: FaultTarget) -> None:
        """Heal the network."""
        target.heal()


class Weather(_Fault, frozen=True, tag="weather"):
    """The network's loss, duplication and reordering change."""

    conditions: Conditions

    def strike(self, target: FaultTarget) -> None:
        """Change them."""
        target.set_conditions(self.conditions)


class SetClock(_Fault, frozen=True, tag="clock"):
    """A host's clock is stepped, forward or back."""

    host: HostId
    step_us: Step

    def strike(self, target: FaultTarget) -> None:
        """Step it."""
        target.step_clock(self.host, round(self.step_us * MICROSECOND))


class Disk(_Fault, frozen=True, tag="disk"):
    """Something happens to a host's disk."""

    host: HostId
    what: DiskTrouble
    for_ms: Milliseconds = 0.0
    """How long a disk refuses writes or is slow."""

    def __post_init__(self) -> None:
        if (self.what in DAMAGES) != (self.for_ms == 0):
            raise LocalError(
                f"a disk with the trouble {self.what!r} "
                + ("is damaged at once: leave out `for_ms`" if self.what in DAMAGES else "needs `for_ms`")
            )

    @property
    def ends_ns(self) -> Nanos:
        """When the disk works again."""
        return self.at_ns + round(self.for_ms * MILLISECOND)

    def strike(self, target: FaultTarget) -> None:
        """Let it happen."""
        target.strike_disk(self.host, self.what, round(self.for_ms * MILLISECOND))


FaultSpec: TypeAlias = Crash | Restart | Pause | Partition | Delay | Heal | Weather | SetClock | Disk
