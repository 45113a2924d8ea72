"""Rates, delays, clocks and what follows from them (sections 4.3 and 6 of the hybrid paper)."""

from itertools import permutations
from typing import Literal

import pytest

from ordercast.components.ticketing.adaptive import AdaptiveOptions
from ordercast.components.ticketing.assignment import assign
from ordercast.components.ticketing.detectors import ShiftDetector, make_detector
from ordercast.components.ticketing.estimates import Estimates
from ordercast.components.ticketing.modes import Mode
from ordercast.components.ticketing.switching import Wish, is_nearer, wish
from ordercast.components.ticketing.ticket_clock import TicketClock
from ordercast.core import MILLISECOND, Deployment, LocalError
from ordercast.protocols.static_hybrid import StaticHybridOptions, deploy
from tests.ticketing.hall import Hall

NEAR, FAR = 20 * MILLISECOND, 540 * MILLISECOND
HIGH, LOW = 10 * MILLISECOND, 1000 * MILLISECOND


def two_sites() -> dict[tuple[int, int], int]:
    """Nodes 0, 1, 2 at one place, nodes 3 and 4 at another, as in section 4.4."""
    return {(one, other): NEAR if (one < 3) == (other < 3) else FAR for one in range(5) for other in range(5)}


def test_heavily_loaded_processes_far_away_are_active_and_the_others_passive() -> None:
    found = assign({0: HIGH, 1: LOW, 2: LOW, 3: HIGH, 4: LOW}, two_sites())
    assert found.actives == (0, 3)
    assert found.sequencers == {1: 0, 2: 0, 4: 3}


def test_a_slow_process_is_passive_even_if_it_is_far_away() -> None:
    found = assign({0: HIGH, 1: HIGH, 2: LOW, 3: LOW, 4: LOW}, two_sites())
    assert found.actives == (0, 1)  # 10 ms between messages, 20 ms to the sequencer
    assert found.sequencers == {2: 0, 3: 0, 4: 0}


def test_if_all_are_fast_all_are_active() -> None:
    assert assign(dict.fromkeys(range(5), HIGH), two_sites()).actives == (0, 1, 2, 3, 4)


def test_an_assignment_needs_members_and_delays() -> None:
    with pytest.raises(LocalError, match="at least one member"):
        assign({}, {})
    with pytest.raises(LocalError, match="delay between nodes 1 and 0"):
        assign({0: 1, 1: 2}, {})


def value(detector: ShiftDetector) -> int:
    """The value of a detector; -1 if it has none."""
    return -1 if detector.value is None else detector.value


def test_the_mean_shifts_when_k_samples_in_a_row_are_on_one_side() -> None:
    detector = make_detector("mean-shift", 3)
    for sample in (10, 20):
        detector.add(sample)
    assert value(detector) == -1
    detector.add(30)
    assert value(detector) == 20
    for sample in (50, 10, 50, 50, 10, 60, 50):
        detector.add(sample)
    assert value(detector) == 20  # never three in a row
    detector.add(70)
    assert value(detector) == 60


def test_samples_on_the_mean_move_nothing() -> None:
    detector = make_detector("mean-shift", 2)
    for _ in range(10):
        detector.add(5)
    assert value(detector) == 5


def test_the_weighted_mean_moves_with_hysteresis() -> None:
    detector = make_detector("ewma", 4)
    for _ in range(4):
        detector.add(100)
    assert value(detector) == 100
    detector.add(110)
    assert value(detector) == 100
    for _ in range(20):
        detector.add(200)
    assert 150 < value(detector) <= 200


def test_a_silence_of_k_intervals_counts_as_k_samples() -> None:
    estimates = Estimates("mean-shift", 2)
    for time in (0, 10, 20):
        estimates.message_at(1, time)
    assert estimates.interval(1) == 10
    assert estimates.own_interval(1, now=39) == 10  # not yet two intervals
    assert estimates.own_interval(1, now=500) == 240
    assert estimates.own_interval(2, now=500) is None


