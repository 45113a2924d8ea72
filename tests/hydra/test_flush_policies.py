"""Hydra section 4.6: who asks whom for flushes, and when; aggregation in the network."""

import itertools

import pytest

from ordercast.core import MICROSECOND, MILLISECOND, LocalError, NodeId
from ordercast.protocols.hydra.messages import Flush, Flushes, Groupcast, Solicit, Welcome
from ordercast.protocols.hydra.options import HydraOptions
from tests.hydra.lab import (
    AGGREGATOR,
    LEADER,
    ReceiverBench,
    added,
    receiver,
    sequencer,
)

DELAY = 100 * MICROSECOND
PERIODIC = HydraOptions(flush="periodic", flush_ns=DELAY)
SOLICITED = HydraOptions(flush="solicited", flush_ns=DELAY)
ADAPTIVE = HydraOptions(flush="adaptive", flush_ns=DELAY)
AGGREGATED = HydraOptions(flush="aggregated", flush_ns=DELAY)
A = "<G,1,{(1,1)},10>"
B = "<G,1,{(1,2)},20>"


def solicits(lab: ReceiverBench) -> list[tuple[NodeId, int, int]]:
    """To whom, for which sequencer, above which clock."""
    return [(to, m.sequencer, m.clock) for to, m in lab.take_sent() if isinstance(m, Solicit)]


def flush(number: int, clock: int, *numbers: int) -> Flush:
    return Flush(number, clock, numbers or (0, 0, 0))


# Periodic


def test_periodic_receivers_ask_for_nothing() -> None:
    lab = receiver(PERIODIC)
    lab.hears(A)
    lab.pass_time(20 * MILLISECOND)
    assert solicits(lab) == []


def test_periodic_sequencers_flush_to_all_receivers_every_period() -> None:
    lab = sequencer(PERIODIC)
    lab.receive(LEADER, Welcome(0, 1, 0))
    lab.take_sent()
    lab.pass_time(3 * DELAY)
    flushes = [(to, message) for to, message in lab.take_sent() if isinstance(message, Flush)]
    assert [to for to, _ in flushes] == list(range(9)) * 3
    assert len({message.clock for _, message in flushes}) == 3


# Solicited


def test_solicited_a_receiver_asks_when_a_message_has_waited_for_the_delay() -> None:
    lab = receiver(SOLICITED)
    lab.hears(A)
    lab.pass_time(DELAY - 1)
    assert solicits(lab) == []
    lab.pass_time(1)
    assert solicits(lab) == [(22, 2, 10)]


def test_solicited_nothing_is_asked_for_what_went_in_the_meantime() -> None:
    lab = receiver(SOLICITED)
    lab.hears(A)
    lab.pass_time(DELAY // 2)
    assert lab.gives("<F,2,{(1,0)},11>") == [A]
    lab.pass_time(5 * MILLISECOND)
    assert solicits(lab) == []


def test_solicited_without_delay_it_asks_at_once() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0))
    lab.hears(A)
    assert (22, 2, 10) in solicits(lab)


def test_a_sequencer_is_asked_for_a_flush_above_what_waits_first() -> None:
    """Not above all that waits: a sequencer whose clock is behind answers when it has reached the clock asked
    for, and the first message would wait for the skew of the last."""
    lab = receiver(SOLICITED)
    lab.hears(A, B, "<G,1,{(1,3)},35>")
    lab.pass_time(DELAY)
    assert solicits(lab) == [(22, 2, 10)]
    assert lab.gives("<F,2,{(1,0)},11>") == [A]
    lab.pass_time(DELAY)
    assert solicits(lab) == [(22, 2, 20)]
    assert lab.gives("<F,2,{(1,0)},40>") == [B, "<G,1,{(1,3)},35>"]
    lab.pass_time(5 * MILLISECOND)
    assert solicits(lab) == []


def test_only_sequencers_that_are_behind_are_asked() -> None:
    lab = receiver(SOLICITED, initial={1: 21, 2: 22, 3: 23})
    lab.hears(A, "<F,3,{(1,0)},90>")
    lab.pass_time(DELAY)
    assert {to for to, _, _ in solicits(lab)} <= {21, 22}


