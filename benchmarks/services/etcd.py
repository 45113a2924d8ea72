"""etcd with three members, called through its JSON gateway over HTTP/1.1."""

import asyncio
import json
import shutil
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.peers.contender import MeasureError as NoServer
from benchmarks.peers.stage import free_ports, server
from benchmarks.services.contender import REPLICAS, Contender, Figures, MeasureError
from benchmarks.services.load import Connection, drive

MEMORY = Path("/dev/shm")
ELECTED_S = 20.0
T = TypeVar("T")


class Etcd(Contender):
    """Members with their data in the folder of the measurement, or in memory."""

    def __init__(self, *, in_memory: bool) -> None:
        self.name = "etcd_memory" if in_memory else "etcd_disk"
        self._in_memory = in_memory

    def missing(self) -> str:
        """The server, or a file system in memory."""
        if shutil.which("etcd") is None:
            return "no etcd (Debian: apt-get install etcd-server)"
        return f"no {MEMORY}" if self._in_memory and not MEMORY.is_dir() else ""

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run three members; tasks are spread over them."""
        return self.with_members(folder, lambda ports: _measure(ports, tasks, seconds))

    def with_members(self, folder: Path, measure: Callable[[list[int]], Coroutine[Any, Any, T]]) -> T:
        """Run three members, and measure something at their ports."""
        try:
            with self._data(folder) as data, members(data) as ports:
                return asyncio.run(measure(ports))
        except NoServer as error:
            raise MeasureError(str(error)) from error

    @contextmanager
    def _data(self, folder: Path) -> Iterator[Path]:
        if not self._in_memory:
            yield folder
            return
        with tempfile.TemporaryDirectory(prefix="ordercast-etcd-", dir=MEMORY) as memory:
            yield Path(memory)


@contextmanager
def members(folder: Path) -> Iterator[list[int]]:
    """A cluster that runs; gives the ports for clients."""
    ports = free_ports(2 * REPLICAS)
    clients, peers = ports[:REPLICAS], ports[REPLICAS:]
    everybody = ",".join(f"m{index}=http://127.0.0.1:{port}" for index, port in enumerate(peers))
    with ExitStack() as stack:
        for index, (client, peer) in enumerate(zip(clients, peers, strict=True)):
            own = folder / f"m{index}"
            own.mkdir()
            own_url, peer_url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
            command = ["etcd", "--name", f"m{index}", "--data-dir", str(own / "data")]
            command += ["--listen-client-urls", own_url, "--advertise-client-urls", own_url]
            command += ["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url]
            command += ["--initial-cluster", everybody, "--log-level", "error"]
            # A member listens for clients when the others are there: wait for its port among peers.
            stack.enter_context(server(command, peer, own))
        yield clients


async def _measure(ports: list[int], tasks: int, seconds: float) -> Figures:
    turns = count()

    async def connect() -> Connection:
        return await EtcdConnection.open(ports[next(turns) % len(ports)])

    async with asyncio.timeout(ELECTED_S):
        await await_leader(ports[0])
    return await drive(connect, tasks, seconds)


async def await_leader(port: int) -> None:
    """Wait until a member answers."""
    while True:
        try:
            connection = await EtcdConnection.open(port)
            await connection.put("ready", "yes")
            connection.close()
            return
        except (OSError, EOFError, MeasureError):
            await asyncio.sleep(0.1)


class EtcdConnection(Connection):
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "EtcdConnection":
        """Connect to a member."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def put(self, key: str, value: str) -> None:
        """Write; a member that does not lead forwards it."""
        await self.post("put", {"key": to_base64(key), "value": to_base64(value)})

    async def get(self, key: str) -> str | None:
        """Read, linearizable as by default."""
        found = (await self.post("range", {"key": to_base64(key)})).get("kvs")
        return from_base64(found[0]["value"]) if found else None

    async def post(self, what: str, content: dict[str, Any]) -> dict[str, Any]:
        """Call the gateway."""
        body = json.dumps(content).encode()
        head = f"POST /v3/kv/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
        content_read = await self._body(fields)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise MeasureError(f"etcd answers {content_read.decode(errors='replace')[:200]}")
        found: dict[str, Any] = json.loads(content_read)
        return found

    async def _body(self, fields: Mapping[bytes, bytes]) -> bytes:
        """The content of an answer; a long one comes in chunks."""
        if b"content-length" in fields:
            return await self._reader.readexactly(int(fields[b"content-length"]))
        chunks = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            chunks.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readexactly(2)
        return b"".join(chunks)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def to_base64(text: str) -> str:
    """As the gateway wants keys and values."""
    return b64encode(text.encode()).decode()


def from_base64(text: str) -> str:
    """As the gateway gives them."""
    return b64decode(text).decode()