@pytest.mark.parametrize(("detector", "expected"), [("mean-shift", 240), ("ewma", 182)])
def test_a_silence_still_counts_after_the_message_that_ends_it(
    detector: Literal["mean-shift", "ewma"], expected: int
) -> None:
    estimates = Estimates(detector, 2)
    for time in (0, 10, 20, 500):
        estimates.message_at(1, time)
    assert estimates.interval(1) == estimates.own_interval(1, now=501) == expected
    for time in (510, 520):
        estimates.message_at(1, time)
    assert estimates.interval(1) == (10 if detector == "mean-shift" else 53)  # two samples on the other side


@pytest.mark.parametrize("detector", ["mean-shift", "ewma"])
def test_messages_of_one_moment_count_as_one_and_a_clock_set_back_says_nothing(
    detector: Literal["mean-shift", "ewma"],
) -> None:
    estimates = Estimates(detector, 2)
    believed = []
    for time in (10, 20, 30, 30, 30, 30, 40, 5, 15, 25):
        estimates.message_at(1, time)
        believed.append(estimates.interval(1))
    assert believed == [None, None] + [10] * 8


def test_what_waited_during_an_outage_does_not_look_like_a_fast_sender() -> None:
    hall = Hall(3, [0], samples=2)
    hall.change((0, 1))
    for turn in range(6):
        hall.say(2, f"{turn}")
        hall.drivers[2].pass_time(10 * MILLISECOND)
    hall.change((0, 1, 2))
    hall.flow()
    assert hall.log() == [str(turn) for turn in range(6)]
    believed = {node: hall.member(node).estimates.interval(2) for node in range(3)}
    assert believed == dict.fromkeys(range(3), 10 * MILLISECOND)


def test_a_member_cannot_send_during_a_change_of_the_view_and_still_knows_its_rate() -> None:
    hall = Hall(2, [0, 1], AdaptiveOptions(samples=2, decide_ns=10 * MILLISECOND))
    for _ in range(2):
        hall.member(1).estimates.round_trip(0, 60 * MILLISECOND)
    hall.stop()
    for turn in range(20):
        hall.say(1, f"{turn}")
        hall.drivers[1].pass_time(10 * MILLISECOND)
    assert hall.member(1).mode is Mode.ACTIVE


def test_the_delay_is_half_of_a_round_trip() -> None:
    estimates = Estimates("mean-shift", 1)
    estimates.round_trip(3, 40)
    estimates.round_trip(3, 100)
    estimates.round_trip(3, -5)  # a clock was set; it says nothing
    assert (estimates.delay(3), estimates.shortest(3)) == (50, 20)
    estimates.forget((1, 2))
    assert (estimates.delay(3), estimates.shortest(3)) == (None, 0)


@pytest.mark.parametrize(
    ("active", "interval", "expected"),
    [
        (False, 79, Wish.ACTIVE),
        (False, 81, Wish.STAY),
        (False, 119, Wish.STAY),
        (True, 119, Wish.STAY),
        (True, 121, Wish.PASSIVE),
        (True, 81, Wish.STAY),
        (True, None, Wish.STAY),
    ],
)
def test_a_member_switches_beyond_the_threshold(active: bool, interval: int | None, expected: Wish) -> None:
    assert wish(active, interval, 100, 0.2) is expected


def test_a_sequencer_must_be_nearer_by_the_threshold() -> None:
    assert is_nearer(79, 100, 0.2)
    assert not is_nearer(81, 100, 0.2)
    assert not is_nearer(None, 100, 0.2)


def test_a_ticket_clock_advances_with_time_and_never_repeats_a_number() -> None:
    clock = TicketClock()
    assert clock.read(5_000) == 5
    assert [clock.issue(5_000) for _ in range(3)] == [6, 7, 8]
    assert clock.issue(20_000) == 20
    clock.follow(100, delay_ns=30_000, now=20_000)
    assert clock.read(20_000) == 130  # the sender's clock went on while the number travelled
    assert clock.read(50_000) == 160


def test_two_clocks_do_not_drive_each_other_ahead() -> None:
    clocks = [TicketClock(), TicketClock()]
    delay, now = 10_000_000, 0
    for turn in range(100):
        number = clocks[turn % 2].read(now)
        now += delay
        clocks[1 - turn % 2].follow(number, delay, now)
    assert clocks[0].read(now) == clocks[1].read(now) == now // 1000


