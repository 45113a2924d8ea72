"""Redis Streams without persistence, through the connections of the `redis` package.

The publisher has two pipelines of XADD under way. A receiver asks for the next entries (XREAD, blocking) as
soon as it has the last ones, so that the server can answer while it works. That is the most that we could get
out of the package, with the parser of `hiredis`; `redis_calls` has what its everyday calls give.

Clients that are tasks await `xadd` of one `redis.asyncio` client, which gives each a connection of its own
from its pool; one more task reads (`xread`). Pools of 8 and of 24 connections were slower in each of three
rounds.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.client_tasks import ClientTasks, run_in_loop
from benchmarks.peers.contender import Peer, Ports
from benchmarks.peers.roles import Clients, Flow, Recorder, pause, wait_until_ready
from benchmarks.peers.stage import free_ports, server

STREAM = "messages"
BATCH = 1_000
BLOCK_MS = 100
KEPT = 100_000
"""How many messages the stream keeps at least; far more than the window of the publisher."""


class RedisStreams(Peer):
    """One stream that everybody reads."""

    name, title = "redis", "Redis Streams, no persistence"
    server = "redis-server"
    window = 60_000  # the best median of 5,000, 20,000 and 60,000, four noisy rounds in turns
    packages = (("redis", "redis"), ("hiredis", "hiredis"))

    @contextmanager
    def serve(self, folder: Path, receivers: int) -> Iterator[Ports]:
        """One server."""
        (port,) = free_ports(1)
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        with server([*command, "--appendonly", "no", "--dir", str(folder)], port, folder):
            yield [port]

    def receive(self, ports: Ports, recorder: Recorder) -> None:
        """Read from the start of the stream."""
        reader = self.reader(ports)
        recorder.ready()
        while not recorder.finished:
            payloads = reader.read()
            if payloads:
                recorder.heard(payloads)

    def publish(self, ports: Ports, flow: Flow, inside: Recorder | None) -> None:
        """Send a pipeline, then take the answers of the one before."""
        writer = self.writer(ports)
        for _ in wait_until_ready(flow.shared):
            pass
        flow.begin()
        while not flow.over:
            payloads = flow.take(BATCH)
            if payloads:
                writer.add(payloads)
            else:
                writer.settle()
                pause()
        writer.settle()
        flow.finish()

    def run_clients(self, ports: Ports, clients: Clients) -> None:
        """A question is always waiting at the server when messages are added."""
        writer, reader = self.writer(ports), self.reader(ports)
        clients.recorder.ready()
        for _ in wait_until_ready(clients.shared):
            pass
        payloads = clients.first()
        while not clients.finished:
            if payloads:
                writer.add(payloads)
            heard = reader.read()
            payloads = clients.heard(heard) if heard else []
        writer.settle()

    def run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        """Through the asyncio face of the package."""
        run_in_loop(self._run_tasks(ports, clients))

    async def _run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        import redis.asyncio

        async with redis.asyncio.Redis(port=ports[0], protocol=2) as client:
            clients.recorder.ready()
            for _ in wait_until_ready(clients.shared):
                await asyncio.sleep(0)

            async def send(payload: bytes) -> None:
                await client.xadd(STREAM, {"m": payload}, maxlen=KEPT, approximate=True)

            await clients.run(send, read_for_tasks(client, clients))

    def writer(self, ports: Ports) -> "Writer":
        """How messages are added."""
        return Writer(ports)

    def reader(self, ports: Ports) -> "Reader":
        """How the stream is read."""
        return Reader(ports)


async def read_for_tasks(client: Any, clients: ClientTasks) -> None:
    """Read on and on."""
    last: bytes | str = "0"
    while True:
        answer = await client.xread({STREAM: last}, count=BATCH, block=BLOCK_MS)
        if answer:
            entries = answer[0][1]
            last = entries[-1][0]
            clients.heard([fields[b"m"] for _, fields in entries])


def connect(ports: Ports) -> Any:
    """A connection to the server."""
    import redis

    client: Any = redis.Redis(port=ports[0], protocol=2)
    return client.connection_pool.get_connection()


class Writer:
    """Adds messages; at most two pipelines of them are under way."""

    def __init__(self, ports: Ports) -> None:
        self._connection = connect(ports)
        self._awaited = 0

    def add(self, payloads: list[bytes]) -> None:
        """Send a pipeline that adds messages, and forgets those that all receivers have had for long."""
        commands: list[tuple[object, ...]] = [("XADD", STREAM, "*", "m", payload) for payload in payloads]
        commands.append(("XTRIM", STREAM, "MAXLEN", "~", KEPT))
        self._connection.send_packed_command(self._connection.pack_commands(commands))
        self.settle()
        self._awaited = len(commands)

    def settle(self) -> None:
        """Wait for the answers that are still to come; an error among them is raised."""
        for _ in range(self._awaited):
            self._connection.read_response()
        self._awaited = 0


class Reader:
    """Reads the stream; the question for what comes next is always under way."""

    def __init__(self, ports: Ports) -> None:
        self._connection = connect(ports)
        self._last: bytes | str = "0"
        self._ask()

    def _ask(self) -> None:
        self._connection.send_command(
            "XREAD", "COUNT", BATCH, "BLOCK", BLOCK_MS, "STREAMS", STREAM, self._last
        )

    def read(self) -> list[bytes]:
        """The next messages; none when there were none for a while."""
        answer = self._connection.read_response()
        entries = answer[0][1] if answer else []
        if entries:
            self._last = entries[-1][0]
        self._ask()
        return [fields[1] for _, fields in entries]
