"""Connects to a replicated service: chooses a host with a client, and starts it from the cluster file."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

import msgspec

from ordercast.core import SECOND, GroupId, HostId, LocalError, Service, ServiceType, Undone
from ordercast.net.api.client import Client
from ordercast.net.api.open_calls import OpenCalls
from ordercast.net.api.program_host import free_first, open_program_host, start_on_free
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.tools.attendance import Attendance

TIMEOUT_S = 10.0

S = TypeVar("S", bound=Service)


class Calling:
    """Runs the host of a client while it is entered; entering it gives the calls."""

    def __init__(
        self,
        file: Path,
        service: type[Service],
        group: str,
        host: HostId | None,
        timeout_s: float | None,
        run: str,
        on_undone: Callable[[Undone], None] | None = None,
    ) -> None:
        self._file = file
        self._service = service
        self._name = group
        self._host = host
        self._timeout_s = timeout_s
        self._run = run
        self._on_undone = on_undone
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> OpenCalls:
        """Start the host of a client."""
        cluster = load_cluster(self._file)
        group = 0 if cluster.plan().shards and not self._name else find_group(cluster, self._name)
        check_service(cluster, self._service, group)
        cluster = msgspec.structs.replace(cluster, deadline_ns=round((self._timeout_s or 0) * SECOND))
        async with AsyncExitStack() as exits:
            calls = await self._start(cluster, group)
            exits.push_async_callback(calls.close)
            await exits.enter_async_context(
                Attendance(calls.host, cluster, lambda: calls.end("the cluster is going down"))
            )
            self._exits = exits.pop_all()
        return calls

    async def _start(self, cluster: Cluster, group: GroupId) -> OpenCalls:
        plan = cluster.plan()
        clients = {plan.nodes[node].host: node for node in reversed(plan.senders)}
        if self._host is not None and self._host not in clients:
            raise LocalError(f"host {self._host} has no client; these have: {', '.join(map(str, clients))}")

        async def start(host: HostId, wait_s: float) -> OpenCalls:
            live = open_program_host(cluster, plan, host, self._run, wait_s)
            calls = OpenCalls(live, clients[host], group, self._timeout_s)
            calls.on_undone = self._on_undone
            await calls.start()
            return calls

        hosts = free_first(cluster, list(clients)) if self._host is None else (self._host,)
        return await start_on_free(hosts, start, "with a client")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for calls under way, and stop the host."""
        await self._exits.aclose()


class Connecting(Generic[S]):
    """What `connect` returns; entering it gives the client."""

    def __init__(self, calling: Calling, service: type[S]) -> None:
        self._calling = calling
        self._service = service

    async def __aenter__(self) -> Client[S]:
        """Start the host of a client."""
        return Client(await self._calling.__aenter__(), self._service)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for calls under way, and stop the host."""
        await self._calling.__aexit__(kind, error, traceback)


def connect(
    file: str | Path,
    service: type[S],
    *,
    group: str = "",
    host: HostId | None = None,
    timeout: float | None = TIMEOUT_S,
    run: str = "",
    on_undone: Callable[[Undone], None] | None = None,
) -> Connecting[S]:
    """Connect to a replicated service as the named host, or as the first host with a client that is free.

    `service` is the class of the service. `group` is needed if the cluster has several. A call that has no
    answer after `timeout` seconds raises `Unknown`; None: calls wait for ever. `run` names the run in traces.
    `on_undone` is called if answers do not hold any more, which only protocols with side branches say.
    """
    if timeout is not None and not 0 < timeout <= 86_400:
        raise LocalError(f"timeout must be more than 0 and at most 86400 seconds, or None, not {timeout:g}")
    return Connecting(Calling(Path(file), service, group, host, timeout, run, on_undone), service)


def check_service(cluster: Cluster, service: type[Service], group: GroupId) -> None:
    """Raise `LocalError` if a group of a cluster does not replicate this service."""
    known, given = cluster.service_spec, ServiceType.of(service)
    if known is None:
        raise LocalError(f"{cluster.file}: the cluster has no service; it orders messages: ordercast.join")
    known = known.part(group)
    if known.fingerprint != given.fingerprint:
        raise LocalError(
            f"{cluster.file}: the cluster replicates another service: [{known.fingerprint}], not"
            f" [{given.fingerprint}]"
        )


def find_group(cluster: Cluster, name: str) -> GroupId:
    """The number of a group; a cluster with only one need not be told its name."""
    names = list(cluster.groups)
    if name in names:
        return names.index(name)
    known = ", ".join(names)
    if name:
        raise LocalError(f"there is no group '{name}'; the groups are: {known}")
    if len(names) > 1:
        raise LocalError(f"the cluster has several groups: name one of {known}")
    return 0
