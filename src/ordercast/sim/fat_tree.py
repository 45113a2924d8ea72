"""A three-layer FatTree: racks of servers, the pods they form, and cores that join the pods.

Every rack is connected to all aggregation switches of its pod. The cores are divided among the aggregation
switches: the first aggregation switch of each pod has the first cores, and so on. Between racks of two pods
there are as many equally short ways as there are cores. By default the tree has the size of Hydra's simulated
data centre (NSDI 2023, section 7.4): 2,560 servers and 112 switches.

Hosts of a plan take the places of servers; switches of a plan are at the switch of a rack. All other servers
only send and receive background traffic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import TypeAlias

import msgspec

from ordercast.core import HostId, LocalError
from ordercast.sim.links import NONE_NARROW, Link, LinkSpec, Narrow, Topology, Vertex

Way: TypeAlias = tuple[Link, ...]


class FatTreeSizes(msgspec.Struct, frozen=True):
    """The numbers of pods, racks, switches and servers."""

    pods: int = 8
    racks_a_pod: int = 8
    aggregations_a_pod: int = 4
    cores: int = 16
    servers_a_rack: int = 40

    def __post_init__(self) -> None:
        if self.cores % self.aggregations_a_pod:
            raise LocalError(
                f"{self.cores} cores cannot be shared evenly by"
                f" {self.aggregations_a_pod} aggregation switches"
            )

    @property
    def racks(self) -> int:
        """Number of racks in all pods together."""
        return self.pods * self.racks_a_pod

    @property
    def servers(self) -> int:
        """Number of servers in all racks together."""
        return self.racks * self.servers_a_rack

    @property
    def switches(self) -> int:
        """Number of switches in all three layers."""
        return self.racks + self.pods * self.aggregations_a_pod + self.cores


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the hosts of a plan are."""

    servers: Mapping[HostId, int] = field(default_factory=dict)
    """The server of each host; servers are numbered rack by rack."""
    switches: Mapping[HostId, int] = field(default_factory=dict)
    """The rack of each switch."""


def place(sizes: FatTreeSizes, hosts: Sequence[HostId], switches: Sequence[HostId], rng: Random) -> Placement:
    """Spread hosts and switches over pods and racks, in an order that the generator draws."""
    if len(hosts) > sizes.servers:
        raise LocalError(f"{len(hosts)} hosts do not fit on {sizes.servers} servers")
    racks, others = _spread(sizes, rng), _spread(sizes, rng)
    slots = {rack: rng.sample(range(sizes.servers_a_rack), sizes.servers_a_rack) for rack in racks}
    servers = {}
    for index, host in enumerate(hosts):
        rack = racks[index % len(racks)]
        servers[host] = rack * sizes.servers_a_rack + slots[rack].pop()
    return Placement(servers, {host: others[index % len(others)] for index, host in enumerate(switches)})


def _spread(sizes: FatTreeSizes, rng: Random) -> list[int]:
    """All racks, in an order in which consecutive racks are in different pods."""
    pods = rng.sample(range(sizes.pods), sizes.pods)
    drawn = {pod: rng.sample(range(sizes.racks_a_pod), sizes.racks_a_pod) for pod in pods}
    return [pod * sizes.racks_a_pod + drawn[pod][turn] for turn in range(sizes.racks_a_pod) for pod in pods]


class FatTree(Topology):
    """The topology, with fast access to the ways between any two servers."""

    def __init__(
        self,
        sizes: FatTreeSizes,
        placement: Placement,
        edge: LinkSpec,
        fabric: LinkSpec,
        narrow: Narrow = NONE_NARROW,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.placement = placement
        self._ways: dict[tuple[int, int], tuple[Way, ...]] = {}
        self._connect_switches(fabric)
        self._connect_servers(edge, narrow)
        for host, rack in placement.switches.items():
            self.embed(host, rack_name(rack), fabric.queue_bytes, narrow.get(host))

    def _connect_switches(self, fabric: LinkSpec) -> None:
        sizes = self.sizes
        cores_each = sizes.cores // sizes.aggregations_a_pod
        for pod in range(sizes.pods):
            for index in range(sizes.aggregations_a_pod):
                aggregation = f"aggregation{pod * sizes.aggregations_a_pod + index}"
                for rack in range(pod * sizes.racks_a_pod, (pod + 1) * sizes.racks_a_pod):
                    self.connect(rack_name(rack), aggregation, fabric)
                for core in range(index * cores_each, (index + 1) * cores_each):
                    self.connect(aggregation, f"core{core}", fabric)

    def _connect_servers(self, edge: LinkSpec, narrow: Narrow) -> None:
        used = {server: host for host, server in self.placement.servers.items()}
        self.up: list[Link] = []
        """From each server to its rack."""
        self.down: list[Link] = []
        """From the rack to each server."""
        for server in range(self.sizes.servers):
            # Servers without a host get negative numbers, which no host has.
            vertex: Vertex = used.get(server, -1 - server)
            rack = rack_name(self.rack_of(server))
            self.attach(vertex, rack, edge, narrow.get(vertex) if isinstance(vertex, int) else None)
            self.up.append(self.links[vertex, rack])
            self.down.append(self.links[rack, vertex])

    def rack_of(self, server: int) -> int:
        """The rack of a server."""
        return server // self.sizes.servers_a_rack

    def rack_of_host(self, host: HostId) -> int:
        """The rack of a host of the plan, or of a switch of the plan."""
        if host in self.placement.switches:
            return self.placement.switches[host]
        if host not in self.placement.servers:
            raise LocalError(f"there is no host {host}")
        return self.rack_of(self.placement.servers[host])

    def ways(self, source: int, target: int) -> tuple[Way, ...]:
        """All equally short ways from one rack to another, as links; the way to the same rack is empty."""
        key = (source, target)
        if key not in self._ways:
            self._ways[key] = tuple(
                tuple(self.links[pair] for pair in pairwise(vertices))
                for vertices in self._vertices(rack_name(source), rack_name(target))
            )
        return self._ways[key]

    def _vertices(self, here: Vertex, target: Vertex) -> list[list[Vertex]]:
        if here == target:
            return [[here]]
        nearer = self._next_hops(target)[here]
        return [[here, *rest] for hop in nearer for rest in self._vertices(hop, target)]

    def aggregation_links(self) -> dict[tuple[Vertex, Vertex], Link]:
        """All links between racks and aggregation switches, in both directions."""
        return self._links_between("rack", "aggregation")

    def core_links(self) -> dict[tuple[Vertex, Vertex], Link]:
        """All links between aggregation switches and cores, in both directions."""
        return self._links_between("aggregation", "core")

    def _links_between(self, *layers: str) -> dict[tuple[Vertex, Vertex], Link]:
        return {
            ends: link
            for ends, link in self.links.items()
            if sorted(_layer(vertex) for vertex in ends) == sorted(layers)
        }


def rack_name(rack: int) -> str:
    """The name of a rack's switch among the vertices."""
    return f"rack{rack}"


def _layer(vertex: Vertex) -> str:
    return vertex.rstrip("0123456789") if isinstance(vertex, str) else "server"
