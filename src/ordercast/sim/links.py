"""A network of links with bandwidth and queues: packets compete, wait, and are dropped."""

import zlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from random import Random
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from ordercast.core import SECOND, HostId, Nanos
from ordercast.scenario.conditions import Conditions
from ordercast.sim.network import Network, Packet
from ordercast.sim.scheduler import Scheduler


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A directed link."""

    bits_per_s: int = 10_000_000_000
    propagation_ns: Nanos = 500
    queue_bytes: int = 512 * 1024


UNLIMITED_BITS_PER_S = 10**15
"""So fast that a packet takes no time, and no packet waits."""


class Link:
    """A link's queue, kept as the time at which it will be empty."""

    __slots__ = (
        "_bits_per_s", "_propagation_ns", "_room_ns", "busy_ns", "bytes", "dropped", "free_at", "spec",
    )  # fmt: skip

    def __init__(self, spec: LinkSpec) -> None:
        self.spec = spec
        self._bits_per_s = spec.bits_per_s
        self._propagation_ns = spec.propagation_ns
        self._room_ns = spec.queue_bytes * 8 * SECOND // spec.bits_per_s
        self.free_at: Nanos = 0
        self.busy_ns: Nanos = 0
        """Time to send all packets that entered the queue."""
        self.bytes = 0
        self.dropped = 0

    def enter(self, now: Nanos, size: int) -> Nanos | None:
        """When a packet that enters now arrives at the other end; None if the queue is full."""
        start = self.free_at
        if start < now:
            start = now
        elif start - now > self._room_ns:
            self.dropped += 1
            return None
        service = size * 8 * SECOND // self._bits_per_s
        self.free_at = start + service
        self.busy_ns += service
        self.bytes += size
        return start + service + self._propagation_ns

    def sent_ns(self, now: Nanos) -> Nanos:
        """How long the link has been sending up to now, without the packets that still wait in the queue."""
        return self.busy_ns - max(0, self.free_at - now)

    def utilisation(self, elapsed_ns: Nanos) -> float:
        """Share of the time since the start in which the link was sending."""
        return self.sent_ns(elapsed_ns) / elapsed_ns if elapsed_ns > 0 else 0.0


Vertex = str | int
"""Hosts are integers, switches are strings."""


class Topology:
    """Vertices and directed links. Packets take shortest paths by hops; a flow picks one of equal paths."""

    def __init__(self) -> None:
        self.links: dict[tuple[Vertex, Vertex], Link] = {}
        self._out: dict[Vertex, list[Vertex]] = {}
        self._next: dict[Vertex, dict[Vertex, list[Vertex]]] = {}

    def connect(self, one: Vertex, other: Vertex, spec: LinkSpec, back: LinkSpec | None = None) -> None:
        """Add a cable: a link in each direction. `back` is the link from `other` to `one`, if it differs."""
        for source, target, own in ((one, other, spec), (other, one, back or spec)):
            self.links[source, target] = Link(own)
            self._out.setdefault(source, []).append(target)
        self._next.clear()

    def attach(self, host: Vertex, switch: Vertex, spec: LinkSpec, narrow: LinkSpec | None = None) -> None:
        """Connect a host to its switch. If the link towards the host is narrow, the link from it has no
        limit.

        This models a switch that sequences: a queue limits its input, and copies leave at line rate.
        """
        if narrow is None:
            self.connect(host, switch, spec)
        else:
            free = LinkSpec(UNLIMITED_BITS_PER_S, spec.propagation_ns, spec.queue_bytes)
            self.connect(host, switch, free, narrow)

    def embed(self, host: Vertex, switch: Vertex, queue_bytes: int, narrow: LinkSpec | None = None) -> None:
        """Put a host inside a switch: there is no cable, only a queue if its rate is limited."""
        towards = None if narrow is None else LinkSpec(narrow.bits_per_s, 0, narrow.queue_bytes)
        self.attach(host, switch, LinkSpec(UNLIMITED_BITS_PER_S, 0, queue_bytes), towards)

    def path(self, source: Vertex, target: Vertex) -> list[Vertex] | None:
        """The vertices on the way. Among equally short ways, a flow always takes the same one (ECMP)."""
        table = self._next_hops(target)
        path, here = [source], source
        while here != target:
            choices = table.get(here)
            if not choices:
                return None
            flow = f"{source}>{target}@{here}".encode()
            here = choices[zlib.crc32(flow) % len(choices)]
            path.append(here)
        return path

    def _next_hops(self, target: Vertex) -> dict[Vertex, list[Vertex]]:
        """For every vertex, the neighbours that are one hop nearer to the target."""
        if target not in self._next:
            hops: dict[Vertex, int] = {target: 0}
            table: dict[Vertex, list[Vertex]] = {}
            frontier = deque([target])
            while frontier:
                here = frontier.popleft()
                for neighbour in self._out.get(here, ()):
                    # Hosts do not forward for others.
                    if neighbour not in hops:
                        hops[neighbour] = hops[here] + 1
                        if isinstance(neighbour, str):
                            frontier.append(neighbour)
                    if hops[neighbour] == hops[here] + 1:
                        table.setdefault(neighbour, []).append(here)
            self._next[target] = table
        return self._next[target]


