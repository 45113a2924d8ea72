"""Background traffic on the links of a FatTree: packets that only fill the queues.

All servers together send packets as one Poisson process, each from a random server to another. That is the
same as a separate process at every server. Each packet is a flow of its own, so it takes any of the equally
short ways. There may also be bursts: for times of exponential length, servers of all other racks send to the
servers of one rack, at a rate that the links into that rack cannot carry.

Packets go hop by hop through the same queues as all others, one event per hop. Background traffic has its own
random stream, so that nothing else changes without it.
"""

from heapq import heappush
from random import Random

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, LocalError, Nanos
from ordercast.scenario.spec import BackgroundSpec, BurstSpec
from ordercast.sim.fat_tree import FatTree, Way
from ordercast.sim.scheduler import Scheduler


class Background:
    """Sends packets between servers, until its time is over."""

    def __init__(self, scheduler: Scheduler, seed: int, tree: FatTree, spec: BackgroundSpec) -> None:
        self._scheduler = scheduler
        self._rng = Random(f"{seed}/background")
        self._tree = tree
        self._bytes = spec.bytes
        self._locality = spec.locality
        self._until: float = spec.stop_ms * MILLISECOND if spec.stop_ms else float("inf")
        self._heap, self._ties = scheduler.heap, scheduler.ties
        self._on_hop = self._hop  # bound once, not for each hop
        start = round(spec.start_ms * MILLISECOND)
        self._next_at = float(start)
        self._gap_ns = 0.0
        self.sent = 0
        self.lost = 0
        if spec.load > 0:
            bits_per_s = spec.load * sum(link.spec.bits_per_s for link in tree.down)
            self._gap_ns = self._bytes * 8 * SECOND / bits_per_s
            self._await_next()
        if spec.burst is not None:
            bursts = _Bursts(self, scheduler, Random(f"{seed}/bursts"), tree, spec.burst, self._bytes)
            scheduler.at(start, bursts.begin)

    @property
    def over(self) -> bool:
        """Whether no more packets are sent."""
        return self._scheduler.now > self._until

    def _await_next(self) -> None:
        # Not rounded: gaps are a few dozen nanoseconds, and rounding each gap would change the rate.
        self._next_at += self._rng.expovariate(1.0) * self._gap_ns
        if self._next_at <= self._until:
            heappush(self._heap, (int(self._next_at), next(self._ties), self._emit, ()))

    def _emit(self) -> None:
        rng, servers, rack = self._rng, self._tree.sizes.servers, self._tree.sizes.servers_a_rack
        source = int(rng.random() * servers)
        if self._locality and rng.random() < self._locality:
            first = source - source % rack
            target = first + (source - first + 1 + int(rng.random() * (rack - 1))) % rack
        else:
            target = (source + 1 + int(rng.random() * (servers - 1))) % servers
        self.send(source, target, rng)
        self._await_next()

    def send(self, source: int, target: int, rng: Random) -> None:
        """Send a packet from one server to another now, on a way that the generator draws."""
        tree = self._tree
        ways = tree.ways(tree.rack_of(source), tree.rack_of(target))
        self.sent += 1
        self._hop((tree.up[source], *ways[int(rng.random() * len(ways))], tree.down[target]), 0)

    def _hop(self, path: Way, index: int) -> None:
        arrival = path[index].enter(self._scheduler.now, self._bytes)
        index += 1
        if arrival is None:
            self.lost += 1
        elif index < len(path):
            heappush(self._heap, (arrival, next(self._ties), self._on_hop, (path, index)))


class _Bursts:
    """From time to time, servers of all other racks send to the servers of one rack."""

    def __init__(
        self,
        background: Background,
        scheduler: Scheduler,
        rng: Random,
        tree: FatTree,
        spec: BurstSpec,
        packet_bytes: int,
    ) -> None:
        self._background = background
        self._scheduler = scheduler
        self._rng = rng
        size = tree.sizes.servers_a_rack
        first = tree.rack_of_host(spec.host) * size
        self._targets = range(first, first + size)
        self._others = [server for server in range(tree.sizes.servers) if server not in self._targets]
        if not self._others:
            raise LocalError("bursts come from other racks, but there is only one rack")
        self._on_ns, self._off_ns = spec.on_us * MICROSECOND, spec.off_us * MICROSECOND
        self._gap_ns = packet_bytes * 8 / spec.gbps
        self._next_at = 0.0

    def begin(self) -> None:
        """Begin a burst, and draw when it ends and when the next one begins."""
        if self._background.over:
            return
        now = self._scheduler.now
        end = now + round(self._rng.expovariate(1.0) * self._on_ns)
        pause = 1 + round(self._rng.expovariate(1.0) * self._off_ns)
        self._next_at = float(now)
        self._await_next(end)
        self._scheduler.at(end + pause, self.begin)

    def _await_next(self, end: Nanos) -> None:
        self._next_at += self._rng.expovariate(1.0) * self._gap_ns
        if self._next_at <= end:
            self._scheduler.at(int(self._next_at), self._emit, end)

    def _emit(self, end: Nanos) -> None:
        if not self._background.over:
            rng = self._rng
            self._background.send(rng.choice(self._others), rng.choice(self._targets), rng)
            self._await_next(end)
