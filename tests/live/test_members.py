"""Programs that join and leave groups while a cluster runs, and scenarios in which receivers do."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ordercast.core import Joined, Left, LocalError
from ordercast.judge import audit
from ordercast.lab.trial.run import run_live
from ordercast.net.api.group import Group
from ordercast.net.api.join import join
from ordercast.net.api.received import Received
from ordercast.net.cluster.file import load_cluster
from ordercast.net.host.loop import run
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import Kind, events_of
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S

ROUND_NS = 20_000_000


def cluster(folder: Path) -> Path:
    """Two peers of a group, and one that is in no group at the start; all send."""
    top = "senders = 3\ncolocated = true\njoiners = 1\ntrace = false"
    return write_cluster(folder, protocol="epto", receivers=2, top=top, options=f"round_ns = {ROUND_NS}")


async def next_of(group: Group) -> object:
    """The payload of the next message, or the next notice."""
    delivery = await asyncio.wait_for(group.receive(), PATIENCE_S)
    return delivery.payload if isinstance(delivery, Received) else delivery


def test_a_program_joins_a_running_group_and_leaves_it(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with AsyncExitStack() as exits:
            one, other = [await exits.enter_async_context(join(config, "orders", host=h)) for h in (0, 1)]
            await one.send(b"before")
            assert await next_of(one) == b"before" == await next_of(other)
            late = await exits.enter_async_context(join(config, "orders"))
            assert (late.host.host, late.joined) == (2, ("orders",))
            assert isinstance(await next_of(late), Joined)
            await one.send(b"to all")
            assert await next_of(late) == b"to all" == await next_of(one)
            with pytest.raises(LocalError, match="node 2 is in group 0 already"):
                await late.join()
            with pytest.raises(LocalError, match="there is no group 'prices'"):
                await late.join("prices")
            await late.leave()
            assert late.joined == ()
            assert isinstance(await next_of(late), Left)
            with pytest.raises(LocalError, match="node 2 is not in group 0"):
                await late.leave()
            await late.send(b"from outside")
            assert await next_of(one) == b"from outside"
            await late.join()
            assert isinstance(await next_of(late), Joined)

    run(act())


def test_who_waits_for_a_change_is_told_if_the_group_closes(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with join(config, "orders", host=0) as group:
            leaving = asyncio.ensure_future(group.leave())
            await asyncio.sleep(0)
            await group.close()
            with pytest.raises(LocalError, match="closed"):
                await leaving

    run(act())


def test_fixed_groups_stay_as_they_are(tmp_path: Path) -> None:
    config = write_cluster(tmp_path, receivers=2, top="trace = false")

    async def act() -> None:
        async with join(config, "orders", host=0) as group:
            assert group.joined == ("orders",)
            with pytest.raises(LocalError, match="the groups of unordered are fixed"):
                await group.leave()

    run(act())
    config.write_text(config.read_text().replace("trace = false", "joiners = 1"))
    with pytest.raises(LocalError, match="joiners: the groups of unordered are fixed"):
        load_cluster(config)


def test_receivers_join_and_leave_in_a_live_scenario() -> None:
    scenario = Scenario(
        protocol="epto",
        receivers=2,
        joiners=1,
        live_options=True,
        options={"round_ns": ROUND_NS},
        workload=WorkloadSpec(messages=100, rate_per_s=100),
        join=(Join(at_ms=200, node=2), Join(at_ms=700, node=1)),
        leave=(Leave(at_ms=400, node=1), Leave(at_ms=800, node=2)),
        settle_ms=1000,
    )
    ended, _ = run_live(scenario)
    assert ended.violations == [] == audit(ended.description, ended.table).violations
    assert ended.account.complaints == ()
    changes = [event.kind for event in events_of(ended.table) if event.node == 2]
    assert [kind for kind in changes if kind is not Kind.DELIVER] == [
        Kind.JOIN,
        Kind.JOINED,
        Kind.LEAVE,
        Kind.LEFT,
    ]
