"""Programs call a replicated service: answers, refusals, deadlines, errors before anything is sent."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import ordercast
from ordercast.core import LocalError, Stamp, message_name
from ordercast.net.host.loop import run
from ordercast.net.host.store import HostTaken
from tests.live.processes import PATIENCE_S
from tests.live.serving import Store, replicas_in_thread, replicas_of, write_service


def serve(file: Path, use: Callable[[], Awaitable[None]]) -> None:
    """Let a program use a cluster whose replicas run here."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file):
            await use()

    run(main())


def test_operations_and_reads_are_answered(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            await store.call(Store.put, "a", "5")
            assert await store.call(Store.get, "a") == "5"
            assert await store.call(Store.take, "a", amount=2) == 3
            assert await store.take("a") == 2
            assert await store.get("b") is None

    serve(file, use)


def test_a_program_is_told_that_answers_do_not_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write_service(tmp_path)
    undone = ordercast.Undone(0, Stamp(900, 7))
    told: list[ordercast.Undone] = []

    async def use() -> None:
        async with ordercast.connect(file, Store, on_undone=told.append) as store:
            await store.put("a", "1")
            calls = store._calls
            calls.host.nodes[calls._node].deliver(undone)
            calls.host.end_turn()
            assert await store.get("a") == "1", "the client goes on"

    serve(file, use)
    assert told == [undone]
    assert "answers with places behind (900, 7) do not hold" in caplog.text


def test_many_calls_are_under_way_at_once(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            await asyncio.gather(*(store.call(Store.put, str(key), str(-key)) for key in range(500)))
            found = await asyncio.gather(*(store.call(Store.get, str(key)) for key in range(500)))
            assert found == [str(-key) for key in range(500)]

    serve(file, use)


def test_a_refusal_and_a_failure_are_exceptions_of_the_call(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            await store.put("a", "1")
            with pytest.raises(ordercast.Refused, match="a has only 1"):
                await store.call(Store.take, "a", 2)
            with pytest.raises(ordercast.ServiceFailed, match="KeyError: 'b'"):
                await store.call(Store.take, "b")
            assert await store.get("a") == "1"

    serve(file, use)


def test_wrong_calls_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    class Other(ordercast.Service):
        @ordercast.operation
        def put(self, key: str) -> None: ...

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            with pytest.raises(LocalError, match=r"wrong arguments for put\(key: str, value: str\)"):
                await store.put("a", 1)
            with pytest.raises(LocalError, match=r"wrong arguments for put.*missing a required argument"):
                await store.put("a")
            with pytest.raises(LocalError, match="Store has no operation 'pop'; it has: get, put, take"):
                await store.pop("a")
            with pytest.raises(LocalError, match=r"no operation 'test_wrong_calls.*Other\.put'"):
                await store.call(Other.put, "a")  # type: ignore[arg-type]
            with pytest.raises(LocalError, match=r"put takes 1048.* bytes with its arguments; the limit is"):
                await store.put("a", "x" * (1 << 20))
            assert not hasattr(store, "pop")
            assert store._calls.host.metrics.messages_submitted == 0

    serve(file, use)


def test_no_answer_in_time_is_an_unknown_outcome(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store, timeout=0.2) as store:
            with pytest.raises(ordercast.Unknown, match=r"no answer came within 0.2 s") as raised:
                await store.put("a", "1")
            assert message_name(raised.value.message) == "1#0"

    run(use())


@pytest.mark.parametrize("protocol", ["hydra_paxos", "nopaxos"])
def test_a_call_that_finds_no_sequencer_ends_at_its_deadline(tmp_path: Path, protocol: str) -> None:
    file = write_service(tmp_path, protocol=protocol, replicas=3, others=5)

    async def use() -> None:
        begun = asyncio.get_running_loop().time()
        async with ordercast.connect(file, Store, timeout=0.3) as store:
            calls = [store.put("a", "1"), store.get("a"), store.put("b", "2")]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert {str(one)[:28] for one in outcomes} == {"no answer came within 0.3 s:"}
        assert asyncio.get_running_loop().time() - begun < 3, "nothing is left to wait for"

    run(use())


def test_a_call_that_is_taken_late_ends_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client process counts from when it takes a call, which can be just before the deadline."""
    file = write_service(tmp_path)

    async def use() -> None:
        loop = asyncio.get_running_loop()
        async with ordercast.connect(file, Store, timeout=0.6) as store:
            wire = store._calls.host.wire
            begun = loop.time()
            monkeypatch.setattr(wire, "pressed", lambda: loop.time() < begun + 0.4)
            with pytest.raises(ordercast.Unknown, match=r"no answer came within 0.6 s"):
                await store.put("a", "1")
            assert 0.6 <= loop.time() - begun < 0.9

    run(use())


def test_calls_under_way_at_the_end_have_no_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.net.api.open_calls.CLOSE_S", 0.1)
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store, timeout=None) as store:
            calls = [asyncio.create_task(store.put("a", str(number))) for number in range(3)]
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, ordercast.Unknown) for one in outcomes)
        with pytest.raises(LocalError, match="the client is closed"):
            await store.put("a", "1")

    run(use())


@pytest.mark.parametrize(("protocol", "others"), [("unreplicated", 0), ("hydra_paxos", 5)])
def test_a_client_that_leaves_calls_behind_has_crashed_for_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, others: int
) -> None:
    """Else the trace would say that a client was alive, and got no answer."""
    monkeypatch.setattr("ordercast.net.api.open_calls.CLOSE_S", 0.1)
    file = write_service(tmp_path, protocol=protocol, replicas=3, others=others)
    ends: list[bool] = []

    async def use(leave: bool) -> None:
        async with ordercast.connect(file, Store, timeout=None if leave else 0.1) as store:
            recorder = store._calls.host._recorder
            assert recorder is not None
            close = recorder.close

            def note_end(*, failed: bool) -> None:
                ends.append(failed)
                close(failed=failed)

            monkeypatch.setattr(recorder, "close", note_end)
            call = asyncio.create_task(store.put("a", "1"))
            await asyncio.wait([call], timeout=0.05 if leave else None)
        with pytest.raises(ordercast.Unknown):
            await call

    run(use(True))
    run(use(False))
    assert ends == [True, False]


def test_closing_waits_for_answers(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            calls = [asyncio.create_task(store.put("a", str(number))) for number in range(100)]
            await asyncio.sleep(0)
        assert await asyncio.gather(*calls) == [None] * 100

    serve(file, use)


def test_a_call_that_nobody_waits_for_disturbs_no_other(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            sent, unsent = (asyncio.create_task(store.put(key, "1")) for key in "ab")
            await asyncio.sleep(0)
            unsent.cancel()
            await asyncio.sleep(0)
            sent.cancel()
            await store.put("c", "2")
            assert (await store.get("a"), await store.get("b")) == ("1", None)

    serve(file, use)


def test_each_client_takes_a_host_of_its_own(tmp_path: Path) -> None:
    file = write_service(tmp_path, clients=2)

    async def use() -> None:
        async with ordercast.connect(file, Store) as one, ordercast.connect(file, Store) as other:
            await one.put("a", "1")
            assert await other.get("a") == "1"
            with pytest.raises(HostTaken, match="no host with a client is free"):
                async with ordercast.connect(file, Store):
                    pass
            with pytest.raises(LocalError, match="host 0 has no client; these have: "):
                async with ordercast.connect(file, Store, host=0):
                    pass

    serve(file, use)


def test_a_program_with_another_class_is_not_connected(tmp_path: Path) -> None:
    file = write_service(tmp_path)

    class Counter(ordercast.Service):
        @ordercast.read
        def get(self) -> int:
            return 0

    async def use() -> None:
        with pytest.raises(
            LocalError, match=r"replicates another service: \[Store; .*not \[Counter; read get"
        ):
            async with ordercast.connect(file, Counter):
                pass
        with pytest.raises(LocalError, match="there is no group 'x'; the groups are: orders"):
            async with ordercast.connect(file, Store, group="x"):
                pass

    run(use())
    with pytest.raises(LocalError, match="timeout must be more than 0"):
        ordercast.connect(file, Store, timeout=0)


def test_a_script_calls_as_if_the_service_were_here(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    with replicas_in_thread(file):
        with ordercast.connect_sync(file, Store) as store:
            assert isinstance(store, Store)
            store.put("a", "3")
            assert store.take("a", amount=2) == 1
            with pytest.raises(ordercast.Refused):
                store.take("a", 7)
            found: list[str | None] = []
            threads = [threading.Thread(target=lambda: found.append(store.get("a"))) for _ in range(8)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert found == ["1"] * 8
            with pytest.raises(LocalError, match=r"Store.data is at the replicas; from here only operations"):
                _ = store.data
            with pytest.raises(LocalError, match="only operations change it"):
                store.data = {}
        with pytest.raises(LocalError, match="it is closed: its with block has ended"):
            store.get("a")


def test_calls_wait_for_room_in_the_backlog_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.net.host.senders.BACKLOG_BYTES_MAX", 60)
    file = write_service(tmp_path, options="calls = { window = 1 }")

    async def use() -> None:
        async with ordercast.connect(file, Store) as store:
            calls = []
            for number in range(100):
                calls.append(asyncio.create_task(store.put(str(number), "x" * 50)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await asyncio.gather(*calls)
            assert store._calls.host.metrics.messages_refused
            assert await asyncio.gather(*(store.get(str(n)) for n in range(100))) == ["x" * 50] * 100

    serve(file, use)


def test_a_call_for_which_there_is_no_room_in_time_was_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.net.host.senders.BACKLOG_BYTES_MAX", 0)
    file = write_service(tmp_path)

    async def use() -> None:
        async with ordercast.connect(file, Store, timeout=0.2) as store:
            with pytest.raises(
                LocalError, match=r"no room for another within 0.2 s, and the operation was not"
            ):
                await store.put("a", "1")

    run(use())
