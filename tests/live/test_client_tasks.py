"""Clients that are tasks: each goes on with its own message, and none waits for ever for a lost one."""

import asyncio
import time
from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks.peers.client_tasks import ClientTasks
from benchmarks.peers.roles import NUMBER_BYTES, Recorder, Shared
from ordercast.core import LocalError
from ordercast.lab.bench import BenchSpec
from ordercast.lab.bench.waiting import GIVE_UP_S, LOOK_S, Waiting

CLIENTS = 4


def make_clients(monkeypatch: pytest.MonkeyPatch, seconds: float) -> ClientTasks:
    monkeypatch.setattr("benchmarks.peers.roles.WARM_UP_NS", 0)
    monkeypatch.setattr("benchmarks.peers.roles.QUIET_NS", 50_000_000)
    shared = Shared(get_context("spawn"), 1)
    return ClientTasks(shared, 64, seconds, CLIENTS, Recorder(0, shared))


def number(payload: bytes) -> int:
    return int.from_bytes(payload[:NUMBER_BYTES], "little")


def test_a_task_goes_on_with_its_own_message_alone() -> None:
    async def wait() -> tuple[bool, bool, bool]:
        waiting: Waiting[int] = Waiting()
        one, other = waiting.expect(1), waiting.expect(2)
        waiting.end(3)  # of somebody else
        waiting.end(2)
        return one.done(), other.done(), await other

    assert asyncio.run(wait()) == (False, True, True)


def test_a_message_that_does_not_come_is_given_up_within_a_second() -> None:
    async def wait() -> tuple[bool, bool]:
        waiting: Waiting[int] = Waiting()
        lost = waiting.expect(1)
        waiting.give_up(time.monotonic())
        early = lost.done()
        waiting.give_up(time.monotonic() + GIVE_UP_S + 0.01)
        waiting.end(1)  # late, and nobody waits any more
        return early, await lost

    assert GIVE_UP_S + LOOK_S < 1
    assert asyncio.run(wait()) == (False, False)


def test_the_error_of_a_client_ends_all() -> None:
    ended = []

    async def fail() -> None:
        raise LocalError("the host has stopped")

    async def stay() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("stay")

    waiting: Waiting[int] = Waiting()
    with pytest.raises(LocalError, match="stopped"):
        asyncio.run(waiting.attend([stay(), fail()], 30))
    assert ended == ["stay"]


def test_a_client_that_hangs_is_ended_with_the_time() -> None:
    ended = []

    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("hang")

    asyncio.run(Waiting[int]().attend([hang()], 0.01))
    assert ended == ["hang"]


def test_each_client_has_one_message_under_way_and_every_round_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = make_clients(monkeypatch, 0.5)
    under_way: set[int] = set()
    most = 0

    def deliver(payload: bytes) -> None:
        under_way.remove(number(payload))
        clients.heard([payload])

    async def send(payload: bytes) -> None:
        nonlocal most
        under_way.add(number(payload))
        most = max(most, len(under_way))
        asyncio.get_running_loop().call_later(0.001, deliver, payload)

    asyncio.run(clients.run(send))
    sent = int(clients.result()["times"][2])
    assert most == CLIENTS
    assert sent > CLIENTS
    assert sorted(clients.recorder.result()["order"]) == list(range(sent))
    assert len(clients.result()["rounds"]) == sent
    assert clients.shared.sent.value == sent
    assert clients.result()["rounds"][:, 1].min() >= 1_000_000  # in ns: never before the delivery


def test_a_delivery_before_the_call_returns_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = make_clients(monkeypatch, 0.02)

    async def send(payload: bytes) -> None:
        clients.heard([payload])
        await asyncio.sleep(0.002)

    asyncio.run(clients.run(send))
    rounds = clients.result()["rounds"]
    assert len(rounds) == clients.result()["times"][2] > 0
    assert rounds[:, 1].min() >= 1_900_000  # a round is not over before the call is


def test_a_lost_message_is_no_round_and_its_task_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.lab.bench.waiting.GIVE_UP_S", 0.02)
    monkeypatch.setattr("ordercast.lab.bench.waiting.LOOK_S", 0.005)
    clients = make_clients(monkeypatch, 1.0)
    lost = set(range(CLIENTS))  # the first message of every client

    async def send(payload: bytes) -> None:
        await asyncio.sleep(0.001)
        if number(payload) not in lost:
            clients.heard([payload])

    asyncio.run(clients.run(send))
    sent = int(clients.result()["times"][2])
    assert sent > 2 * CLIENTS
    assert len(clients.result()["rounds"]) == sent - len(lost)
    assert not np.isin(clients.recorder.result()["order"], list(lost)).any()


def test_an_error_of_what_receives_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = make_clients(monkeypatch, 0.02)

    async def send(payload: bytes) -> None:
        await asyncio.sleep(0.001)
        clients.heard([payload])

    async def receive() -> None:
        raise ConnectionError("the server has gone")

    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(clients.run(send, receive()))


def test_only_clients_can_be_tasks() -> None:
    assert BenchSpec(load="clients", clients=64, tasks=True).tasks
    with pytest.raises(LocalError, match="tasks are only possible"):
        BenchSpec(load="max", tasks=True)
