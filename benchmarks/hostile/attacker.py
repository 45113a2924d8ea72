"""The attacker, in a process of its own: `python -m benchmarks.hostile.attacker FOLDER HOST RATE SHARE`.

Each line on its standard input names the phase that begins. When the input ends, it tells what it has sent.
"""

import asyncio
import contextlib
import socket
import sys
import time
from itertools import cycle, islice
from pathlib import Path

import msgspec

from benchmarks.hostile.datagrams import hostile_datagrams
from benchmarks.hostile.insider import PAUSE_S, Insider
from ordercast.core import HostId
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import KeyFile
from ordercast.net.transports.address import Address

QUIET, DECOY, ATTACK = PHASES = ("quiet", "decoy", "attack")
BURST = 32
"""Datagrams that a host gets at once. If each came alone, what is measured would be how long a machine takes
to wake up a process, which is ten times what it takes a host to refuse a datagram."""
BURSTS_MAX = 64
"""Bursts at once, to make up for what is overdue on a busy machine; sockets have room for so many."""
SEED = 1


class Sent(msgspec.Struct, frozen=True):
    """What an attacker has sent to hosts."""

    datagrams: int
    lies: int


class Attacker:
    """Sends datagrams and lies at a steady rate."""

    def __init__(
        self,
        insider: Insider,
        hostile: dict[HostId, list[bytes]],
        addresses: dict[HostId, Address],
        share: float,
    ) -> None:
        self._insider = insider
        self._hostile = {host: cycle(datagrams) for host, datagrams in hostile.items()}
        self._turns = cycle(hostile)
        self._addresses = addresses
        self._share = share
        """Lies to a datagram."""
        self._owed = 0.0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.bind(("127.0.0.1", 0))
        self.phase = QUIET
        self.datagrams, self.lies = 0, 0

    async def run(self, rate: float) -> None:
        """Send what is due, until the task is cancelled."""
        begun, done, phase = time.monotonic(), 0, self.phase
        while True:
            await asyncio.sleep(PAUSE_S)
            if phase != self.phase:
                begun, done, phase = time.monotonic(), 0, self.phase
            due = int((time.monotonic() - begun) * rate) // BURST - done
            if phase != QUIET:
                for _ in range(min(BURSTS_MAX, due)):
                    (self._attack if phase == ATTACK else self._pretend)(next(self._turns))
                    done += 1

    def _attack(self, host: HostId) -> None:
        lies = self._lies_due()
        for datagram in islice(self._hostile[host], BURST):
            self._socket.sendto(datagram, self._addresses[host])
        for _ in range(lies):
            self._insider.lie()
        self._insider.flush()
        self.datagrams += BURST
        self.lies += lies

    def _pretend(self, host: HostId) -> None:
        """The same, but nobody gets it."""
        sink = self._sink.getsockname()
        for datagram in islice(self._hostile[host], BURST):
            self._socket.sendto(datagram, sink)
        for _ in range(self._lies_due()):
            self._socket.sendto(self._insider.lie_to_nobody(), sink)

    def _lies_due(self) -> int:
        self._owed += BURST * self._share
        due = int(self._owed)
        self._owed -= due
        return due


async def main(folder: Path, host: HostId, rate: float, share: float) -> Sent:
    """Attack as the lines on the standard input say, until they end."""
    cluster = load_cluster(folder / "cluster.toml")
    keys = KeyFile(cluster.security.key_file).keyring
    insider = Insider(cluster, host, keys)
    recorded = await insider.meet()
    addresses = {other.id: other.address for other in cluster.hosts}
    attacker = Attacker(insider, hostile_datagrams(recorded, keys, SEED), addresses, share)
    tasks = [asyncio.create_task(insider.keep_links()), asyncio.create_task(attacker.run(rate))]
    await _follow(attacker)
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await insider.close()
    return Sent(attacker.datagrams, attacker.lies)


async def _follow(attacker: Attacker) -> None:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        attacker.phase = line.decode().strip()


if __name__ == "__main__":
    sent = asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
    print(msgspec.json.encode(sent).decode(), flush=True)
