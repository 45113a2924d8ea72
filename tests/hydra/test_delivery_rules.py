"""Hydra section 4.3.2: the four rules of delivery, their invariant, and notifications that are held back."""

from random import Random

import pytest

from ordercast.core import MILLISECOND, Delivered, Dropped
from ordercast.protocols.hydra.options import HydraOptions
from tests.hydra.lab import MEMBERS, QUIET, ReceiverBench, one_by_one, receiver

G1 = "<G,1,{{(1,{0})}},{1}>"
G2 = "<G,2,{{(1,{0})}},{1}>"

PATIENT = HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=500, repair=False)


def g1(number: int, clock: int) -> str:
    return G1.format(number, clock)


def g2(number: int, clock: int) -> str:
    return G2.format(number, clock)


def flush(sequencer: int, number: int, clock: int) -> str:
    return f"<F,{sequencer},{{(1,{number})}},{clock}>"


# Rule (i): pending messages go in the order of clock and sequencer.


def test_rule_1_messages_go_in_the_order_of_clocks_whatever_order_they_came_in() -> None:
    lab = receiver(initial={1: 21, 2: 22, 3: 23})
    assert lab.gives(g2(1, 30), g1(1, 20), g2(2, 40), g1(2, 50)) == []
    assert lab.gives("<F,3,{(1,0)},60>") == [g1(1, 20), g2(1, 30), g2(2, 40)]


def test_rule_1_equal_clocks_go_in_the_order_of_sequencers() -> None:
    lab = receiver()
    assert lab.gives(g2(1, 10)) == []
    assert lab.gives(g1(1, 10)) == [g1(1, 10)], "sequencer 2 is at 10, which is after (10, 1)"
    assert lab.gives(flush(1, 1, 11)) == [g2(1, 10)]


def test_rule_1_an_equal_clock_of_a_lower_sequencer_holds_back_and_of_a_higher_one_does_not() -> None:
    lab = receiver()
    assert lab.gives(flush(1, 0, 10), g2(1, 11)) == []
    assert lab.gives(flush(1, 0, 11)) == [], "sequencer 1 is at (11, 1), which is before (11, 2)"
    assert lab.gives(flush(1, 0, 12)) == [g2(1, 11)]
    other = receiver()
    assert other.gives(flush(2, 0, 11), g1(1, 11)) == [g1(1, 11)]


# Rule (ii): one thing for each number.


def test_rule_2_a_copy_is_not_delivered_again() -> None:
    lab = receiver()
    assert lab.gives(g1(1, 10), g1(1, 10), flush(2, 0, 20), g1(1, 10)) == [g1(1, 10)]


def test_rule_2_a_copy_in_the_buffer_is_not_kept_twice() -> None:
    lab = receiver()
    lab.hears(g1(1, 10), g1(1, 10), g1(3, 30), g1(3, 30))
    assert lab.buffer() == [g1(1, 10), g1(3, 30)]


def test_rule_2_a_number_that_was_notified_of_is_not_delivered() -> None:
    lab = receiver()
    assert lab.gives(g2(1, 5), g1(2, 20), flush(2, 1, 30)) == ["<D,1,1>", g2(1, 5), g1(2, 20)]
    assert lab.gives(g1(1, 10), flush(1, 2, 40), flush(2, 1, 40)) == []


def test_rule_2_a_number_that_was_delivered_is_not_notified_of() -> None:
    lab = receiver()
    assert lab.gives(g1(1, 10), flush(2, 0, 30)) == [g1(1, 10)]
    assert lab.gives(flush(1, 1, 40), flush(2, 0, 40), flush(1, 0, 35)) == []


# Rule (iii): nothing above c_min.


def test_rule_3_a_message_waits_for_the_slowest_sequencer() -> None:
    lab = receiver(initial={1: 21, 2: 22, 3: 23})
    assert lab.gives(g1(1, 10), flush(2, 0, 50)) == []
    assert lab.gives("<F,3,{(1,0)},9>") == []
    assert lab.gives("<F,3,{(1,0)},10>") == [g1(1, 10)]


def test_rule_3_one_sequencer_alone_waits_for_nobody() -> None:
    lab = receiver(initial={1: 21})
    assert lab.gives(g1(1, 10)) == [g1(1, 10)]


# Rule (iv): gaps are notified of.


