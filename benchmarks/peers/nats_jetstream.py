"""NATS JetStream with a stream in memory, which orders the messages of all publishers.

Messages are published without asking for an acknowledgement each (`publish_async`), which was slower in most
tries: the delivery is one. For the same reason receivers are push consumers that acknowledge nothing, not
ordered consumers; TCP and the stream keep the order. The package has only an asyncio face, so a receiver gets
one callback a message.

Clients that are tasks await `publish` of the JetStream context, which waits for the acknowledgement of the
stream, as its users do who want to know that a message is kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.client_tasks import ClientTasks, run_in_loop
from benchmarks.peers.contender import Peer, Ports
from benchmarks.peers.roles import PAUSE_S, Clients, Flow, Recorder, wait_until_ready
from benchmarks.peers.stage import free_ports, server

STREAM, SUBJECT = "messages", "messages.all"
BATCH = 100
LOOK_S = 0.02


class NatsJetStream(Peer):
    """One stream in one server."""

    name, title = "nats", "NATS JetStream, memory"
    server = "nats-server"
    packages = (("nats", "nats-py"),)
    window = 10_000

    @contextmanager
    def serve(self, folder: Path, receivers: int) -> Iterator[Ports]:
        """One server, with the stream made."""
        (port,) = free_ports(1)
        command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
        with server(command, port, folder):
            asyncio.run(self._make_stream([port]))
            yield [port]

    async def _make_stream(self, ports: Ports) -> None:
        from nats.js.api import StorageType

        client = await connect(ports)
        # What all receivers have had for long is forgotten.
        await client.jetstream().add_stream(
            name=STREAM, subjects=[SUBJECT], storage=StorageType.MEMORY, max_msgs=self.window * 4
        )
        await client.close()

    def receive(self, ports: Ports, recorder: Recorder) -> None:
        """Listen until all is heard."""
        asyncio.run(self._receive(ports, recorder))

    async def _receive(self, ports: Ports, recorder: Recorder) -> None:
        client = await connect(ports)

        async def heard(message: Any) -> None:
            recorder.heard([message.data])

        await consume(client, heard)
        recorder.ready()
        while not recorder.finished:
            await asyncio.sleep(LOOK_S)
        await client.close()

    def publish(self, ports: Ports, flow: Flow, inside: Recorder | None) -> None:
        """Send while the window has room."""
        asyncio.run(self._publish(ports, flow))

    async def _publish(self, ports: Ports, flow: Flow) -> None:
        client = await connect(ports)
        for _ in wait_until_ready(flow.shared):
            await asyncio.sleep(0)
        flow.begin()
        while not flow.over:
            payloads = flow.take(BATCH)
            for payload in payloads:
                await client.publish(SUBJECT, payload)
            await asyncio.sleep(0 if payloads else PAUSE_S)
        await client.flush()
        flow.finish()
        await client.close()

    def run_clients(self, ports: Ports, clients: Clients) -> None:
        """One task for all: a delivery begins the next round."""
        asyncio.run(self._run_clients(ports, clients))

    async def _run_clients(self, ports: Ports, clients: Clients) -> None:
        client = await connect(ports)

        async def heard(message: Any) -> None:
            for payload in clients.heard([message.data]):
                await client.publish(SUBJECT, payload)

        await consume(client, heard)
        clients.recorder.ready()
        for _ in wait_until_ready(clients.shared):
            await asyncio.sleep(0)
        for payload in clients.first():
            await client.publish(SUBJECT, payload)
        while not clients.finished:
            await asyncio.sleep(LOOK_S)
        await client.close()

    def run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        """Each publishes for itself; the callback of the subscription lets them go on."""
        run_in_loop(self._run_tasks(ports, clients))

    async def _run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        client = await connect(ports)
        stream = client.jetstream()

        async def heard(message: Any) -> None:
            clients.heard([message.data])

        async def send(payload: bytes) -> None:
            await stream.publish(SUBJECT, payload)

        await consume(client, heard)
        clients.recorder.ready()
        for _ in wait_until_ready(clients.shared):
            await asyncio.sleep(0)
        await clients.run(send)
        await client.close()


async def connect(ports: Ports) -> Any:
    """A connection to the server."""
    import nats

    return await nats.connect(f"nats://127.0.0.1:{ports[0]}")


async def consume(client: Any, heard: Callable[[Any], Awaitable[None]]) -> None:
    """Have every message of the stream handed over, from the first on."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.ALL)
    await client.jetstream().subscribe(SUBJECT, stream=STREAM, config=config, cb=heard)