def test_a_sequencer_with_the_clock_of_the_head_is_asked_if_it_comes_first_among_equals() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0), initial={1: 21, 2: 22, 3: 23})
    second = "<G,2,{(1,1)},10>"
    lab.hears(A, second)
    solicits(lab)
    assert lab.gives("<F,3,{(1,0)},11>") == [A]
    assert solicits(lab) == [(21, 1, 10)], "sequencer 1 is at its own message, just before"
    assert lab.gives("<F,1,{(1,1)},11>") == [second]


def test_only_sequencers_that_hold_up_the_head_are_asked() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0), initial={1: 21, 2: 22, 3: 23})
    lab.hears("<F,3,{(1,0)},15>", A, B)
    assert solicits(lab) == [(22, 2, 10)], "sequencer 3 is past the first message"
    assert lab.gives("<F,2,{(1,0)},30>") == [A]
    assert solicits(lab) == [(23, 3, 20)], "but not past the second"


def test_sequencers_do_not_flush_by_themselves_but_for_heartbeats() -> None:
    lab = sequencer(SOLICITED)
    lab.receive(LEADER, Welcome(0, 1, 0))
    lab.take_sent()
    lab.pass_time(SOLICITED.heartbeat_ns - 1)
    assert lab.take_sent() == []


def test_an_unanswered_solicitation_is_repeated_later_and_later() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0))
    lab.hears(A)
    assert solicits(lab) == [(22, 2, 10)]
    times = [0]
    while len(times) < 7:
        lab.pass_time(MILLISECOND)
        if solicits(lab):
            times.append(lab.env.now // MILLISECOND)
    assert [later - sooner for sooner, later in itertools.pairwise(times)] == [1, 2, 4, 8, 16, 16]


def test_an_answer_ends_the_repetition() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0))
    lab.hears(A)
    solicits(lab)
    assert lab.gives("<F,2,{(1,0)},11>") == [A]
    lab.pass_time(20 * MILLISECOND)
    assert solicits(lab) == []


def test_a_sequencer_that_was_added_is_asked_too() -> None:
    lab = receiver(HydraOptions(flush="solicited", flush_ns=0))
    lab.hears("<F,2,{(1,0)},90>", "<G,2,{(1,1)},100>")
    solicits(lab)
    lab.decide(added(3, 95))
    lab.hears("<F,1,{(1,0)},120>")
    assert (23, 3, 100) in solicits(lab)


# Adaptive


def test_adaptive_without_traffic_it_asks_at_once() -> None:
    lab = receiver(ADAPTIVE)
    lab.hears(A)
    assert (22, 2, 10) in solicits(lab)


def test_adaptive_with_enough_traffic_it_waits_for_the_next_message() -> None:
    lab = receiver(ADAPTIVE)
    for number in range(1, 30):  # answers take 90 us
        lab.hears(f"<G,1,{{(1,{number})}},{100 * number}>")
        assert solicits(lab) == [(22, 2, 100 * number)]
        lab.pass_time(90 * MICROSECOND)
        assert len(lab.gives(f"<F,2,{{(1,0)}},{100 * number + 1}>")) == 1
    for number in range(1, 100):  # messages of sequencer 2 come every 10 us
        lab.pass_time(10 * MICROSECOND)
        lab.hears(f"<F,1,{{(1,29)}},{2951 + number}>", f"<G,2,{{(1,{number})}},{2950 + number}>")
    lab.take_sent()
    lab.hears("<G,1,{(1,30)},5000>")
    assert solicits(lab) == [], "the next message of sequencer 2 will do"
    lab.pass_time(30 * MICROSECOND)
    assert solicits(lab) == [(22, 2, 5000)], "but it did not come"


def test_a_sequencer_is_asked_once_until_it_answers() -> None:
    lab = receiver(ADAPTIVE)
    lab.hears(A, B)
    assert solicits(lab) == [(22, 2, 10)]
    assert lab.gives("<F,2,{(1,0)},15>") == [A]
    assert solicits(lab) == [(22, 2, 20)], "more had come since"


