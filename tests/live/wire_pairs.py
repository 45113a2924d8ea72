"""Two hosts whose datagrams a test carries by hand: it can keep, change, repeat and forge them."""

from collections.abc import Callable
from dataclasses import dataclass

from ordercast.core import MILLISECOND, HostId, Nanos, NodeId
from ordercast.net.links.datagram import DATA, write_destinations, write_frame
from ordercast.net.links.keyring import Key, Keyring
from ordercast.net.links.seal import Seal, Sealed, Unsealed
from ordercast.net.links.wire import Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Datagram, Receive, Transport

KEYS = Keyring.of([Key.of(bytes(range(32)))])
OTHER_KEYS = Keyring.of([Key.of(bytes(range(1, 33)))])
HOSTS: tuple[HostId, ...] = (0, 1, 2)


class Mailbox(Transport):
    """Keeps what is sent, until the test takes it out."""

    def __init__(self, datagram_max: int = 1_400) -> None:
        self.datagram_max = datagram_max
        self.sent: list[tuple[HostId, bytes]] = []

    async def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        raise AssertionError("a test calls the wire itself")

    def send(self, host: HostId, datagram: bytes) -> None:
        self.sent.append((host, datagram))

    def add_host(self, host: HostId, address: Address) -> None:
        raise AssertionError("no host comes later")

    def remove_host(self, host: HostId) -> None:
        raise AssertionError("no host is removed")

    def taken(self) -> list[tuple[HostId, bytes]]:
        """All that was sent since the last time."""
        sent, self.sent = self.sent, []
        return sent

    async def close(self) -> None:
        pass


@dataclass
class Read:
    """A message that a host read."""

    host: HostId
    source: NodeId
    destinations: tuple[NodeId, ...]
    body: bytes


class Side:
    """One host: its wire, its mailbox, and what it has read."""

    def __init__(self, host: HostId, seal: Seal, clock: Callable[[], Nanos]) -> None:
        self.host = host
        self.metrics = Metrics()
        self.box = Mailbox()
        self.seal = seal
        self.wire = Wire(host, HOSTS, self.box, seal, self.metrics, window=1 << 20, clock=clock)
        self.reads: list[Read] = []
        self.wire._read = self._on_read

    def _on_read(
        self, host: HostId, source: NodeId, destinations: tuple[NodeId, ...], body: Datagram
    ) -> None:
        self.reads.append(Read(host, source, destinations, bytes(body)))

    def say(self, to: HostId, body: bytes) -> None:
        """Send a message from the node of this host to that of another; nodes have their hosts' numbers."""
        self.wire.outbox.send((to,), self.host, write_destinations((to,)), 1, body)
        self.flush()

    def flush(self) -> None:
        """Let all leave that waits, as a host does at the end of a turn."""
        self.wire.transmit(self.wire.outbox.take())
        self.wire.flush()

    def bodies(self) -> list[bytes]:
        """What was read."""
        return [read.body for read in self.reads]

    def forged(self, counter: int, plain: bytes, flags: int = 0) -> bytes:
        """A datagram as this host could make it, with any bytes for frames."""
        return self.seal.close(flags, counter, plain)


class Net:
    """Hosts that share keys, or none in plaintext, and a clock that stands unless it is moved."""

    def __init__(self, *, sealed: bool = True) -> None:
        self.sealed = sealed
        self.now: Nanos = 0
        self.sides: dict[HostId, Side] = {}
        for host in HOSTS:
            self.restart(host)

    def restart(self, host: HostId, keys: Keyring = KEYS) -> Side:
        """A new life of a host, which remembers nothing of the network."""
        session = new_session()
        seal: Seal = Sealed(host, session, keys) if self.sealed else Unsealed(host, session)
        self.sides[host] = Side(host, seal, lambda: self.now)
        return self.sides[host]

    def carry(self, rounds: int = 10) -> list[tuple[HostId, bytes]]:
        """Carry datagrams to and fro until there are none, or for so many rounds; all that were carried."""
        carried: list[tuple[HostId, bytes]] = []
        for _ in range(rounds):
            under_way = [mail for side in self.sides.values() for mail in side.box.taken()]
            for host, datagram in under_way:
                self.sides[host].wire.on_datagram(datagram)
            carried += under_way
            for side in self.sides.values():
                side.flush()
        return carried

    def meet(self) -> None:
        """Let all hosts prove to each other that they are alive."""
        for side in self.sides.values():
            for other in HOSTS:
                if other != side.host:
                    side.say(other, b"hello")
        self.carry()
        self.now += 50 * MILLISECOND
        for side in self.sides.values():
            assert len(side.reads) == len(HOSTS) - 1
            side.reads.clear()


def data_frame(source: NodeId, to: NodeId, body: bytes) -> bytes:
    """A frame with a message."""
    return write_frame(DATA, source, write_destinations((to,)), 1, body)


def rejected(side: Side) -> dict[str, int]:
    """What a host refused so far, by reason."""
    names = [name for name in side.metrics.counters() if name.startswith("rejected_") or name == "malformed"]
    return {name.removeprefix("rejected_"): count for name in names if (count := getattr(side.metrics, name))}
