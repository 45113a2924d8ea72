"""Protocols of ordercast that run transactions: a cluster of processes, called by `ordercast.connect`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.services.contender import REPLICAS, MeasureError
from benchmarks.transactions.contender import Contender, Figures, Session
from benchmarks.transactions.load import drive
from benchmarks.transactions.store import GENERAL_MOVE, Drawn, Store
from ordercast import connect
from ordercast.catalogue import broken_protocols, protocol_names
from ordercast.core import LocalError, Refused
from ordercast.lab.bench.processes import Processes
from ordercast.lab.bench.service_run import write_cluster
from ordercast.lab.bench.spec import GROUP
from ordercast.net.api.client import Client
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.host.loop import new_event_loop
from ordercast.services import find_service
from ordercast.services.sharded import START

TRANSACTIONAL = ("hydra_txn", "eris", "granola", "lock_store")
SHARDS = 3
STORE = "benchmarks.transactions.store:Store"
ANSWERED_S = 60.0


class Ours(Contender):
    """One protocol, with its options for real machines."""

    def __init__(self, protocol: str, name: str = "", shards: int = SHARDS) -> None:
        self.name = name or protocol
        self._protocol = protocol
        self._shards = shards

    def missing(self) -> str:
        """The protocol."""
        here = self._protocol in protocol_names() and self._protocol not in broken_protocols()
        return "" if here else f"there is no protocol {self._protocol}"

    def measure(self, workload: str, tasks: int, seconds: float, folder: Path) -> Figures:
        """Start the cluster, and be its client."""
        new = NewCluster(
            name=GROUP,
            protocol=self._protocol,
            receivers=REPLICAS,
            groups=self._shards,
            senders=1,
            service=find_service(STORE),
        )
        general = self._protocol in TRANSACTIONAL
        try:
            cluster = write_cluster(new, folder)
            (client,) = {cluster.plan().nodes[node].host for node in cluster.plan().senders}
            with Processes(cluster, folder, {}, absent={client}):
                measuring = _measure(folder, workload, tasks, seconds, general=general)
                with asyncio.Runner(loop_factory=new_event_loop) as runner:
                    return runner.run(measuring)
        except LocalError as error:
            raise MeasureError(str(error)) from error


async def _measure(folder: Path, workload: str, tasks: int, seconds: float, *, general: bool) -> Figures:
    async with connect(folder / "cluster.toml", Store, timeout=ANSWERED_S, run=GROUP) as client:
        await client.call(Store.read, "ready")

        async def open_session() -> Session:
            return OurSession(client, general=general)

        return await drive(open_session, workload, tasks, seconds)


class OurSession(Session):
    """All tasks share a client."""

    def __init__(self, client: Client[Store], *, general: bool) -> None:
        """`general`: there are general transactions."""
        self._client = client
        self._general = general
        self._operations: Mapping[str, Any] = {
            name: getattr(Store, name)
            for name in ("read", "write", "move", "add_user", "follow", "post", "timeline")
        }

    async def run(self, drawn: Drawn) -> int:
        """Call a procedure, or lock, read and write."""
        if drawn.name != GENERAL_MOVE:
            await self._client.call(self._operations[drawn.name], *drawn.arguments)
            return 0
        if not self._general:
            await self._client.call(Store.move, *drawn.arguments)
            return 0
        aborted = 0
        while not await self._move(*drawn.arguments):
            aborted += 1
        return aborted

    async def _move(self, source: str, target: str, amount: int) -> bool:
        try:
            async with self._client.transaction(writes=(source, target)) as held:
                held[source] = held.get(source, START) - amount
                held[target] = held.get(target, START) + amount
        except Refused:
            return False
        return True

    async def total(self, keys: list[str]) -> int:
        """In one transaction."""
        return await self._client.call(Store.total, keys)