Narrow: TypeAlias = Mapping[HostId, LinkSpec]
"""The links towards hosts that are rate-limited."""
NONE_NARROW: Narrow = MappingProxyType({})


def star(
    hosts: Iterable[HostId],
    spec: LinkSpec,
    narrow: Narrow = NONE_NARROW,
    inside: Collection[HostId] = (),
) -> Topology:
    """All hosts at one switch. Hosts `inside` it are programs that the switch runs."""
    topology = Topology()
    for host in hosts:
        if host in inside:
            topology.embed(host, "switch", spec.queue_bytes, narrow.get(host))
        else:
            topology.attach(host, "switch", spec, narrow.get(host))
    return topology


def leaf_spine(
    hosts: Iterable[HostId],
    hosts_a_leaf: int,
    spines: int,
    edge: LinkSpec,
    fabric: LinkSpec,
    narrow: Narrow = NONE_NARROW,
) -> Topology:
    """Two tiers: hosts at leaf switches, every leaf connected to every spine."""
    topology = Topology()
    leaves: list[str] = []
    for index, host in enumerate(hosts):
        if index % hosts_a_leaf == 0:
            leaf = f"leaf{len(leaves)}"
            leaves.append(leaf)
            for spine in range(spines):
                topology.connect(leaf, f"spine{spine}", fabric)
        topology.attach(host, leaves[-1], edge, narrow.get(host))
    return topology


class LinkNetwork(Network):
    """Packets go hop by hop. Each hop is an event, so that queues see packets in order of arrival."""

    needs_size = True

    def __init__(self, scheduler: Scheduler, rng: Random, conditions: Conditions, topology: Topology) -> None:
        super().__init__(scheduler, rng, conditions)
        self.topology = topology
        self._paths: dict[tuple[HostId, HostId], list[Link]] = {}

    def steady(self) -> None:
        """Do nothing: packets on the same path never overtake each other."""

    def carry(self, departure: Nanos, packet: Packet) -> bool:
        """Send the packet along its path."""
        path = self._path(packet.link)
        if path is None:
            self.lost += 1
            return False
        self.scheduler.at(departure, self._hop, path, 0, packet)
        return True

    def _path(self, link: tuple[HostId, HostId]) -> list[Link] | None:
        if link not in self._paths:
            vertices = self.topology.path(*link)
            if vertices is None:
                return None
            self._paths[link] = [self.topology.links[pair] for pair in pairwise(vertices)]
        return self._paths[link]

    def _hop(self, path: list[Link], index: int, packet: Packet) -> None:
        arrival = path[index].enter(self.scheduler.now, packet.size)
        if arrival is None:
            self.lost += 1
        elif index + 1 == len(path):
            self.scheduler.push(arrival + packet.service_ns, packet.action, packet.args)
        else:
            self.scheduler.at(arrival, self._hop, path, index + 1, packet)

    def utilisation(self, elapsed_ns: Nanos) -> Mapping[tuple[Vertex, Vertex], float]:
        """The utilisation of every link."""
        return {ends: link.utilisation(elapsed_ns) for ends, link in self.topology.links.items()}