def test_a_slow_member_becomes_passive_and_a_fast_one_active() -> None:
    hall = Hall(2, [0, 1], AdaptiveOptions(samples=2, decide_ns=10 * MILLISECOND))
    for _ in range(2):
        hall.member(1).estimates.round_trip(0, 60 * MILLISECOND)
    for turn in range(4):
        hall.say(1, f"slow {turn}")
        hall.flow()
        hall.drivers[1].pass_time(100 * MILLISECOND)
        hall.flow()
    assert hall.member(1).mode is Mode.PASSIVE
    for turn in range(40):
        hall.say(1, f"fast {turn}")
        while sum(hall.step(*pair) for pair in hall.channels):
            pass
        hall.drivers[1].pass_time(MILLISECOND)
    assert hall.member(1).mode is Mode.ACTIVE
    told = hall.member(1).explain().state
    assert told["mode"] == "active"
    assert "30 ms away" in str(told["member 0"])
    hall.flow()
    assert len(hall.log()) == 44


@pytest.mark.parametrize("sent", [0, 1])
def test_a_member_that_is_silent_becomes_passive_without_knowing_its_rate(sent: int) -> None:
    hall = Hall(2, [0, 1], AdaptiveOptions(samples=2, decide_ns=10 * MILLISECOND))
    hall.say(1, *"a"[:sent])
    for _ in range(2):
        hall.member(1).estimates.round_trip(0, 60 * MILLISECOND)
    hall.drivers[1].pass_time(70 * MILLISECOND)
    assert hall.member(1).mode is Mode.ACTIVE  # less than two times 36 ms, the delay and its threshold
    hall.drivers[1].pass_time(10 * MILLISECOND)
    hall.flow()
    assert hall.modes() == ["active", "passive"]
    assert hall.member(1).own_rate() == "too few messages to know a rate"
    assert hall.log() == ["a"][:sent]


def test_a_passive_member_does_not_become_active_by_its_first_messages() -> None:
    hall = Hall(2, [0], AdaptiveOptions(samples=3, decide_ns=10 * MILLISECOND))
    for _ in range(3):
        hall.member(1).estimates.round_trip(0, 60 * MILLISECOND)
    for turn in range(2):
        hall.say(1, f"{turn}")
        hall.drivers[1].pass_time(10 * MILLISECOND)
    assert hall.member(1).mode is Mode.PASSIVE


def test_of_members_that_never_sent_one_stays_active() -> None:
    hall = Hall(3, [0, 1, 2], AdaptiveOptions(samples=2, decide_ns=10 * MILLISECOND))
    for one, other in permutations(range(3), 2):
        for _ in range(2):
            hall.member(one).estimates.round_trip(other, 60 * MILLISECOND)
    hall.flow()
    assert sorted(hall.modes()) == ["active", "passive", "passive"]


def test_roles_are_given_or_computed() -> None:
    deployment = Deployment(((0, 1, 2),), senders=2)
    delays = tuple(tuple(NEAR if (a < 3) == (b < 3) else FAR for b in range(5)) for a in range(5))
    computed = StaticHybridOptions(rates_per_s=(100, 1, 1, 100, 1), delays_ns=delays)
    assert computed.roles(tuple(range(5))).actives == frozenset({0, 3})
    assert StaticHybridOptions(active=(1, 2)).roles(tuple(range(5))).actives == frozenset({1, 2})
    assert StaticHybridOptions().roles(tuple(range(5))).actives == frozenset({0})
    with pytest.raises(LocalError, match="9 is not a node"):
        deploy(deployment, StaticHybridOptions(active=(9,)))
    with pytest.raises(LocalError, match="not both"):
        StaticHybridOptions(active=(1,), rates_per_s=(1.0,), delays_ns=((0,),))
    with pytest.raises(LocalError, match="there are 5 nodes"):
        deploy(deployment, StaticHybridOptions(rates_per_s=(1.0,), delays_ns=((0,),)))
