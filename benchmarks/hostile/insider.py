"""A member that lies: it has the key of the cluster and the place of a host that is not there."""

import asyncio
import time

from benchmarks.hostile.lies import lies_to
from ordercast.core import SECOND, HostId, NodeId
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.links.datagram import write_destinations
from ordercast.net.links.keyring import Keyring
from ordercast.net.links.seal import Sealed
from ordercast.net.links.wire import TICK_NS, Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.udp import UdpTransport
from ordercast.protocols.hydra.messages import Probe

RECORDED = 32
"""True datagrams to each host that are recorded first."""
PAUSE_S = 0.002
WINDOW = 256 << 10


class RecordedTransport(UdpTransport):
    """A transport that remembers the first datagrams to each host."""

    def __init__(self, cluster: Cluster, host: HostId) -> None:
        addresses = {other.id: other.address for other in cluster.hosts}
        super().__init__(host, addresses, cluster.transport.datagram_bytes, cluster.transport.buffer_bytes)
        self.recorded: dict[HostId, list[bytes]] = {other: [] for other in addresses if other != host}

    def send(self, host: HostId, datagram: bytes) -> None:
        """Send it, and remember it."""
        if len(self.recorded[host]) < RECORDED:
            self.recorded[host].append(datagram)
        super().send(host, datagram)


class Insider:
    """The wire of such a member."""

    def __init__(self, cluster: Cluster, host: HostId, keys: Keyring) -> None:
        self._plan = cluster.plan()
        self._node: NodeId = next(node.id for node in self._plan.nodes if node.host == host)
        self._lies = lies_to(self._plan, self._node, time.time_ns())
        self._transport = RecordedTransport(cluster, host)
        self._unheard = Sealed(host, new_session(), keys)
        self._count = 0
        seal = Sealed(host, new_session(), keys)
        self._wire = Wire(host, self._transport.recorded, self._transport, seal, Metrics(), window=WINDOW)

    async def meet(self) -> dict[HostId, list[bytes]]:
        """Say something true to all hosts, until enough is recorded; the recordings by host."""
        await self._wire.start(lambda *_: None, self._wire.flush, lambda: None)
        recorded, hello = self._transport.recorded, self._plan.codec.encode(Probe(1))
        while min(map(len, recorded.values())) < RECORDED:
            for host in recorded:
                self._wire.outbox.send((host,), self._node, b"", 0, hello)
            self.flush()
            await asyncio.sleep(PAUSE_S)
        return recorded

    async def keep_links(self) -> None:
        """Look after the links, as a host does."""
        while True:
            await asyncio.sleep(TICK_NS / SECOND)
            self._wire.tick()

    def lie(self) -> None:
        """Tell the next lie to its target."""
        target, message = next(self._lies)
        host, body = self._plan.nodes[target].host, self._plan.codec.encode(message)
        self._wire.outbox.send((host,), self._node, write_destinations((target,)), 1, body)

    def lie_to_nobody(self) -> bytes:
        """The next lie as a datagram for somebody who does not read."""
        self._count += 1
        return self._unheard.close(0, self._count, self._plan.codec.encode(next(self._lies).message))

    def flush(self) -> None:
        """Let all leave that waits."""
        self._wire.transmit(self._wire.outbox.take())
        self._wire.flush()

    async def close(self) -> None:
        """Hang up."""
        await self._transport.close()
