"""The account of a live run: each rule finds what breaks it, and names nodes and messages.

Diaries are made up here. A right set of diaries is complained of by nobody; each test breaks one thing.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ordercast.core import (
    ANEW,
    MILLISECOND,
    SECOND,
    Delivered,
    Dropped,
    HostId,
    MessageId,
    Nanos,
    Order,
    OutOfOrder,
    Plan,
    Stamp,
    Unconfirmed,
    Undone,
    View,
    message_id,
)
from ordercast.core.bundle import Bundle, pack_bundle
from ordercast.lab.trial.account import Circumstances, LiveAccount, hosts_hit, outage_limit, take_account
from ordercast.lab.trial.diary import Diary, Got, LifeDiary, Sent, Told, read_diaries
from ordercast.lab.trial.stage import CrashTime
from ordercast.net.host.delivered import DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.protocols.layer import LayerOptions
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Crash, Heal, Partition, Pause, Weather
from ordercast.scenario.spec import Scenario

DURABLE = {"durable": True, "resend": True}
LIVE = Scenario(protocol="hydra", senders=3, colocated=True, options=DURABLE, live_options=True)
PLAN = LIVE.plan()
"""Receivers 0, 1 and 2 with the senders 3, 4 and 5 beside them."""
COUNT = 30
EVERY = 10 * MILLISECOND
DELAY = 3 * MILLISECOND
KILL = 152 * MILLISECOND
"""When a host is killed: after 15 messages were delivered, and the 16th was accepted."""


def message(number: int) -> MessageId:
    """Senders take turns."""
    return message_id(3 + number % 3, number)


MESSAGES = [message(number) for number in range(COUNT)]


def diaries() -> dict[HostId, LifeDiary]:
    """One life of each host, in which everything comes to everybody in one order."""
    found = {host: LifeDiary(host) for host in range(3)}
    for number, one in enumerate(MESSAGES):
        found[number % 3].sent.append(Sent(number * EVERY, one, (0,)))
        for host in range(3):
            found[host].got.setdefault(host, []).append(Got(number * EVERY + DELAY, one))
    return found


def account(
    written: Iterable[LifeDiary],
    plan: Plan = PLAN,
    *,
    killed: Iterable[tuple[HostId, Nanos]] = (),
    back: bool = True,
    **changes: object,
) -> LiveAccount:
    crashes = [CrashTime(host, time, time) for host, time in killed]
    told = Circumstances(
        crashes=crashes,
        up=frozenset(range(3)) - (frozenset() if back else {crash.host for crash in crashes}),
        hit=frozenset(crash.host for crash in crashes),
        limit_ns=SECOND,
        complete=True,
        bundled=False,
    )
    return take_account(plan, list(written), msgspec.structs.replace(told, **changes))


def restarted(host: HostId, *, remembers: bool = True, skipped: int = 0) -> list[LifeDiary]:
    """A host that was killed and came back; its receiver lost some messages between its two lives."""
    whole = diaries()
    first, second = whole[host], LifeDiary(host, 2 * KILL, remembers=remembers)
    got = first.got[host]
    first.got = {host: got[:15]}
    second.got = {host: got[15 + skipped :]}
    first.sent = [one for one in first.sent if one.time_ns <= KILL]
    others = [diary for other, diary in whole.items() if other != host]
    return [*others, first, second]


def complaint(found: LiveAccount, rule: str) -> str:
    """The only complaint."""
    (only,) = found.complaints
    assert only.rule == rule
    return only.detail


def test_what_all_receivers_got_in_one_order_gives_no_complaint() -> None:
    found = account(diaries().values())
    assert found.complaints == ()
    assert (found.accepted, found.delivered) == (COUNT, COUNT)
    assert (found.missing, found.twice, found.disorder, found.dropped, found.unconfirmed) == (0, 0, 0, 0, 0)
    assert found.outage_ns == DELAY, "a message was accepted, and came this much later"


# Missing without notice


def without(written: dict[HostId, LifeDiary], host: HostId, *numbers: int) -> dict[HostId, LifeDiary]:
    lost = {message(number) for number in numbers}
    written[host].got[host] = [got for got in written[host].got[host] if got.message not in lost]
    return written


def test_a_message_that_one_receiver_never_got_is_named() -> None:
    found = account(without(diaries(), 1, 7).values())
    assert (found.missing, found.delivered) == (1, COUNT - 1)
    assert complaint(found, "missing") == "node 1 never got 4#7 and nobody was told"


def test_only_as_many_messages_may_be_missing_as_drops_were_told() -> None:
    written = without(diaries(), 1, 7, 8, 20)
    written[1].told[1] = [Told(0, 6, 40, 2), Told(0, 6, 41, 1)]
    found = account(written.values())
    assert (found.missing, found.dropped) == (1, 2), "one drop was told twice"
    detail = "node 1 never got 4#7, 5#8, 5#20 and nobody was told (it was told of 2 drops)"
    assert complaint(found, "missing") == detail
    written[1].told[1].append(Told(0, 7, 40, 1))
    assert account(written.values()).complaints == ()
    written[2].told[2], written[1].told = written[1].told[1], {}
    assert complaint(account(written.values()), "missing"), "drops that another receiver was told of"


def test_a_packet_with_several_messages_is_one_drop() -> None:
    written = diaries()
    lost = [message_id(3, 100), message_id(3, 101), message_id(3, 103)]
    written[0].sent += [Sent(0, one, (0,)) for one in lost]
    written[0].told[0], written[1].told[1], written[2].told[2] = ([Told(0, 6, 40, 2)] for _ in range(3))
    assert account(written.values(), bundled=True).complaints == ()
    found = account(written.values())
    assert found.missing == 3 and {one.nodes for one in found.complaints} == {(0,), (1,), (2,)}


def test_a_sender_that_was_told_knows_what_is_missing() -> None:
    written = without(without(diaries(), 1, 7), 2, 7)
    assert account(written.values()).missing == 2
    written[1].unconfirmed.append(message(7))
    found = account(written.values())
    assert found.complaints == () and (found.unconfirmed, found.delivered) == (1, COUNT - 1)


def test_a_receiver_that_was_told_that_it_starts_anew_is_owed_nothing() -> None:
    written = without(diaries(), 1, 7)
    written[1].anew.add(2)
    assert complaint(account(written.values()), "missing"), "another receiver starts anew"
    written[1].anew = {1}
    found = account(written.values())
    assert found.complaints == () and (found.missing, found.delivered) == (0, COUNT)


def test_nothing_is_owed_for_an_application_whose_host_was_killed_nor_to_one_that_stays_away() -> None:
    written = diaries()
    written[0].got[0] = written[0].got[0][:15]
    assert account(without(written, 1, 15).values(), killed=[(0, KILL)], back=False).complaints == ()
    assert complaint(account(without(written, 1, 16).values(), killed=[(0, KILL)], back=False), "missing")


def test_a_protocol_that_promises_no_delivery_breaks_no_promise() -> None:
    plan = msgspec.structs.replace(LIVE, options={"resend": False}).plan()
    found = account(without(diaries(), 1, 7).values(), plan)
    assert found.missing == 1 and found.complaints == ()
    assert account(without(diaries(), 1, 7).values(), complete=False).complaints == ()
    probable = Scenario(protocol="epto", senders=3).plan()
    assert complaint(account(without(diaries(), 1, 7).values(), probable), "missing")
    found = account(without(diaries(), 1, 7).values(), probable, limit_ns=None)
    assert found.missing == 1 and found.complaints == (), "with the timeouts of the simulator"


def test_a_receiver_that_comes_back_gets_what_it_missed() -> None:
    assert account(restarted(1), killed=[(1, KILL)]).complaints == ()
    found = account(restarted(1, skipped=1), killed=[(1, KILL)])
    assert found.complaints == () and found.in_flight == 1, "it was being handed over"
    found = account(restarted(1, skipped=3), killed=[(1, KILL)])
    detail = "node 1 never got 5#17 and nobody was told"
    assert complaint(found, "missing") == detail, "it was sent after the receiver was killed"
    found = account(restarted(1, skipped=3, remembers=False), killed=[(1, KILL)])
    assert found.complaints == (), "a new member does not get what was sent before"


def test_what_was_being_handed_over_may_have_messages_of_its_own_host_in_between() -> None:
    killed = KILL + EVERY  # node 0 got nothing of 3#15, which host 0 accepted, and of 4#16
    found = account(restarted(0, skipped=2), killed=[(0, killed)])
    assert found.complaints == () and found.in_flight == 1
    found = account(restarted(0, skipped=3), killed=[(0, killed)])
    assert complaint(found, "missing") == "node 0 never got 5#17 and nobody was told"


# Twice


def test_a_message_that_comes_twice_is_named_over_lives_too() -> None:
    written = diaries()
    written[2].got[2].append(Got(SECOND, message(3)))
    found = account(written.values())
    assert found.twice == 1 and complaint(found, "twice") == "node 2 got 3#3 more than once"
    again = restarted(1)
    again[-1].got[1].insert(0, Got(KILL, message(14)))
    assert complaint(account(again, killed=[(1, KILL)]), "twice") == "node 1 got 5#14 more than once"
    again[-1].remembers = False
    assert account(again, killed=[(1, KILL)]).complaints == (), "a new member remembers nothing"


# One order


def test_two_receivers_that_disagree_are_named_with_two_messages() -> None:
    written = diaries()
    got = written[2].got[2]
    got[4], got[5] = got[5], got[4]
    found = account(written.values())
    assert found.disorder == len(found.complaints) == 2
    assert {one.nodes for one in found.complaints} == {(0, 2), (1, 2)}
    assert found.complaints[0].detail == "node 0 got 4#4 before 5#5, but node 2 got it after"
    got[4] = got[4]._replace(in_order=False)
    assert account(written.values()).complaints == (), "it was tagged as out of order"


def test_messages_far_apart_are_compared_although_others_are_missing_between_them() -> None:
    written = without(diaries(), 2, *range(5, 25))
    got = written[2].got[2]
    got[4], got[5] = got[5], got[4]
    written[2].told[2] = [Told(0, 6, 0, 20)]
    assert account(written.values()).complaints[0].messages == (message(4), message(25))


def test_a_protocol_without_order_breaks_no_promise() -> None:
    plan = Scenario(protocol="unordered", senders=3, colocated=True).plan()
    written = diaries()
    written[2].got[2].reverse()
    found = account(written.values(), plan)
    assert found.disorder == 2 and found.complaints == ()


@pytest.mark.parametrize(("order", "disagreements"), [(Order.GROUP, 0), (Order.ACROSS, 2)])
def test_groups_disagree_only_if_all_have_one_order(order: Order, disagreements: int) -> None:
    promised = msgspec.structs.replace(PLAN.guarantees, order=order)
    plan = replace(PLAN, groups={0: (0,), 1: (1,), 2: (2,)}, guarantees=promised)
    written = diaries()
    got = written[2].got[2]
    got[4], got[5] = got[5], got[4]
    assert account(written.values(), plan).disorder == disagreements


# Outage


def later(written: dict[HostId, LifeDiary], host: HostId, after: int, by: Nanos) -> dict[HostId, LifeDiary]:
    """From some message on, a receiver gets everything later."""
    got = written[host].got[host]
    got[after:] = [one._replace(time_ns=one.time_ns + by) for one in got[after:]]
    return written


def test_a_receiver_that_waits_too_long_is_named() -> None:
    found = account(later(diaries(), 1, 10, 1100 * MILLISECOND).values())
    assert found.outage_ns == 1103 * MILLISECOND
    detail = "node 1 got nothing for 1.1 s, from 100 ms on, while messages were sent; the limit is 1 s"
    assert complaint(found, "outage") == detail
    assert account(later(diaries(), 1, 10, 900 * MILLISECOND).values()).complaints == ()


@pytest.mark.parametrize("changes", [{"hit": frozenset({1})}, {"limit_ns": None}])
def test_nobody_asks_how_long_a_host_waited_that_was_hit_or_has_no_limit(changes: dict[str, Any]) -> None:
    assert account(later(diaries(), 1, 10, 2 * SECOND).values(), **changes).complaints == ()


def test_a_pause_of_the_senders_is_no_outage_and_a_receiver_that_stops_is_one() -> None:
    written = diaries()
    for diary in written.values():
        diary.sent = [
            one._replace(time_ns=one.time_ns + 5 * SECOND * (one.time_ns > KILL)) for one in diary.sent
        ]
        for host, got in diary.got.items():
            diary.got[host] = [
                one._replace(time_ns=one.time_ns + 5 * SECOND * (one.time_ns > KILL + DELAY)) for one in got
            ]
    assert account(written.values()).outage_ns == DELAY
    for number in range(COUNT):
        written[0].sent.append(Sent(6 * SECOND + number * SECOND, message_id(3, 100 + number), (0,)))
        written[0].got[0].append(Got(6 * SECOND + number * SECOND, message_id(3, 100 + number)))
        written[1].got[1].append(Got(6 * SECOND + number * SECOND, message_id(3, 100 + number)))
    found = account(written.values())
    assert found.outage_ns == 29 * SECOND
    assert {(one.rule, one.nodes) for one in found.complaints} == {("missing", (2,)), ("outage", (2,))}


def test_the_limit_is_five_times_the_detection_time_or_the_pace() -> None:
    assert outage_limit(LIVE, PLAN) == 5 * 1300 * MILLISECOND, "the service misses its leader in 1.3 s"
    epto = Scenario(protocol="epto", live_options=True)
    pace = epto.plan().pace(0)
    assert pace is not None and outage_limit(epto, epto.plan()) == 5 * pace.delivery_ns
    assert outage_limit(Scenario(protocol="epto"), epto.plan()) is None, "these are the simulator's timeouts"


def test_a_layer_detects_failures_like_the_protocol_below() -> None:
    slow = {"suspect_ns": 2 * SECOND}
    assert LayerOptions(over="hydra", below=slow).detection_ns == 2 * SECOND
    assert LayerOptions(over="unordered").detection_ns == 0


def test_a_fault_is_aimed_at_its_host_and_a_partition_at_its_smaller_sides() -> None:
    sides = ((0, 1, 2), (3,), (4, 5))
    faults = (
        Crash(at_ms=1, host=7),
        Pause(at_ms=1, host=8, for_ms=2),
        Partition(at_ms=1, sides=sides),
        Heal(at_ms=2),
        Weather(at_ms=3, conditions=Conditions(loss=0.1)),
    )
    assert hosts_hit(faults) == {3, 4, 5, 7, 8}


# Diaries


class Outlet:
    """Stands in for a host: keeps the listeners."""

    backlogs = ()

    def __init__(self) -> None:
        self.host, self.nodes = 1, {1: None, 4: None}
        self.listeners: dict[int, Any] = {}

    def add_listener(self, node: int, listener: Any) -> None:
        self.listeners[node] = listener


def test_a_diary_is_read_as_it_was_written_and_a_torn_line_is_not(tmp_path: Path) -> None:
    host = Outlet()
    diary = Diary(tmp_path, cast("LiveHost", host), remembers=True)
    diary.sent(77, (0, 2))
    bundle = Bundle(77, [0, 0], [b"", b""])
    for kind in (Delivered, OutOfOrder):
        host.listeners[1](DeliveredBundle(kind(b"", (0,), 4), bundle, 5))
    for clock in (8, 9):
        at = Delivered(b"", (0,), 4, Stamp(clock, 6))
        host.listeners[1](DeliveredBundle(at, Bundle(90 + clock, [0], [b""]), 5))
    host.listeners[1](Undone(0, Stamp(8, 6)))
    host.listeners[1](Dropped(0, 6, 40, 1, 3))
    host.listeners[1](View(0, 1, (0, 1)))
    host.listeners[4](View(0, 2, (0, 1), ANEW))
    host.listeners[4](Unconfirmed(0, (0,), pack_bundle(77, [0, 0], [b"", b""])))
    diary.close()
    second = Diary(tmp_path, cast("LiveHost", host), remembers=False)
    second.sent(99, (0,))
    second.close()
    with (tmp_path / "1-1").open("a") as file:
        file.write("sent 12345 10")
    (tmp_path / "1-2").write_text("li")
    first, last = read_diaries(tmp_path)
    assert (first.host, first.remembers, last.remembers) == (1, True, False)
    assert first.began_ns <= first.sent[0].time_ns <= last.began_ns
    assert [(one.message, one.groups) for one in first.sent] == [(77, (0, 2))]
    got = [(one.message, one.in_order) for one in first.got[1]]
    assert got == [(77, True), (78, True), (77, False), (78, False), (98, True)], "99 was taken back"
    assert first.told == {1: [Told(0, 6, 40, 3)]} and first.unconfirmed == [77, 78]
    assert (first.anew, last.anew) == ({4}, set())
    assert [one.message for one in last.sent] == [99]
