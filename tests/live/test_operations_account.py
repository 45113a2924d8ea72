"""The account of a service in a live run: each rule finds what breaks it, and names clients and operations.

Diaries are made up here. Right ones are complained of by nobody; each test breaks one thing.
"""

from pathlib import Path
from typing import Any, cast
from zlib import crc32

import msgspec
import pytest

from ordercast.core import (
    MILLISECOND,
    Checkpoint,
    Context,
    HostId,
    MessageId,
    Replied,
    ServiceType,
    Stamp,
    Undone,
    message_id,
)
from ordercast.core.bundle import pack_bundle, unpack_bundle
from ordercast.lab.trial.account import Circumstances
from ordercast.lab.trial.diary import Answered, Called, Diary, LifeDiary, read_diaries, values_of
from ordercast.lab.trial.operations_account import OperationsAccount, account_operations
from ordercast.lab.trial.stage import CrashTime
from ordercast.net.host.delivered import RepliedBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.scenario.spec import Scenario
from ordercast.services.built_in import Counter

PLAN = Scenario(protocol="unreplicated", service="counter", receivers=1, senders=2).plan()
"""Clients are 1 and 2."""
KIND = ServiceType.of(Counter)
ADD, GET = KIND.find("add"), KIND.find("get")
COUNT = 20
TOLD = Circumstances(
    crashes=(),
    up=frozenset({0, 1, 2}),
    hit=frozenset(),
    limit_ns=50 * MILLISECOND,
    complete=True,
    bundled=True,
)


def name(number: int) -> MessageId:
    return message_id(1 + number % 2, number)


def diaries() -> dict[HostId, LifeDiary]:
    """Clients that add and read in turns, one every 10 ms, and are answered after 3 ms."""
    machine = KIND.spec().make()
    found = {host: LifeDiary(host) for host in range(3)}
    place = (-1, -1)
    for number in range(COUNT):
        read = number % 4 == 3
        operation = GET.pack((), {}) if read else ADD.pack((number - 5,), {})
        place = place if read else (number, 0)
        result = (machine.read if read else machine.apply)(operation, Context(name(number), 0))
        own, at = found[1 + number % 2], number * 10 * MILLISECOND
        own.called.append(Called(at, name(number), 0, read, operation))
        answered = Answered(at + 3 * MILLISECOND, name(number), place, result[0], crc32(result))
        own.answered.append(answered)
    return found


def account(found: dict[HostId, LifeDiary], **changes: Any) -> OperationsAccount:
    told = msgspec.structs.replace(TOLD, **changes)
    taken = account_operations(PLAN, list(found.values()), told)
    assert taken is not None
    return taken


def test_a_right_account_has_no_complaints() -> None:
    found = account(diaries())
    assert (found.invoked, found.answered, found.unknown, found.checked) == (COUNT, COUNT, 0, COUNT)
    assert found.refused == 4 and found.failed == 0, "the first ones would make the number negative"
    assert found.outage_ns == 3 * MILLISECOND and found.complaints == ()


def test_a_run_without_a_service_has_no_account_of_calls() -> None:
    plain = Scenario(protocol="unreplicated", receivers=1).plan()
    assert account_operations(plain, list(diaries().values()), TOLD) is None


def test_a_call_without_an_answer_is_missed() -> None:
    broken = diaries()
    gone = broken[1].answered.pop()
    found = account(broken)
    (complaint,) = found.complaints
    assert (complaint.rule, complaint.nodes, complaint.messages) == ("missing", (1,), (gone.message,))
    assert (found.unknown, found.checked) == (1, 0)


def test_a_call_whose_outcome_is_unknown_is_not_missed() -> None:
    broken = diaries()
    gone = broken[1].answered.pop()
    broken[1].unconfirmed.append(gone.message)
    found = account(broken)
    assert (found.complaints, found.unknown) == ((), 1)


def test_a_killed_client_misses_nothing() -> None:
    broken = diaries()
    broken[1].answered.pop()
    assert account(broken, crashes=(CrashTime(1, 0, 0),)).complaints == ()


def test_of_a_run_that_is_not_complete_nothing_is_missed() -> None:
    broken = diaries()
    broken[1].answered.pop()
    assert account(broken, complete=False).complaints == ()


def test_a_second_answer_is_complained_of() -> None:
    broken = diaries()
    broken[2].answered.append(broken[2].answered[-1])
    (complaint,) = account(broken).complaints
    assert (complaint.rule, complaint.nodes, complaint.count) == ("twice", (2,), 1)


