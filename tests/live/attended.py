"""A cluster in this process, with control sockets: real hosts in a loop of their own, beside the commands."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ordercast.core import HostId
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.live_host import LiveHost
from ordercast.net.tools.attendance import Attendance
from tests.live.cluster_files import free_ports, write_cluster

T = TypeVar("T")


class Attended:
    """Three hosts of atomic multicast, a sender beside each receiver, and metrics over HTTP."""

    def __init__(self, folder: Path) -> None:
        (self.metrics_port,) = free_ports(1)
        self.config = write_cluster(
            folder,
            protocol="atomic_multicast",
            receivers=3,
            top="senders = 3\ncolocated = true\ntrace = false",
            more=f"[metrics]\nport = {self.metrics_port}",
        )
        self.cluster = load_cluster(self.config)
        self.hosts: dict[HostId, tuple[LiveHost, Attendance]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something in the hosts' loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def start(self, *hosts: HostId) -> None:
        """Start hosts."""
        for host in hosts:
            self.run(self._start(host))

    def stop(self, *hosts: HostId) -> None:
        """Stop hosts."""
        for host in hosts:
            self.run(self._stop(host))

    async def _start(self, host: HostId) -> None:
        live = open_host(self.cluster, host)
        await live.start()
        attendance = Attendance(live, self.cluster, stop=lambda: None)
        await attendance.__aenter__()
        self.hosts[host] = (live, attendance)

    async def _stop(self, host: HostId) -> None:
        live, attendance = self.hosts.pop(host)
        await attendance.__aexit__()
        await live.stop()
        assert live.failure is None

    @contextmanager
    def running(self) -> Iterator["Attended"]:
        """Run all hosts, and leave nothing behind."""
        loop = self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            self.start(0, 1, 2)
            yield self
        finally:
            self.stop(*list(self.hosts))
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()
