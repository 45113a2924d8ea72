"""A replica of 100 MB comes back with an empty disk, and catches up while calls go on."""

import asyncio
import json
from pathlib import Path

import pytest

import ordercast
from ordercast.net.api.client import Client
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.host.loop import run
from tests.live.cluster_files import free_port_range
from tests.live.commands import Said, ended, hosts_shown
from tests.live.serving import STORE, Store

VALUE = "x" * 65_536
VALUES = 1600
TASKS = 16
PATIENCE_S = 120


async def fill(store: Client[Store], first: int) -> None:
    for number in range(first, VALUES, TASKS):
        await store.call(Store.put, f"large-{number}", VALUE)


async def call(store: Client[Store], name: str, done: asyncio.Event) -> int:
    """Write and read until it is enough; returns how often."""
    count = 0
    while not done.is_set():
        await store.call(Store.put, name, str(count))
        assert await store.call(Store.get, name) == str(count)
        count += 1
    return count


async def come_back(cluster: Cluster, said: Said) -> None:
    """Kill a replica, start it without its disk, and wait until it delivers."""

    def has_delivered() -> bool:
        return bool(hosts_shown(cluster, said)[2].get("messages_delivered"))

    await asyncio.to_thread(said, "cluster", "kill", "2")
    await asyncio.to_thread(said, "cluster", "restart", "2", "--as-new")
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(has_delivered):
            await asyncio.sleep(0.5)


async def use(cluster: Cluster, said: Said) -> int:
    """Returns how many calls were made while the replica came back."""
    async with (
        asyncio.timeout(3 * PATIENCE_S),
        ordercast.connect(cluster.file, Store, timeout=60) as store,
    ):
        await asyncio.gather(*(fill(store, first) for first in range(TASKS)))
        done = asyncio.Event()
        calls = [asyncio.create_task(call(store, f"small-{task}", done)) for task in range(8)]
        await come_back(cluster, said)
        done.set()
        return sum(await asyncio.gather(*calls))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("hydra_paxos", ()),
        ("hydra_paxos", ("--option", "durable=true")),
        ("nopaxos", ()),
        ("multi_paxos", ("--option", "durable=false")),
        ("multi_paxos", ()),
    ],
    ids=["hydra_paxos", "hydra_paxos-durable", "nopaxos", "multi_paxos-memory", "multi_paxos"],
)
def test_a_replica_without_its_disk_catches_up_from_100_mb_while_calls_go_on(
    protocol: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    assert len(VALUE) * VALUES > 100_000_000
    monkeypatch.chdir(tmp_path)
    Path("store.py").write_text(STORE)
    port = free_port_range(12)
    said("cluster", "init", "--service", "store:Store", "--protocol", protocol, "--port", port, *options)
    with ended(load_cluster(Path("cluster.toml"))) as cluster:
        said("cluster", "up")
        assert run(use(cluster, said)) > 100, "calls went on"
        said("cluster", "down")
        (trace,) = cluster.traces.iterdir()
        assert json.loads(said("check", trace, "--json"))["violations"] == []
