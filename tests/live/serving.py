"""Clusters with a service, in one process: their replicas run in the loop of the test."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import ordercast
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.live_host import LiveHost
from tests.live.cluster_files import write_cluster
from tests.live.live_lab import run
from tests.live.processes import PATIENCE_S

STORE = '''\
"""A service of the tests."""

import ordercast


class Store(ordercast.Service):
    """A map of strings."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    @ordercast.operation
    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self.data[key] = value

    @ordercast.operation
    def take(self, key: str, amount: int = 1) -> int:
        """Take from a number; refused if there is too little."""
        left = int(self.data[key]) - amount
        if left < 0:
            raise ordercast.Refused(f"{key} has only {self.data[key]}")
        self.data[key] = str(left)
        return left

    @ordercast.read
    def get(self, key: str) -> str | None:
        """The value of a key."""
        return self.data.get(key)
'''


class Store(ordercast.Service):
    """The same service, as a program that has it too sees it."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    @ordercast.operation
    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self.data[key] = value

    @ordercast.operation
    def take(self, key: str, amount: int = 1) -> int:
        """Take from a number; refused if there is too little."""
        raise NotImplementedError

    @ordercast.read
    def get(self, key: str) -> str | None:
        """The value of a key."""
        return self.data.get(key)


def write_service(
    folder: Path,
    *,
    protocol: str = "unreplicated",
    replicas: int = 1,
    clients: int = 1,
    options: str = "",
    top: str = "",
    others: int = 0,
) -> Path:
    """A cluster file with a service beside it: hosts with replicas, with clients, and so many others."""
    (folder / "store.py").write_text(STORE)
    hosts = tuple(range(replicas + clients + others))
    return write_cluster(
        folder,
        protocol=protocol,
        receivers=replicas,
        top=f'service = "store:Store"\nclients = {clients}\n{top}',
        options=options,
        hosts=hosts,
        spares=hosts[replicas : replicas + clients],
    )


@asynccontextmanager
async def replicas_of(file: Path) -> AsyncIterator[list[LiveHost]]:
    """The hosts of a cluster that are not left to programs, running."""
    cluster = load_cluster(file)
    async with AsyncExitStack() as exits:
        hosts = []
        for spec in cluster.hosts:
            if spec.start:
                host = open_host(cluster, spec.id)
                await host.start()
                exits.push_async_callback(host.stop)
                hosts.append(host)
        yield hosts


@contextmanager
def replicas_in_thread(file: Path) -> Iterator[None]:
    """The same in a thread of their own, for tests that use no asyncio."""
    done, running = threading.Event(), threading.Event()

    async def replicas() -> None:
        async with replicas_of(file):
            running.set()
            while not done.is_set():
                await asyncio.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        thread = pool.submit(lambda: run(replicas()))
        thread.add_done_callback(lambda _: running.set())  # if they cannot start, nobody waits for them
        try:
            assert running.wait(PATIENCE_S)
            if not thread.done():
                yield
        finally:
            done.set()
            thread.result()