def test_a_flush_that_is_no_answer_causes_no_new_question() -> None:
    lab = receiver(ADAPTIVE)
    lab.hears(A)
    assert solicits(lab) == [(22, 2, 10)]
    lab.hears("<F,2,{(1,0)},7>", "<F,2,{(1,0)},8>", "<F,2,{(1,0)},8>")
    assert solicits(lab) == []


def test_what_came_after_the_question_is_asked_for_with_the_answer() -> None:
    lab = receiver(ADAPTIVE)
    lab.hears(A, B)
    assert solicits(lab) == [(22, 2, 10)]
    assert lab.gives("<G,2,{(1,1)},12>") == [A, "<G,2,{(1,1)},12>"]
    assert solicits(lab) == [], "the first question is still open"
    lab.hears("<F,2,{(1,1)},15>")
    assert solicits(lab) == [(22, 2, 20)]


# Aggregated


def test_aggregated_a_receiver_asks_its_aggregator_alone() -> None:
    lab = receiver(AGGREGATED, aggregator=AGGREGATOR)
    lab.hears(A)
    assert solicits(lab) == [(AGGREGATOR, 0, 10)]


def test_aggregated_what_came_after_the_question_is_asked_for_with_the_answer() -> None:
    lab = receiver(AGGREGATED, aggregator=AGGREGATOR)
    lab.hears(A, B)
    assert solicits(lab) == [(AGGREGATOR, 0, 10)]
    lab.hears("<G,2,{(1,1)},12>")
    assert solicits(lab) == []
    lab.receive(AGGREGATOR, Flushes((flush(1, 16, 0, 2, 0), flush(2, 15, 0, 1, 0))))
    assert solicits(lab) == [(AGGREGATOR, 0, 20)]


def test_aggregated_without_an_answer_it_asks_the_sequencers_themselves() -> None:
    lab = receiver(AGGREGATED, aggregator=AGGREGATOR)
    lab.hears(A)
    lab.take_sent()
    lab.pass_time(AGGREGATED.retry_ns)
    asked = solicits(lab)
    assert (22, 2, 10) in asked
    assert AGGREGATOR not in {to for to, _, _ in asked}


def test_aggregated_flushes_go_to_the_aggregators_and_heartbeats_to_all() -> None:
    lab = sequencer(AGGREGATED, aggregators=(AGGREGATOR,))
    lab.receive(LEADER, Welcome(0, 1, 0))
    lab.take_sent()
    lab.pass_time(DELAY)
    assert [to for to, _ in lab.take_sent()] == [AGGREGATOR]
    lab.pass_time(AGGREGATED.heartbeat_ns)
    assert {to for to, _ in lab.take_sent()} == {*range(9), AGGREGATOR}


def test_one_packet_of_flushes_lets_everything_go() -> None:
    lab = receiver(AGGREGATED, aggregator=AGGREGATOR)
    lab.hears(A, B)
    lab.receive(AGGREGATOR, Flushes((flush(1, 30, 0, 2, 0), flush(2, 31))))
    assert lab.delivered() == [A, B]


def test_a_flush_that_an_aggregator_does_not_have_yet_changes_nothing() -> None:
    lab = receiver(AGGREGATED, aggregator=AGGREGATOR)
    lab.hears(A)
    lab.receive(AGGREGATOR, Flushes((Flush(1, 0, ()), Flush(2, 0, ()))))
    assert lab.delivered() == []
    assert lab.buffer() == [A]


# Options


@pytest.mark.parametrize("policy", ["periodic", "aggregated"])
def test_policies_with_a_period_need_one(policy: str) -> None:
    with pytest.raises(LocalError, match="needs a period"):
        HydraOptions(flush="periodic" if policy == "periodic" else "aggregated", flush_ns=0)


def test_what_is_not_asked_for_still_comes_from_heartbeats() -> None:
    lab = sequencer(SOLICITED)
    lab.receive(LEADER, Welcome(0, 1, 0))
    first = [message for _, message in lab.take_sent() if isinstance(message, Flush | Groupcast)]
    lab.pass_time(3 * SOLICITED.heartbeat_ns)
    later = [message for _, message in lab.take_sent()]
    assert len(first) == 9 and len(later) == 27