@pytest.mark.parametrize("revealer", [g1(4, 40), flush(1, 4, 40)])
def test_rule_4_every_number_between_is_notified_of_once(revealer: str) -> None:
    lab = receiver()
    lab.hears(g1(1, 10), revealer)
    given = lab.gives(g2(1, 60), flush(1, 4, 60), flush(2, 1, 70), flush(1, 4, 80))
    missing = [number for number in (2, 3, 4) if g1(number, 40) != revealer]
    assert [text for text in given if text.startswith("<D")] == [f"<D,1,{number}>" for number in missing]
    assert given[0] == g1(1, 10)
    assert g2(1, 60) in given


def test_rule_4_a_notification_comes_before_the_message_behind_it() -> None:
    lab = receiver()
    lab.hears(g1(2, 20), g1(4, 40), g2(1, 50))
    assert lab.gives(flush(1, 4, 90)) == ["<D,1,1>", g1(2, 20), "<D,1,3>", g1(4, 40), g2(1, 50)]


def test_rule_4_a_message_behind_a_gap_of_its_own_sequencer_needs_the_notification() -> None:
    lab = receiver(initial={1: 21})
    assert lab.gives(g1(1, 10), g1(3, 30)) == [g1(1, 10), "<D,1,2>", g1(3, 30)]
    assert receiver().gives(g1(2, 20), flush(2, 0, 30)) == ["<D,1,1>", g1(2, 20)]


def test_rule_4_numbers_of_other_groups_leave_no_gap() -> None:
    lab = receiver()
    given = lab.gives("<G,1,{(0,9),(1,1),(2,7)},10>", "<F,1,{(0,30),(1,1),(2,40)},50>", flush(2, 0, 60))
    assert given == ["<G,1,{(0,9),(1,1),(2,7)},10>"]


# The invariant of section 4.3.2.


@pytest.mark.parametrize("seed", range(30))
def test_what_is_not_above_c_min_was_received_or_a_higher_number_was(seed: int) -> None:
    rng = Random(f"invariant/{seed}")
    initial = {number: 20 + number for number in range(1, rng.randint(3, 6))}
    lab = receiver(initial=initial)
    stream: list[tuple[int, int, str]] = []
    now, numbers, clocks = 0, dict.fromkeys(initial, 0), dict.fromkeys(initial, 0)
    stamped: dict[tuple[int, int], tuple[int, int]] = {}
    for _ in range(60):
        now += rng.randint(0, 2)
        sequencer = rng.choice(list(initial))
        clock = clocks[sequencer] = max(now, clocks[sequencer] + 1)
        if rng.random() < 0.3:
            text = flush(sequencer, numbers[sequencer], clock)
        else:
            numbers[sequencer] += 1
            stamped[sequencer, numbers[sequencer]] = (clock, sequencer)
            text = f"<G,{sequencer},{{(1,{numbers[sequencer]})}},{clock}>"
        stream.append((sequencer, numbers[sequencer], text))
    received = dict.fromkeys(initial, 0)
    for index in sorted(range(len(stream)), key=lambda place: place + rng.randint(0, 6)):
        if rng.random() < 0.2:
            continue
        sequencer, number, text = stream[index]
        received[sequencer] = max(received[sequencer], number)
        lab.hears(text)
        c_min = lab.c_min()
        for (issuer, known), place in stamped.items():
            assert place > c_min or known <= received[issuer]
    check_settled(lab)


def check_settled(lab: ReceiverBench) -> None:
    """Each number of each sequencer once and in order, messages in order."""
    last: dict[int, int] = {}
    place = (0, 0)
    assert lab.env.delivered
    for delivery in one_by_one(lab.env.delivered):
        if isinstance(delivery, Dropped):
            issuer, number = delivery.issuer, delivery.number
        else:
            assert isinstance(delivery, Delivered) and delivery.stamp is not None
            issuer, number = delivery.stamp.issuer, delivery.stamp.numbers[0]
            assert place < (delivery.stamp.clock, issuer)
            place = (delivery.stamp.clock, issuer)
        assert number == last.get(issuer, 0) + 1
        last[issuer] = number


# Notifications may wait until they are needed, and then late packets still count.


def test_a_notification_that_nothing_needs_is_held_back_and_a_late_packet_is_delivered() -> None:
    lab = receiver()
    assert lab.gives(g1(1, 10), g1(3, 30), flush(2, 0, 15)) == [g1(1, 10)]
    assert lab.gives(g1(2, 20)) == []
    assert lab.gives(flush(2, 0, 31)) == [g1(2, 20), g1(3, 30)]