def test_a_wrong_answer_is_named() -> None:
    broken = diaries()
    broken[1].answered[4] = broken[1].answered[4]._replace(digest=7)
    (complaint,) = account(broken).complaints
    assert (complaint.rule, complaint.messages) == ("wrong", (broken[1].answered[4].message,))
    assert "has another answer than a single service gives there" in complaint.detail


def test_a_stale_read_is_found_by_time() -> None:
    """The read of the last one names the place of the first: later writes were answered long before it."""
    broken = diaries()
    last = broken[2].answered[-1]
    zero = KIND.spec().make().read(GET.pack((), {}), Context(last.message, 0))
    broken[2].answered[-1] = last._replace(place=(-1, -1), digest=crc32(zero))
    (complaint,) = account(broken).complaints
    assert complaint.rule == "disorder" and last.message in complaint.messages


def test_a_long_wait_for_answers_is_complained_of() -> None:
    broken = diaries()
    for own in broken.values():
        own.answered[:] = [one._replace(time_ns=max(one.time_ns, 95 * MILLISECOND)) for one in own.answered]
    found = account(broken)
    assert found.outage_ns == 95 * MILLISECOND
    assert [complaint.rule for complaint in found.complaints] == ["outage"]
    assert account(broken, limit_ns=None).complaints == ()


def test_an_answer_that_was_taken_back_leaves_an_unknown_outcome() -> None:
    found = diaries()
    found[2].note("undone", 0, (2, 0, 17))
    taken = account(found)
    assert (taken.undone, taken.unknown, taken.answered, taken.complaints) == (1, 1, COUNT - 1, ())
    assert found[2].undone == [name(19)]
    found[1].note("undone", 0, (1, 5, 0))
    assert account(found) == taken, "that was of another group"


def test_sums_that_came_to_the_same_are_told() -> None:
    found = diaries()
    found[1].sums |= {name(1): 90, name(3): 90}
    found[2].sums[name(2)] = 90
    taken = account(found, total=90)
    assert (taken.total, taken.sums, taken.complaints) == (90, 3, ())


@pytest.mark.parametrize(("last", "total"), [(89, None), (90, 90)])
def test_a_sum_that_differs_from_what_there_was_is_named(last: int, total: int | None) -> None:
    found = diaries()
    found[1].sums |= {name(1): 90, name(3): last}
    taken = account(found, total=91 if total else 90)
    assert (taken.total, taken.sums) == (total, 2)
    (complaint,) = taken.complaints
    first = name(1) if total else name(3)
    assert (complaint.rule, complaint.nodes, complaint.messages[0]) == ("wrong", (2,), first)
    assert f"came to {last}" in complaint.detail


class OneHost:
    """As much of a host as a diary needs."""

    host = 1
    nodes = (0, 1)
    backlogs = (1,)

    def __init__(self) -> None:
        self.listeners: dict[int, Any] = {}
        self.answers: dict[int, Any] = {}

    def add_listener(self, node: int, listener: Any) -> None:
        self.listeners[node] = listener

    def add_answer_listener(self, node: int, listener: Any) -> None:
        self.answers[node] = listener


@pytest.mark.parametrize("operation", [b"", b"\0", b"\0\xff" * 3000])
def test_what_is_written_down_is_read_again(tmp_path: Path, operation: bytes) -> None:
    host = OneHost()
    diary = Diary(tmp_path, cast(LiveHost, host), remembers=True, values=True)
    first = message_id(1, 7)
    diary.called(first, (2,), operation, read=True)
    replied = Replied(2, pack_bundle(first, [5, 5], [b"\0x", b"\2no"]), Stamp(8, 3), 0)
    host.answers[1](RepliedBundle(replied, unpack_bundle(replied.payload), 9))
    host.listeners[1](Undone(2, Stamp(8, 3)))
    host.listeners[0](Checkpoint(2, Stamp(8, 3), 10, 11, restored=True))
    diary.summed(first, -7)
    diary.close()
    (found,) = read_diaries(tmp_path)
    ((_, *called),) = found.called
    assert called == [first, 2, True, operation]
    assert [answer[1:] for answer in found.answered] == [
        (first, (8, 3), 0, crc32(b"\0x")),
        (first + 1, (8, 3), 2, crc32(b"\2no")),
    ]
    assert values_of([found]) == ({first: operation}, {first: b"\0x", first + 1: b"\2no"})
    assert found.sums == {first: -7}
    assert found.anew == {0}, "a replica that took the state of others owes nothing of what was before"
