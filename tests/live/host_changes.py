"""Load and figures for tests in which hosts come to a running cluster and go."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.tools.client import ControlClient
from ordercast.net.transports.address import free_ports
from tests.live.processes import PATIENCE_S


@contextmanager
def load(cluster: Cluster, host: int) -> Iterator[list[int]]:
    """Messages from a host all the time; gives the identities of those that it took."""
    taken: list[int] = []
    stopped = threading.Event()

    def send() -> None:
        with suppress(LocalError), ControlClient(host, cluster.socket_path(host), PATIENCE_S) as client:
            while not stopped.is_set():
                taken.append(client.submit(["orders"], [b"load"]))
                time.sleep(0.01)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield taken
    finally:
        stopped.set()
        thread.join()


def figure(cluster: Cluster, host: int, name: str = "messages_delivered") -> int:
    with ControlClient(host, cluster.socket_path(host), PATIENCE_S) as client:
        return int(client.metrics()[name])


def address() -> str:
    return f"127.0.0.1:{free_ports(1)[0]}"
