"""Options of the static hybrid protocol: roles, or what they follow from."""

from typing import Annotated

import msgspec

from ordercast.components.ticketing import Roles, TicketOptions, assign
from ordercast.core import LocalError, Nanos, NodeId

Member = Annotated[int, msgspec.Meta(ge=0)]


class StaticHybridOptions(TicketOptions, frozen=True):
    """Give the roles (`active`), or rates and delays (`rates_per_s` and `delays_ns`), but not both."""

    active: tuple[Member, ...] = ()
    """The active members."""
    sequencers: dict[Member, Member] = msgspec.field(default_factory=dict)
    """The sequencer of each passive member; others take the closest active member."""
    rates_per_s: tuple[float, ...] = ()
    """How many messages each member sends in a second, by node. Roles follow by the heuristic of Figure 2."""
    delays_ns: tuple[tuple[Nanos, ...], ...] = ()
    """The delay from each node to each node, as rows of a matrix."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active and self.rates_per_s:
            raise LocalError("static_hybrid: give either `active` or `rates_per_s` and `delays_ns`, not both")
        if any(not rate > 0 for rate in self.rates_per_s):
            raise LocalError("static_hybrid: rates_per_s must all be positive")
        count = len(self.rates_per_s)
        if len(self.delays_ns) != count or any(len(row) != count for row in self.delays_ns):
            raise LocalError("static_hybrid: delays_ns must have a row and a column for each of rates_per_s")

    def roles(self, members: tuple[NodeId, ...]) -> Roles:
        """The roles of these members; without any option, node 0 is the only active one."""
        if not self.rates_per_s:
            return self._given(members)
        if len(self.rates_per_s) != len(members):
            raise LocalError(
                f"static_hybrid: there are {len(members)} nodes, but {len(self.rates_per_s)} rates_per_s"
            )
        intervals = {node: round(1e9 / self.rates_per_s[node]) for node in members}
        delays = {(one, other): self.delays_ns[one][other] for one in members for other in members}
        found = assign(intervals, delays)
        return Roles(frozenset(found.actives), found.sequencers)

    def _given(self, members: tuple[NodeId, ...]) -> Roles:
        active = self.active or members[:1]
        strangers = [
            node for node in (*active, *self.sequencers, *self.sequencers.values()) if node not in members
        ]
        if strangers:
            raise LocalError(f"static_hybrid: {strangers[0]} is not a node; there are {len(members)} nodes")
        return Roles(frozenset(active), self.sequencers)
