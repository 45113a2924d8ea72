"""The executor: every call once, in order; results for those who ask again; snapshots with the table."""

from collections.abc import Sequence

import pytest

from ordercast.components.execution import Call, Executor, client_table, pack_call, unpack_call
from ordercast.core import LocalError, RemoteError, ServiceType, Stamp, message_id, outcome_of
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.services.built_in import Counter, Echo
from ordercast.testing import RecordingEnv

ADD = ServiceType.of(Counter).find("add")
GET = ServiceType.of(Counter).find("get")
CLIENT = 5


def bundle(number: int, amounts: Sequence[int], client: int = CLIENT) -> bytes:
    payloads = [ADD.pack((amount,), {}) for amount in amounts]
    return pack_bundle(message_id(client, number), [10 * number] * len(payloads), payloads)


def call(number: int, *amounts: int, floor: int | None = None, client: int = CLIENT) -> Call:
    floor_id = message_id(client, number if floor is None else floor)
    return unpack_call(pack_call(floor_id, bundle(number, amounts, client)), client)


def make() -> Executor:
    return Executor(RecordingEnv(), ServiceType.of(Counter).spec())


def values(results: bytes) -> list[object]:
    return [ADD.unpack_result(item.payload) for item in unpack(results)]


def value_of(executor: Executor) -> object:
    reads = pack_bundle(message_id(CLIENT, 9999), [0], [GET.pack((), {})])
    return GET.unpack_result(unpack(executor.read(reads))[0].payload)


def test_a_call_is_executed_once_and_answered_alike_again() -> None:
    executor = make()
    first = executor.execute(call(1, 5, 7), Stamp(10, 0))
    again = executor.execute(call(1, 5, 7), Stamp(11, 0))
    assert first is not None and again is not None
    assert first.fresh and not again.fresh
    assert values(first.results) == [5, 12] and again.results == first.results
    assert again.stamp == Stamp(10, 0)  # where it was executed first
    assert value_of(executor) == 12 and executor.executed == 1 and executor.place == Stamp(10, 0)


def test_what_lies_below_the_floor_is_never_executed() -> None:
    executor = make()
    executor.execute(call(4, 1, floor=3), Stamp(1, 0))
    assert executor.execute(call(2, 100, floor=2), Stamp(2, 0)) is None
    assert executor.execute(call(3, 10, floor=3), Stamp(3, 0)) is not None
    assert value_of(executor) == 11


def test_results_below_the_floor_are_forgotten() -> None:
    executor = make()
    for number in range(1, 6):
        executor.execute(call(number, 1, floor=number), Stamp(number, 0))
    kept = [n for n in range(1, 6) if executor.find(message_id(CLIENT, n), CLIENT) is not None]
    assert kept == [5]


def test_a_client_that_never_raises_its_floor_loses_its_oldest_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_table, "RESULTS_MAX", 3)
    executor = make()
    for number in range(1, 6):
        executor.execute(call(number, 1, floor=1), Stamp(number, 0))
    assert executor.execute(call(1, 1, floor=1), Stamp(9, 0)) is None  # not executed again
    assert value_of(executor) == 5


def test_clients_do_not_share_floors() -> None:
    executor = make()
    executor.execute(call(9, 1), Stamp(1, 0))
    done = executor.execute(call(2, 1, client=CLIENT + 1), Stamp(2, 0))
    assert done is not None and done.fresh


def test_a_snapshot_has_the_table_and_the_place() -> None:
    executor, other = make(), make()
    executor.execute(call(1, 5), Stamp(10, 2, (3,)))
    other.restore(executor.snapshot())
    again = other.execute(call(1, 5), Stamp(12, 0))
    assert again is not None and not again.fresh and again.stamp == Stamp(10, 2, (3,))
    assert other.digest() == executor.digest()
    assert other.place == Stamp(10, 2, (3,)) and other.executed == 1


def test_rollback_is_restore_and_replay() -> None:
    executor = make()
    executor.execute(call(1, 5), Stamp(1, 0))
    before = executor.snapshot()
    executor.execute(call(2, 100, floor=1), Stamp(2, 0))
    executor.restore(before)
    done = executor.execute(call(3, 1, floor=1), Stamp(2, 1))
    assert done is not None and values(done.results) == [6]
    assert executor.find(message_id(CLIENT, 2), CLIENT) is None


def test_time_never_runs_backwards() -> None:
    seen: list[int] = []

    executor = Executor(RecordingEnv(), ServiceType.of(Echo).spec())
    echo = ServiceType.of(Echo).find("echo")
    for number, time in ((1, 50), (2, 20)):
        packed = pack_bundle(message_id(CLIENT, number), [time], [echo.pack((b"x",), {})])
        executor.execute(unpack_call(pack_call(message_id(CLIENT, 1), packed)), Stamp(number, 0))
        seen.append(executor._now_ns)
    assert seen == [50, 50]


def test_a_call_of_reads_changes_nothing_and_is_not_kept() -> None:
    executor = make()
    executor.execute(call(1, 5), Stamp(1, 0))
    before = executor.snapshot()
    reads = pack_bundle(message_id(CLIENT, 2), [0], [GET.pack((), {})])
    done = executor.execute(unpack_call(pack_call(message_id(CLIENT, 2), reads, read=True)), Stamp(2, 0))
    assert done is not None and not done.fresh and GET.unpack_result(unpack(done.results)[0].payload) == 5
    assert executor.snapshot() == before
    change = unpack_call(pack_call(message_id(CLIENT, 3), bundle(3, [9]), read=True))
    done = executor.execute(change, Stamp(3, 0))
    assert done is not None and outcome_of(unpack(done.results)[0].payload).name == "FAILED"
    assert executor.snapshot() == before


def test_without_a_service_calls_are_only_remembered() -> None:
    executor = Executor(RecordingEnv(), None)
    done = executor.execute(call(1, 5), Stamp(1, 0))
    assert done is not None and done.fresh and [item.payload for item in unpack(done.results)] == [b""]
    again = executor.execute(call(1, 5), Stamp(2, 0))
    assert again is not None and not again.fresh


@pytest.mark.parametrize("snapshot", [b"", b"\x93", b"\xc1"])
def test_a_damaged_snapshot_is_refused(snapshot: bytes) -> None:
    with pytest.raises(LocalError, match="the state of a replica cannot be read"):
        make().restore(snapshot)


def test_a_snapshot_of_another_service_is_refused() -> None:
    other = Executor(RecordingEnv(), ServiceType.of(Echo).spec())
    with pytest.raises(LocalError, match="belongs to another service"):
        make().restore(other.snapshot())


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x00" * 9,
        pack_call(message_id(CLIENT, 2), bundle(1, [1])),  # a floor above the call
        pack_call(message_id(CLIENT - 1, 1), bundle(1, [1])),  # a floor of another client
        b"\x04" + pack_call(message_id(CLIENT, 1), bundle(1, [1]))[1:],  # an unknown flag
    ],
)
def test_malformed_calls_are_refused(packed: bytes) -> None:
    with pytest.raises(RemoteError):
        unpack_call(packed)


def test_nobody_calls_in_the_name_of_another() -> None:
    with pytest.raises(RemoteError, match="node 6 sent a call in the name of node 5"):
        unpack_call(pack_call(message_id(CLIENT, 1), bundle(1, [1])), CLIENT + 1)


def test_a_malformed_bundle_is_never_executed() -> None:
    executor = make()
    packed = bundle(1, [1, 2])[:-1]
    assert executor.execute(unpack_call(pack_call(message_id(CLIENT, 1), packed)), Stamp(1, 0)) is None
    assert executor.executed == 0
