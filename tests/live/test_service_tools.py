"""`why` and `top` for calls of a service: what waits, what was answered, and what nobody knows."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli.top import columns_of, measure, row_cells
from ordercast.core import message_id
from ordercast.net.api.client import Client
from ordercast.net.cluster.file import load_cluster
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.loop import run
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.tools.client import ControlClient
from ordercast.net.tools.facts import HostFact, NodeFact
from ordercast.net.tools.why import WhyAnswer, why_message
from tests.live.processes import PATIENCE_S
from tests.live.serving import Store, replicas_of, write_service

CALL = message_id(7, 3)
MINE = ((message_id(7, 0), message_id(7, 9)),)


def why(client: NodeFact, *, executed: bool) -> WhyAnswer:
    replica = NodeFact("replica", delivered=MINE if executed else ())
    return why_message(CALL, [HostFact(7, {7: client}), HostFact(0, {0: replica})], {})


def test_an_answered_operation_is_told_with_its_replicas() -> None:
    found = why(NodeFact("client", answered=MINE), executed=True)
    assert found.verdict == "answered"
    assert found.sentence == "operation 7#3 was answered to client 7; it was executed at node 0."


def test_a_read_is_answered_without_being_executed_in_the_order() -> None:
    found = why(NodeFact("client", answered=MINE), executed=False)
    assert found.sentence == "operation 7#3 was answered to client 7."


@pytest.mark.parametrize("executed", [True, False])
def test_an_operation_that_was_given_up_may_have_been_executed(executed: bool) -> None:
    found = why(NodeFact("client", unknown=MINE), executed=executed)
    assert found.verdict == "given-up"
    end = "it was executed at node 0." if executed else "no replica that answers has executed it."
    assert found.sentence == f"client 7 has given operation 7#3 up: no answer came in time; {end}"


async def ask(host: int, file: Path, name: str) -> WhyAnswer:
    """What `why` says, by the facts of the client's host."""

    def facts() -> HostFact:
        with ControlClient(host, load_cluster(file).socket_path(host)) as client:
            return client.explain(message)

    sender, _, number = name.partition("#")
    message = message_id(int(sender), int(number))
    return why_message(message, [await asyncio.to_thread(facts)], {})


def test_a_running_client_tells_what_its_calls_wait_for(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            async with ordercast.connect(file, Store, timeout=1.5) as store:
                call = asyncio.create_task(store.put("a", "1"))
                await asyncio.sleep(0.1)
                waits = await ask(1, file, "1#0")
                assert waits.verdict == "waiting"
                assert "at node 1 (client, host 1) for the answer of the server" in waits.sentence
                with pytest.raises(ordercast.Unknown):
                    await call
                assert (await ask(1, file, "1#0")).verdict == "given-up"
                async with replicas_of(file) as hosts:
                    await store.put("b", "2")
                    assert (await ask(1, file, "1#1")).verdict == "answered"
                    await count(store, hosts)

    run(main())


async def count(store: Client[Store], hosts: list[LiveHost]) -> None:
    """The counters of the client's host, as `top` shows them."""
    before = Metrics().snapshot()
    calls = [store.get("b") for _ in range(20)]
    assert await asyncio.gather(*calls) == ["2"] * 20
    row = measure(1, "client", before, store._calls.host.metrics.snapshot())
    assert row.answered_per_s > 0 and row.unknown == 1
    assert row.waiting <= 1, "it is noted once a second"
    assert row.p50_ns is not None and row.p50_ns > 0
    cells: dict[str, Any] = row_cells(row)
    assert set(columns_of(service=True)) == set(cells)
    assert set(columns_of(service=True)) - set(columns_of(service=False)) == {"answ/s", "waiting", "unknown"}
