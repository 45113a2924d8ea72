"""EpTO as applications see it: what is pending and how sure it is, messages that come too late, `why`."""

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli.tail import line_text
from ordercast.core import Explanation, LocalError, Message, NodeId, Stamp, Wait, message_id
from ordercast.core.bundle import Item, pack
from ordercast.judge import verdict
from ordercast.net.api.group import Group
from ordercast.net.api.join import join
from ordercast.net.api.pending import pending_messages
from ordercast.net.api.received import LiveDelivery
from ordercast.net.cluster.file import load_cluster
from ordercast.net.host.loop import run
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.net.tools.client import ControlClient
from ordercast.net.tools.facts import HostFact, NodeFact, node_fact
from ordercast.net.tools.why import why_oldest
from ordercast.protocols.epto.messages import Ball
from ordercast.trace import Kind, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.processes import PATIENCE_S
from tests.live.wires import until

ROUND_NS = 20_000_000


def cluster(folder: Path, options: str = "", trace: bool = False) -> Path:
    """Three peers that send too."""
    top = f"senders = 3\ncolocated = true\ntrace = {str(trace).lower()}"
    options = f"round_ns = {ROUND_NS}\n{options}"
    return write_cluster(folder, protocol="epto", receivers=3, top=top, options=options)


@asynccontextmanager
async def joined(config: Path) -> AsyncIterator[list[Group]]:
    """All peers, in this loop."""
    async with AsyncExitStack() as exits:
        joining = [join(config, "orders", host=host, run="run") for host in range(3)]
        yield [await exits.enter_async_context(one) for one in joining]


async def take(group: Group, count: int) -> list[LiveDelivery | None]:
    return [await asyncio.wait_for(group.receive(), PATIENCE_S) for _ in range(count)]


def test_what_is_pending_is_told_with_its_probability_and_then_delivered(tmp_path: Path) -> None:
    config = cluster(tmp_path, "ttl = 60")

    async def act() -> None:
        async with joined(config) as (one, other, third):
            message = await one.send(b"early")
            await until(lambda: bool(other.pending()))
            (pending,) = other.pending()
            assert (pending.message, pending.payload, pending.sender) == (message, b"early", 0)
            assert pending.name == "0#0" and pending.stamp is not None
            seen = []
            while now := other.pending():
                seen.append(now[0].stable or 0.0)
                await asyncio.sleep(ROUND_NS / 1e9)
            assert seen == sorted(seen), "it only gets surer"
            assert seen[-1] > 0.9, "and was nearly sure before it was delivered"
            for group in (one, other, third):
                (received,) = await take(group, 1)
                assert isinstance(received, ordercast.Received) and received.payload == b"early"
                assert received.stamp == pending.stamp
        with pytest.raises(LocalError, match="closed"):
            other.pending()

    run(act())


def test_scripts_see_what_is_pending_too(tmp_path: Path) -> None:
    # Alone it has nobody to relay to, but its own event waits for its rounds all the same.
    config = cluster(tmp_path, 'ttl = 40\nclock = "global"')
    with ordercast.join_sync(config, "orders", host=0) as group:
        group.send(b"mine")
        while not (found := group.pending()):
            assert group.receive(timeout=0.005) is None
        assert [pending.payload for pending in found] == [b"mine"]
        delivery = group.receive(timeout=PATIENCE_S)
        assert isinstance(delivery, ordercast.Received) and delivery.payload == b"mine"
        assert group.pending() == []


def wait(number: int, *payloads: bytes, **more: Any) -> Wait:
    items = [Item(message_id(1, number + place), 7, payload) for place, payload in enumerate(payloads)]
    return Wait("a packet", "something", 5, pack(items), **more)


def test_pending_messages_come_by_place_of_this_group_alone_and_not_without_limit() -> None:
    explanation = Explanation(
        {},
        (
            Wait("all messages", "a sequencer; none is known to be alive", 1),
            wait(30, b"late", stamp=Stamp(9, 1)),
            wait(20, b"unknown place"),
            wait(10, b"of others", groups=(1,), stamp=Stamp(1, 1)),
            wait(0, b"a", b"b", groups=(0, 1), stamp=Stamp(4, 2), stable=0.5),
            Wait("a packet", "something", 5, b"no bundle"),
        ),
    )
    found = pending_messages(explanation, 0, 10)
    assert [pending.payload for pending in found] == [b"a", b"b", b"late", b"unknown place"]
    assert [pending.stable for pending in found] == [0.5, 0.5, None, None]
    assert [pending.name for pending in found[:2]] == ["1#0", "1#1"]
    assert [pending.payload for pending in pending_messages(explanation, 0, 1)] == [b"a"]
    assert pending_messages(explanation, 0, 0) == []


