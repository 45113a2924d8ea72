"""Services on logs, on real hosts: Multi-Paxos and Fast Paxos, durable and in memory."""

import asyncio
from pathlib import Path

import pytest

import ordercast
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.loop import run
from tests.live.processes import PATIENCE_S
from tests.live.serving import Store, replicas_of, write_service


@pytest.mark.parametrize("durable", ["true", "false"])
@pytest.mark.parametrize("protocol", ["multi_paxos", "fast_paxos"])
def test_a_service_survives_one_replica_after_the_other(protocol: str, durable: str, tmp_path: Path) -> None:
    file = write_service(tmp_path, protocol=protocol, replicas=3, options=f"durable = {durable}")

    async def use(first: int) -> None:
        async with ordercast.connect(file, Store) as store:
            keys = range(first, first + 50)
            await asyncio.gather(*(store.call(Store.put, str(key), str(-key)) for key in keys))
            found = await asyncio.gather(*(store.call(Store.get, str(key)) for key in range(first + 50)))
            assert found == [str(-key) for key in range(first + 50)]

    async def main() -> None:
        async with asyncio.timeout(2 * PATIENCE_S), replicas_of(file) as hosts:
            await use(0)
            await hosts[0].stop()  # the leader
            await use(50)
            back = open_host(load_cluster(file), 0)
            await back.start()
            try:
                await use(100)
                await hosts[1].stop()  # replica 0 is needed now, with all that it missed
                await use(150)
            finally:
                await back.stop()

    run(main())
