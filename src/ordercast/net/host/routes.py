"""Which hosts a message to some nodes goes to."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ordercast.core import HostId, NodeId, Plan
from ordercast.net.links.datagram import DESTINATIONS_MAX, write_destinations
from ordercast.net.metrics.metrics import Metrics

Route: TypeAlias = tuple[tuple[NodeId, ...], tuple[tuple[tuple[HostId, ...], bytes, int], ...]]
"""The nodes of this host, and for the others: hosts, destinations in bytes, and how many they are."""
ROUTES_MAX = 1_000
"""How many routes are remembered; beyond that, all are forgotten and found again."""


NOWHERE: HostId = -1
"""The place of a node that was removed."""


def places_of(plan: Plan) -> list[HostId]:
    """The host of each node, by its id."""
    return [NOWHERE if node.id in plan.removed else node.host for node in plan.nodes]


class Routes:
    """The routes from one host, found once for each set of destinations."""

    def __init__(self, places: Sequence[HostId], host: HostId, metrics: Metrics) -> None:
        self._places = places
        self._host = host
        self._metrics = metrics
        self._found: dict[tuple[NodeId, ...], Route] = {}

    def change(self, places: Sequence[HostId]) -> None:
        """Nodes have come or gone."""
        self._places = places
        self._found.clear()

    def find(self, to: tuple[NodeId, ...]) -> Route:
        """The route to these nodes."""
        route = self._found.get(to)
        if route is None:
            if len(self._found) >= ROUTES_MAX:
                self._found.clear()
            route = self._found[to] = self._make(to)
        return route

    def _make(self, to: tuple[NodeId, ...]) -> Route:
        known = [node for node in to if 0 <= node < len(self._places)]
        if len(known) < len(to):  # a peer has named a node that is not there, and a process believed it
            self._metrics.malformed += 1
        here = tuple(node for node in known if self._places[node] == self._host)
        there = [node for node in known if self._places[node] not in (self._host, NOWHERE)]
        parts = [there[start : start + DESTINATIONS_MAX] for start in range(0, len(there), DESTINATIONS_MAX)]
        return here, tuple((self._hosts(part), write_destinations(part), len(part)) for part in parts)

    def _hosts(self, nodes: Iterable[NodeId]) -> tuple[HostId, ...]:
        return tuple(sorted({self._places[node] for node in nodes}))
