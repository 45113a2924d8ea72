"""ZeroMQ PUB/SUB over TCP with one publisher, the ceiling: nothing here orders messages of two publishers.

The publishing socket is an XPUB, which hears of each subscription, so that nobody misses the first messages.
Its queues have no limit, for the window of the publisher is one. The library itself sends many messages at a
time. Clients that are tasks await `send` of `zmq.asyncio`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.client_tasks import ClientTasks, run_in_loop
from benchmarks.peers.contender import Peer, Ports
from benchmarks.peers.roles import Clients, Flow, Recorder, Shared, pause, wait_until_received
from benchmarks.peers.stage import free_ports

BATCH = 200
POLL_MS = 50
READY_S = 20.0


class ZeroMq(Peer):
    """Receivers subscribe at the publisher; there is no server."""

    name, title = "zeromq", "ZeroMQ PUB/SUB, one publisher"
    packages = (("zmq", "pyzmq"),)

    @contextmanager
    def serve(self, folder: Path, receivers: int) -> Iterator[Ports]:
        """Only a port."""
        yield free_ports(1)

    def receive(self, ports: Ports, recorder: Recorder) -> None:
        """Take all that is there, then wait."""
        subscriber = subscribe(ports)
        recorder.ready()
        while not recorder.finished:
            payloads = take(subscriber)
            if payloads:
                recorder.heard(payloads)

    def publish(self, ports: Ports, flow: Flow, inside: Recorder | None) -> None:
        """Send while the window has room."""
        publisher = bind(ports)
        wait_for_subscribers(publisher, flow.shared)
        flow.begin()
        while not flow.over:
            payloads = flow.take(BATCH)
            for payload in payloads:
                publisher.send(payload)
            if not payloads:
                pause()
        flow.finish()
        for _ in wait_until_received(flow.shared):
            pass

    def run_clients(self, ports: Ports, clients: Clients) -> None:
        """Both sockets in one thread."""
        publisher, subscriber = bind(ports), subscribe(ports)
        clients.recorder.ready()
        wait_for_subscribers(publisher, clients.shared)
        payloads = clients.first()
        while not clients.finished:
            for payload in payloads:
                publisher.send(payload)
            heard = take(subscriber)
            payloads = clients.heard(heard) if heard else []
        for _ in wait_until_received(clients.shared):
            pass

    def run_tasks(self, ports: Ports, clients: ClientTasks) -> None:
        """Both sockets in one event loop."""
        publisher, subscriber = bind(ports), subscribe(ports)
        clients.recorder.ready()
        wait_for_subscribers(publisher, clients.shared)
        run_in_loop(self._run_tasks(publisher, subscriber, clients))
        for _ in wait_until_received(clients.shared):
            pass

    async def _run_tasks(self, publisher: Any, subscriber: Any, clients: ClientTasks) -> None:
        import zmq.asyncio

        sending = zmq.asyncio.Socket.from_socket(publisher)
        await clients.run(sending.send, take_for_tasks(zmq.asyncio.Socket.from_socket(subscriber), clients))


async def take_for_tasks(subscriber: Any, clients: ClientTasks) -> None:
    """Take on and on."""
    while True:
        clients.heard([await subscriber.recv()])


def bind(ports: Ports) -> Any:
    """The publishing socket."""
    import zmq

    publisher: Any = zmq.Context.instance().socket(zmq.XPUB)
    publisher.set(zmq.SNDHWM, 0)
    publisher.set(zmq.XPUB_VERBOSE, 1)  # every subscription is heard of, not only the first to a topic
    publisher.bind(f"tcp://127.0.0.1:{ports[0]}")
    return publisher


def subscribe(ports: Ports) -> Any:
    """A socket that gets everything."""
    import zmq

    subscriber: Any = zmq.Context.instance().socket(zmq.SUB)
    subscriber.set(zmq.RCVHWM, 0)
    subscriber.set(zmq.SUBSCRIBE, b"")
    subscriber.connect(f"tcp://127.0.0.1:{ports[0]}")
    return subscriber


def wait_for_subscribers(publisher: Any, shared: Shared) -> None:
    """Until as many have subscribed as there are receivers."""
    deadline = time.monotonic() + READY_S
    for _ in shared.ready:
        left_ms = max(0, int((deadline - time.monotonic()) * 1e3))
        if not publisher.poll(left_ms):
            raise TimeoutError(f"the receivers had not subscribed after {READY_S:.0f} s")
        publisher.recv()


def take(subscriber: Any) -> list[bytes]:
    """What is there, at most some batches of it; waits a little when there is nothing."""
    import zmq

    payloads: list[bytes] = []
    if not subscriber.poll(POLL_MS):
        return payloads
    receive = subscriber.recv
    try:
        for _ in range(BATCH * 5):
            payloads.append(receive(zmq.NOBLOCK))
    except zmq.Again:
        pass
    return payloads