@pytest.mark.parametrize(
    ("stable", "text"),
    [
        (None, "something."),
        (0.25, "something; all receivers already know it with 25.0 % probability."),
        (1.0, "something; all receivers already know it with more than 99.9 % probability."),
    ],
)
def test_why_tells_how_sure_it_is_that_all_know_a_message(stable: float | None, text: str) -> None:
    fact: NodeFact = node_fact("peer", Explanation({}, (wait(0, b"x", stable=stable),)), 10)
    answer = why_oldest([HostFact(0, {0: fact})], {})
    assert answer.sentence.endswith(text)
    assert answer.stable == stable


class Hush:
    """Keeps a peer's balls from leaving, until they are let go."""

    def __init__(self, group: Group) -> None:
        self._turn = group.host._turn
        self._send: Callable[[NodeId, tuple[NodeId, ...], Message], None] = self._turn.send
        self._host = group.host
        self.kept: list[tuple[NodeId, tuple[NodeId, ...], Message]] = []
        vars(self._turn)["send"] = self._keep

    def _keep(self, source: NodeId, to: tuple[NodeId, ...], message: Message) -> None:
        if isinstance(message, Ball):
            self.kept.append((source, to, message))
        else:
            self._send(source, to, message)

    def let_go(self) -> None:
        """The first ball leaves, late."""
        del vars(self._turn)["send"]
        self._send(*self.kept[0])
        self._host.end_turn()


def test_late_messages_reach_the_application_as_such_and_tails_and_traces_mark_them(tmp_path: Path) -> None:
    config = cluster(tmp_path, 'late = "tag"\nttl = 12', trace=True)
    loaded = load_cluster(config)
    lines: list[dict[str, Any]] = []

    def watch() -> None:
        with ControlClient(0, loaded.socket_path(0), PATIENCE_S) as client:
            lines.extend(list(client.tail(["orders"], 0, 4))[1:])

    async def act() -> None:
        async with joined(config) as (one, other, third):
            watching = threading.Thread(target=watch)
            watching.start()
            hush = Hush(third)
            late = await third.send(b"late")
            await until(lambda: bool(hush.kept))
            for number in range(3):  # one after the other, so that their times go beyond that of the late one
                await one.send(b"%d" % number)
                (received,) = await take(other, 1)
                assert isinstance(received, ordercast.Received)
            await take(one, 3)
            hush.let_go()
            heard = [(await take(group, 1))[0] for group in (one, other)]
            for found in heard:
                assert isinstance(found, ordercast.OutOfOrder)
                assert (found.message, found.payload, found.name) == (late, b"late", "2#0")
                assert not isinstance(found, ordercast.Received)
            own = await take(third, 4)
            assert all(isinstance(found, ordercast.Received) for found in own), "to itself it came in time"
            await asyncio.to_thread(watching.join)

    run(act())
    assert [base64.b64decode(line["payload"]) for line in lines] == [b"0", b"1", b"2", b"late"]
    assert [line.get("out_of_order", False) for line in lines] == [False, False, False, True]
    assert line_text(lines[3]).plain.endswith("late (out of order)")
    finish_run(loaded.traces, loaded.plan(), "run", complete=True)
    (stored,) = find_runs(loaded.traces)
    late_rows = [event for event in events_of(stored.table()) if event.kind is Kind.OUT_OF_ORDER]
    assert [event.node for event in sorted(late_rows, key=lambda event: event.node)] == [0, 1]
    assert verdict(stored.description, events_of(stored.table())).violations == []


@pytest.mark.parametrize("joiners", [0, 1])
def test_a_program_joins_a_group_that_nobody_receives(tmp_path: Path, joiners: int) -> None:
    top, hosts = "senders = 1\ncolocated = true\ntrace = false", tuple(range(3 + joiners))
    top += f"\njoiners = {joiners}" if joiners else ""
    config = write_cluster(
        tmp_path, protocol="epto", receivers=3, top=top, options=f"round_ns = {ROUND_NS}", hosts=hosts
    )
    text = config.read_text().replace("orders = 3", "orders = [0, 1, 2]\naudit = []")
    config.write_text(text.replace("[[host]]\nid = 2", "[[host]]\nid = 2\nstart = false"))

    async def act() -> None:
        async with AsyncExitStack() as exits:
            first = [join(config, "orders", host=host, run="run") for host in range(2)]
            one, _ = [await exits.enter_async_context(joining) for joining in first]
            late = await exits.enter_async_context(join(config, "audit", run="run"))
            assert late.host.host == 2 + joiners, "a host that is in no group, or one that nobody starts"
            assert "audit" in late.joined
            await one.send(b"to those who audit", to=["audit"])
            taken = [await asyncio.wait_for(late.receive(), PATIENCE_S) for _ in range(2)]
            received = [one for one in taken if isinstance(one, ordercast.Received)]
            assert [one.payload for one in received] == [b"to those who audit"]

    run(act())
