"""Faults as data: each says when it strikes, and what it does to a world."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from ordercast.core import MICROSECOND, MILLISECOND, HostId, LocalError, Nanos
from ordercast.sim.network import Conditions
from ordercast.sim.world import World

# The upper bounds keep infinity out.
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Step = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class _Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True):
    at_ms: Milliseconds

    @property
    def at_ns(self) -> Nanos:
        """When it strikes."""
        return round(self.at_ms * MILLISECOND)

    @property
    def ends_ns(self) -> Nanos:
        """When its direct effect is over."""
        return self.at_ns


class Crash(_Fault, frozen=True, tag="crash"):
    """A host stops at once."""

    host: HostId

    def strike(self, world: World) -> None:
        """Stop it."""
        world.crash(self.host)


class Restart(_Fault, frozen=True, tag="restart"):
    """A crashed host comes back, with its disk or with an empty one."""

    host: HostId
    state: Literal["saved", "lost"] = "saved"

    def strike(self, world: World) -> None:
        """Start it again."""
        world.restart(self.host, keep_state=self.state == "saved")


class Pause(_Fault, frozen=True, tag="pause"):
    """A host stands still for a while."""

    host: HostId
    for_ms: Milliseconds

    @property
    def ends_ns(self) -> Nanos:
        """When it goes on."""
        return self.at_ns + round(self.for_ms * MILLISECOND)

    def strike(self, world: World) -> None:
        """Stop serving."""
        world.pause(self.host, round(self.for_ms * MILLISECOND))


class Partition(_Fault, frozen=True, tag="partition"):
    """Hosts on different sides cannot reach each other; hosts on no side reach everybody.

    One-way: the first side cannot reach the others, but hears them.
    """

    sides: tuple[tuple[HostId, ...], ...]
    one_way: bool = False

    def __post_init__(self) -> None:
        named = [host for side in self.sides for host in side]
        if len(self.sides) < 2 or len(set(named)) != len(named):
            raise LocalError("a partition has two sides or more, and no host on two of them")

    def strike(self, world: World) -> None:
        """Cut the links, in addition to what is cut already."""
        for index, side in enumerate(self.sides):
            for other in self.sides[index + 1 :]:
                for one in side:
                    for two in other:
                        world.network.blocked.add((one, two))
                        if not self.one_way:
                            world.network.blocked.add((two, one))


class Heal(_Fault, frozen=True, tag="heal"):
    """All partitions end, and the network loses, doubles and delays no more."""

    def strike(self, world: World) -> None:
        """Mend the network."""
        world.network.blocked.clear()
        world.network.set_conditions(Conditions())


class Weather(_Fault, frozen=True, tag="weather"):
    """The network's loss, duplication and reordering change."""

    conditions: Conditions

    def strike(self, world: World) -> None:
        """Change them."""
        world.network.set_conditions(self.conditions)


class SetClock(_Fault, frozen=True, tag="clock"):
    """A host's clock is stepped, forward or back."""

    host: HostId
    step_us: Step

    def strike(self, world: World) -> None:
        """Step it."""
        world.step_clock(self.host, round(self.step_us * MICROSECOND))


FaultSpec: TypeAlias = Crash | Restart | Pause | Partition | Heal | Weather | SetClock