def test_what_comes_early_waits_for_those_before_it_and_not_behind_other_gaps() -> None:
    lab = receiver()
    assert lab.gives(g1(2, 20), g1(4, 40), flush(2, 0, 5)) == []
    assert lab.gives(g1(1, 10), flush(2, 0, 25)) == [g1(1, 10), g1(2, 20)]
    assert lab.gives(g1(3, 30), flush(2, 0, 41)) == [g1(3, 30), g1(4, 40)]


def test_patience_holds_a_needed_notification_back_for_so_long() -> None:
    lab = receiver(PATIENT)
    assert lab.gives(g1(2, 20), g2(1, 10)) == []
    lab.pass_time(499)
    assert lab.delivered() == []
    lab.pass_time(1)
    assert lab.delivered() == ["<D,1,1>", g2(1, 10)]


def test_within_the_patience_a_late_packet_is_delivered() -> None:
    lab = receiver(PATIENT)
    assert lab.gives(g1(2, 20), g2(1, 19), flush(2, 1, 30)) == []
    lab.pass_time(400)
    assert lab.gives(g1(1, 10)) == [g1(1, 10), g2(1, 19), g1(2, 20)]
    lab.pass_time(1000)
    assert lab.delivered() == []


def test_patience_begins_anew_for_a_gap_found_after_the_last_one_was_filled() -> None:
    lab = receiver(
        HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=500, repair=False), initial={1: 21}
    )
    assert lab.gives(g1(2, 20)) == []
    lab.pass_time(400)
    assert lab.gives(g1(1, 10)) == [g1(1, 10), g1(2, 20)]
    lab.pass_time(400)
    assert lab.gives(g1(4, 40)) == []
    lab.pass_time(499)
    assert lab.gives(g1(3, 30)) == [g1(3, 30), g1(4, 40)]


def test_gaps_known_together_are_waited_for_together() -> None:
    lab = receiver(
        HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=500, repair=False), initial={1: 21}
    )
    assert lab.gives(g1(2, 20), g1(4, 40), g1(6, 60)) == []
    lab.pass_time(400)
    assert lab.gives(g1(8, 80)) == []
    lab.pass_time(100)
    assert lab.delivered() == ["<D,1,1>", g1(2, 20)], "4 and 6 were not known when the wait began"
    lab.pass_time(500)
    assert lab.delivered() == ["<D,1,3>", g1(4, 40), "<D,1,5>", g1(6, 60), "<D,1,7>", g1(8, 80)]


def test_the_loss_of_the_last_message_is_noticed_by_a_heartbeat() -> None:
    lab = receiver()
    assert lab.gives(g1(1, 10), flush(2, 0, 20)) == [g1(1, 10)]
    lab.pass_time(MILLISECOND)
    lab.hears(flush(1, 2, 30), flush(2, 0, 30))
    assert lab.delivered() == [], "nothing needs it yet"
    lab.pass_time(QUIET.hold_ns + QUIET.suspect_ns // 3)
    assert lab.delivered() == ["<D,1,2>"]
    lab.pass_time(QUIET.hold_ns + QUIET.suspect_ns)
    assert lab.delivered() == []


def test_a_gap_found_later_is_held_back_for_as_long_again() -> None:
    lab = receiver()
    lab.hears(g1(2, 20))
    lab.pass_time(6 * MILLISECOND)
    lab.hears(g1(4, 40))
    lab.pass_time(4 * MILLISECOND)
    assert lab.delivered() == ["<D,1,1>"]
    assert lab.gives(flush(2, 0, 30)) == [g1(2, 20)]
    lab.pass_time(6 * MILLISECOND)
    assert lab.delivered() == []
    lab.pass_time(9 * MILLISECOND)
    assert lab.delivered() == ["<D,1,3>"]


def test_a_full_buffer_drops_as_the_network_would_and_says_so() -> None:
    lab = receiver(HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=0, buffer=2, repair=False))
    lab.hears(g1(1, 10), g1(2, 20), g1(3, 30))
    assert lab.buffer() == [g1(1, 10), g1(2, 20)]
    assert lab.gives(flush(2, 0, 90)) == [g1(1, 10), g1(2, 20)]
    assert lab.gives(g2(1, 91), flush(1, 3, 95)) == ["<D,1,3>", g2(1, 91)]


def test_a_receiver_is_in_one_group_and_counts_its_own_numbers_only() -> None:
    lab = receiver(group=2, me=MEMBERS[2][0])
    assert lab.gives("<G,1,{(1,5),(2,1)},10>", "<F,2,{(1,9),(2,0)},20>") == ["<G,1,{(1,5),(2,1)},10>"]
