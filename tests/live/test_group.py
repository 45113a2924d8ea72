"""Live groups as applications and scripts see them: order, limits, failures and a clean end."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import ordercast
from ordercast.core import LocalError, message_sender
from ordercast.net.api.group import Group
from ordercast.net.api.inbox import HARD, SlowConsumer
from ordercast.net.api.join import join
from ordercast.net.api.received import Received
from ordercast.net.api.sync_group import join_sync
from ordercast.net.host.loop import run
from ordercast.net.host.store import HostTaken
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S
from tests.live.wires import until

SOFT = 1 << 20
SLOW_S = 0.5
"""Nobody who can go on takes so long."""


def cluster(folder: Path, protocol: str = "atomic_multicast") -> Path:
    """Three hosts, a sender beside each receiver; `unordered` is faster, for it saves nothing."""
    top = f"senders = 3\ncolocated = true\ntrace = false\ninbox_bytes = {SOFT}"
    return write_cluster(folder, protocol=protocol, receivers=3, top=top)


@asynccontextmanager
async def joined(config: Path, *hosts: int) -> AsyncIterator[list[Group]]:
    """All of these hosts, in this loop."""
    async with AsyncExitStack() as exits:
        yield [await exits.enter_async_context(join(config, "orders", host=host)) for host in hosts]


async def take(group: Group, count: int) -> list[Received]:
    """The next messages of a group."""
    found: list[Received] = []
    while len(found) < count:
        delivery = await asyncio.wait_for(group.receive(), PATIENCE_S)
        assert isinstance(delivery, Received)
        found.append(delivery)
    return found


def test_all_members_take_the_same_messages_in_the_same_order(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with joined(config, 0, 1, 2) as groups:
            sent = {}
            for number in range(60):
                member = groups[number % 3]
                sent[await member.send(b"%d" % number)] = b"%d" % number
            first = await groups[0].send_many([b"x", b"y"])
            sent |= {first: b"x", first + 1: b"y"}
            orders = [await take(group, 62) for group in groups]
            assert orders[0] == orders[1] == orders[2]
            assert {one.message: one.payload for one in orders[0]} == sent
            assert all(one.groups == ("orders",) for one in orders[0])
            assert all(message_sender(one.message) == one.sender for one in orders[0])

    run(act())


def test_receive_may_be_cancelled_at_any_time_and_nothing_is_lost(tmp_path: Path) -> None:
    config = cluster(tmp_path, "unordered")

    async def act() -> None:
        async with joined(config, 0, 1, 2) as groups:
            got: list[bytes] = []

            async def flood() -> None:
                for number in range(400):
                    await groups[0].send(b"%d" % number)
                    await asyncio.sleep(0.002)

            flooding = asyncio.create_task(flood())
            cancelled = 0
            while len(got) < 400:
                waiting = asyncio.create_task(groups[1].receive())
                await asyncio.sleep(0.0002 * (len(got) % 3))
                waiting.cancel()
                (delivery,) = await asyncio.gather(waiting, return_exceptions=True)
                if isinstance(delivery, Received):
                    got.append(delivery.payload)
                else:
                    cancelled += 1
                    assert cancelled < 100_000
            await flooding
            assert got == [b"%d" % number for number in range(400)]
            assert cancelled > 10

    run(act())


def test_an_application_that_takes_nothing_slows_the_senders_down_and_loses_nothing(tmp_path: Path) -> None:
    config = cluster(tmp_path, "unordered")
    body = b"x" * 4_000

    async def act() -> None:
        async with joined(config, 0, 1, 2) as (sender, other, slow):
            taking = [asyncio.create_task(drain(group)) for group in (sender, other)]
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    await sender.send(b"%09d" % sent + body)
                    sent += 1

            async def at_rest() -> int:
                before = -1
                while before != sent:
                    before = sent
                    await asyncio.sleep(SLOW_S)
                return sent

            flooding = asyncio.create_task(flood())
            held_up = await asyncio.wait_for(at_rest(), PATIENCE_S)
            assert held_up > 0 and not flooding.done(), "it waits, and was told of no failure"
            numbers = [int(one.payload[:9]) for one in await take(slow, held_up // 2)]
            assert numbers == list(range(held_up // 2))
            await until(lambda: sent > held_up)
            flooding.cancel()
            rest = [int(one.payload[:9]) for one in await take(slow, sent - held_up // 2)]
            assert rest == list(range(held_up // 2, sent))
            for task in taking:
                task.cancel()

    async def drain(group: Group) -> None:
        while await group.receive_bundle() is not None:
            pass

    run(act())


def test_an_application_beyond_the_hard_limit_is_told_in_receive(tmp_path: Path) -> None:
    config = cluster(tmp_path, "unordered")

    async def act() -> None:
        async with joined(config, 0, 1) as groups:
            groups[0]._inbox._strain = lambda strained: None  # nobody is asked to slow down
            groups[0]._inbox._hard = HARD * groups[0]._inbox._soft
            for _ in range(HARD + 1):
                await groups[1].send_many([b"x" * 10_000] * 100)
                await take(groups[1], 100)
            with pytest.raises(SlowConsumer):
                await take(groups[0], (HARD + 1) * 100)
            assert isinstance(await groups[0].send(b"it can still send"), int)

    run(act())


def test_where_nothing_goes_on_send_waits_and_closing_ends_the_wait(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with AsyncExitStack() as exits:
            alone = await exits.enter_async_context(join(config, "orders", host=0))
            body = b"x" * 100_000
            full = 0
            while full < 100:  # until the protocol has taken all that it will
                full = full + 1 if alone.send_nowait(body) is None else 0
                await asyncio.sleep(0.01 if full else 0)
            waiting = asyncio.create_task(alone.send(body))
            done, _ = await asyncio.wait([waiting], timeout=SLOW_S)
            assert not done, "there is no room, and nobody takes anything"
            assert alone.send_nowait(body) is None
            await alone.host.stop()
            with pytest.raises(LocalError, match="the group is closed"):
                await asyncio.wait_for(waiting, PATIENCE_S)

    run(act())


def test_a_member_that_leaves_has_sent_what_it_was_given(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with joined(config, 1, 2) as (one, other):
            async with join(config, "orders", host=0) as leaving:
                await take_part(one, leaving)
                for number in range(500):
                    await leaving.send(b"%d" % number)
            for group in (one, other):
                found = [one.payload for one in await take(group, 501)]
                assert found[1:] == [b"%d" % number for number in range(500)]
            with pytest.raises(LocalError, match="the group is closed"):
                await leaving.send(b"late")

    async def take_part(one: Group, other: Group) -> None:
        """Wait until the members know each other."""
        await one.send(b"first")
        assert isinstance(await asyncio.wait_for(other.receive(), PATIENCE_S), Received)

    run(act())


def test_what_came_before_the_end_can_still_be_taken_after_it(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with joined(config, 0, 1, 2) as groups:
            await groups[0].send_many([b"a", b"b", b"c"])
            await take(groups[1], 3)
            await until(lambda: groups[0]._inbox.waiting > 0)
        kept = [one async for one in groups[0]]
        assert [one.payload for one in kept if isinstance(one, Received)] == [b"a", b"b", b"c"]

    run(act())


STOPPED = r"the host has stopped: protocol failed: node 0 .*ZeroDivisionError: a defect"


def test_a_host_that_fails_says_so_in_send_and_receive(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with joined(config, 0, 1, 2) as (group, *_):
            receiving = asyncio.create_task(group.receive())
            assert group.receiver is not None
            process = group.host.nodes[group.receiver].process

            def broken(*_: object) -> None:
                raise ZeroDivisionError("a defect")

            process.__dict__.update(on_message=broken, on_timer=broken)
            with pytest.raises(
                LocalError,
                match=STOPPED,
            ):
                await asyncio.wait_for(receiving, PATIENCE_S)
            with pytest.raises(
                LocalError,
                match=STOPPED,
            ):
                await group.send(b"x")
            with pytest.raises(
                LocalError,
                match=STOPPED,
            ):
                group.send_nowait(b"x")

    run(act())


def test_hosts_are_taken_one_after_the_other_until_none_is_free(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with AsyncExitStack() as exits:
            found = [await exits.enter_async_context(join(config, "orders")) for _ in range(3)]
            assert [group.host.host for group in found] == [0, 1, 2]
            with pytest.raises(HostTaken, match="no host of group 'orders' is free"):
                await join(config, "orders").__aenter__()
            with pytest.raises(HostTaken):
                await join(config, "orders", host=1).__aenter__()
        async with join(config, "orders") as again:
            assert again.host.host == 0, "those who have left leave their hosts free"

    run(act())


def test_spare_hosts_are_taken_first(tmp_path: Path) -> None:
    config = cluster(tmp_path)
    text = config.read_text().replace("id = 2\n", "id = 2\nstart = false\n")
    config.write_text(text)

    async def act() -> None:
        async with join(config, "orders") as group:
            assert group.host.host == 2

    run(act())


@pytest.mark.parametrize(
    ("group", "host", "complaint"),
    [
        ("nobody", None, "there is no group 'nobody'; the groups are: orders"),
        ("orders", 9, "host 9 has no receiver"),
    ],
)
def test_bad_names_are_the_callers_fault(
    tmp_path: Path, group: str, host: int | None, complaint: str
) -> None:
    config = cluster(tmp_path)
    with pytest.raises(LocalError, match=complaint):
        run(join(config, group, host=host).__aenter__())


def test_bad_messages_are_the_callers_fault(tmp_path: Path) -> None:
    config = cluster(tmp_path)

    async def act() -> None:
        async with join(config, "orders") as group:
            with pytest.raises(LocalError, match="there is no group 'nobody'"):
                await group.send(b"x", to=["orders", "nobody"])
            with pytest.raises(LocalError, match="the limit is"):
                await group.send(b"x" * (4 << 20))
            with pytest.raises(LocalError, match="there is no message"):
                await group.send_many([])
            with pytest.raises(LocalError, match="of type bytes, not str"):
                await group.send("text")  # type: ignore[arg-type]
            with pytest.raises(LocalError, match="of type bytes, not str"):
                await group.send_many("text")  # type: ignore[arg-type]
            assert group.host.running

    run(act())


# Scripts


def test_a_script_sends_and_takes_without_async(tmp_path: Path) -> None:
    config = cluster(tmp_path)
    before = threading.active_count()
    with (
        ordercast.join_sync(config, group="orders") as one,
        join_sync(config, "orders") as two,
        join_sync(config, "orders") as three,
    ):
        first = one.send(b"a")
        second = one.send_many([b"b", b"c"])
        assert second == first + 1
        for group in (one, two, three):
            taken = [group.receive(timeout=PATIENCE_S) for _ in range(3)]
            assert [one.payload for one in taken if isinstance(one, Received)] == [b"a", b"b", b"c"]
            assert group.receive(timeout=0.01) is None, "there is no more"
    assert threading.active_count() == before


def test_a_script_that_fails_leaves_its_host_free_and_no_thread(tmp_path: Path) -> None:
    config = cluster(tmp_path)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), join_sync(config, "orders", host=0) as group:
        group.send(b"x")
        raise ZeroDivisionError
    with pytest.raises(LocalError, match="no group 'nobody'"), join_sync(config, "nobody"):
        pass
    with join_sync(config, "orders", host=0):
        pass
    assert threading.active_count() == before


def test_a_script_can_give_up_a_send_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.net.api.group.CLOSE_S", 0.2)
    config = cluster(tmp_path)
    with (
        pytest.raises(LocalError, match=r"\d+ messages were not sent: the cluster accepted none"),
        join_sync(config, "orders", host=0) as alone,
    ):
        with pytest.raises(TimeoutError):
            for _ in range(1_000):
                alone.send_many([b"x" * 10_000] * 10, timeout=SLOW_S)
        assert alone.receive(timeout=0.01) is None
