"""Hydra section 4.4, "Adding new sequencers": what a receiver does when one joins."""

from ordercast.core import MILLISECOND, Delivered, NodeId, View
from ordercast.protocols.hydra.messages import Announce, Report, Solicit, Step, Suspect
from ordercast.protocols.hydra.options import HydraOptions
from tests.hydra.lab import LEADER, QUIET, SERVICE, ReceiverBench, active, added, receiver, removed

A = "<G,1,{(1,1)},10>"
B = "<G,1,{(1,2)},40>"
C = "<G,2,{(1,1)},60>"
NEW = 23


def reports(lab: ReceiverBench) -> list[tuple[NodeId, Report]]:
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Report)]


def void(sequencer: int) -> Step:
    """An addition that was given up."""
    return Step("void", sequencer, 20 + sequencer, 0, 0, ())


def busy() -> ReceiverBench:
    """A receiver that has delivered up to clock 10, and holds a message at 40."""
    lab = receiver()
    lab.hears(A, "<F,2,{(1,0)},12>", B)
    assert lab.delivered() == [A]
    lab.take_sent()
    return lab


# The hold and the report


def test_a_planned_addition_is_answered_by_asking_for_a_flush_above_the_latest_delivery() -> None:
    lab = busy()
    lab.plan("added", 3)
    assert lab.take_sent() == [(NEW, Solicit(3, 10))]


def test_a_flush_above_the_latest_delivery_is_reported_and_nothing_above_it_is_delivered() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.take_sent()
    lab.hears("<F,3,{(0,5),(1,2)},30>")
    assert lab.take_sent() == [(LEADER, Report(0, 3, 30, (5, 2, 0)))]
    assert lab.gives("<F,2,{(1,0)},35>") == []
    assert lab.gives(C) == [], "40 is above 30, although sequencers 1 and 2 would let it go"
    assert lab.buffer() == [B, C]


def test_what_lies_below_the_reported_flush_goes_on() -> None:
    lab = receiver()
    lab.hears(A)
    lab.plan("added", 3)
    lab.hears("<F,3,{(1,0)},30>", B)
    assert lab.gives("<F,2,{(1,0)},90>") == [A]
    assert lab.buffer() == [B]


def test_a_flush_below_the_latest_delivery_holds_delivery_back_and_is_asked_for_again() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.take_sent()
    lab.hears("<F,3,{(1,0)},7>")
    assert lab.take_sent() == [(NEW, Solicit(3, 10))]
    assert lab.gives(C) == [], "otherwise the new sequencer might never catch up"
    lab.hears("<F,3,{(1,0)},11>")
    assert reports(lab) == [(LEADER, Report(0, 3, 11, (0, 0, 0)))]


def test_the_first_report_stands() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.hears("<F,3,{(1,0)},30>", "<F,3,{(1,1)},50>")
    lab.plan("added", 3)
    lab.receive(SERVICE[1], Announce(0, active(1, 2), lab.process._follower.planned.plan, None))
    given = reports(lab)
    assert [to for to, _ in given] == [LEADER, LEADER, SERVICE[1]]
    assert {report for _, report in given} == {Report(0, 3, 30, (0, 0, 0))}


def test_a_flush_of_a_sequencer_that_nobody_plans_to_add_is_nothing() -> None:
    lab = busy()
    lab.hears("<F,3,{(1,0)},30>", "<F,4,{(1,0)},30>")
    assert reports(lab) == []
    assert lab.gives(C) == [B]


def test_a_new_sequencer_that_never_answers_is_suspected() -> None:
    lab = receiver(initial={})
    lab.plan("added", 3)
    lab.pass_time(QUIET.suspect_ns + 6 * MILLISECOND)
    suspects = {message.sequencers for _, message in lab.take_sent() if isinstance(message, Suspect)}
    assert suspects == {(3,)}


def test_a_new_sequencer_whose_clock_is_behind_is_waited_for_and_not_suspected() -> None:
    lab = busy()
    lab.plan("added", 3)
    for clock in range(1, 9):
        lab.hears(f"<F,3,{{(1,0)}},{clock}>")
        lab.pass_time(QUIET.suspect_ns // 6)
    suspects = {message.sequencers for _, message in lab.take_sent() if isinstance(message, Suspect)}
    assert suspects == {(1, 2)}, "of these nothing was heard"
    lab.hears("<F,3,{(1,0)},99>")
    assert reports(lab) == [(LEADER, Report(0, 3, 99, (0, 0, 0)))]


# The decision


def test_the_transition_is_at_the_agreed_time_and_numbers_begin_after_the_agreed_ones() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.hears("<F,3,{(1,0)},30>", C)
    lab.decide(added(3, 50, (5, 2, 0)))
    assert lab.delivered() == [B]
    lab.hears("<G,3,{(1,3)},55>")
    assert lab.gives("<F,1,{(1,2)},70>") == ["<+3,2,50>", "<G,3,{(1,3)},55>"]
    assert lab.gives("<F,3,{(1,3)},80>") == [C]


def test_the_view_comes_where_the_next_message_is_later_than_the_agreed_time() -> None:
    lab = busy()
    lab.decide(added(3, 50))
    assert lab.gives("<F,2,{(1,0)},45>") == [B]
    assert lab.gives("<F,2,{(1,0)},51>") == [], "sequencer 1 may still have a message before 50"
    assert lab.gives("<F,1,{(1,2)},51>") == ["<+3,0,50>"]


def test_deliveries_name_the_configuration_on_both_sides_of_the_agreed_time() -> None:
    lab = busy()
    lab.decide(added(3, 50))
    lab.hears(C, "<F,3,{(1,0)},99>", "<F,1,{(1,2)},99>")
    configs = [d.config for d in lab.env.delivered if isinstance(d, Delivered | View)]
    assert (lab.delivered(), configs) == ([B, "<+3,0,50>", C], [0, 1, 1])


def test_the_highest_reported_flush_counts_and_not_the_own_one() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.hears("<F,3,{(1,0)},30>")
    lab.decide(added(3, 65, (0, 4, 0)))
    lab.hears(C, "<G,3,{(1,5)},70>", "<F,1,{(1,2)},99>")
    assert lab.delivered() == [B, C]
    assert lab.gives("<F,2,{(1,1)},99>") == ["<+3,4,65>", "<G,3,{(1,5)},70>"]


def test_packets_that_came_before_the_decision_count_from_the_agreed_numbers_on() -> None:
    lab = busy()
    lab.hears("<G,3,{(1,3)},52>", "<G,3,{(1,2)},48>", "<G,3,{(1,1)},28>", "<G,4,{(1,1)},53>")
    lab.decide(added(3, 50, (0, 2, 0)))
    lab.hears("<F,1,{(1,2)},99>", "<F,2,{(1,0)},99>")
    assert lab.delivered() == [B, "<+3,2,50>", "<G,3,{(1,3)},52>"]
    lab.decide(added(4, 51, config=2), start=1)
    lab.hears("<F,3,{(1,3)},99>")
    assert lab.delivered() == ["<+4,0,51>", "<G,4,{(1,1)},53>"]


def test_the_oldest_packets_of_strangers_are_forgotten_first() -> None:
    lab = receiver(HydraOptions(flush="periodic", flush_ns=1, strangers=2), initial={})
    lab.hears("<G,3,{(1,1)},51>", "<G,3,{(1,2)},52>", "<G,3,{(1,3)},53>")
    lab.decide(added(3, 50))
    lab.pass_time(40 * MILLISECOND)
    assert lab.delivered() == ["<+3,0,50>", "<D,3,1>", "<G,3,{(1,2)},52>", "<G,3,{(1,3)},53>"]


def test_a_gap_of_a_new_sequencer_is_notified_of_in_its_configuration() -> None:
    lab = receiver(initial={1: 21})
    lab.hears(A)
    lab.decide(added(3, 50, (0, 7, 0)))
    lab.hears("<G,3,{(1,9)},90>", "<G,1,{(1,2)},60>")
    assert lab.delivered() == [A, "<+3,7,50>", "<D,3,8>", "<G,1,{(1,2)},60>"]


def test_before_its_configuration_has_begun_a_gap_of_a_new_sequencer_is_held_back() -> None:
    lab = receiver(initial={1: 21})
    lab.hears(A)
    lab.decide(added(3, 50, (0, 7, 0)))
    lab.hears("<G,3,{(1,9)},90>")
    lab.pass_time(40 * MILLISECOND)
    assert lab.delivered() == [A]


# Given up, together with others, and again


def test_an_addition_that_is_given_up_leaves_no_trace() -> None:
    lab = busy()
    lab.plan("added", 3)
    lab.hears("<F,3,{(1,0)},30>", C)
    assert lab.delivered() == []
    lab.decide(void(3))
    assert lab.delivered() == [B]
    assert lab.gives("<F,1,{(1,2)},99>") == [C]
    assert lab.process.config == 0
    assert lab.gives("<G,3,{(1,1)},70>", "<F,3,{(1,1)},90>") == []
    assert lab.buffer() == []


def test_a_removal_and_an_addition_that_come_together_are_taken_one_after_the_other() -> None:
    lab = busy()
    lab.hears(C)
    assert lab.delivered() == [B]
    lab.decide(removed(1, 45, (0, 3, 0)), added(3, 50, (0, 1, 0), config=2))
    assert lab.delivered() == ["<D,1,3>", "<-1,3,45>", "<+3,1,50>"]
    assert lab.gives("<F,3,{(1,1)},70>") == [C]
    assert lab.process.config == 2


def test_the_place_of_a_step_is_never_before_that_of_the_step_before_it() -> None:
    lab = busy()
    lab.decide(removed(1, 45, (0, 2, 0)), removed(2, 30, (0, 1, 0), config=2))
    assert lab.delivered() == ["<D,2,1>", B, "<-1,2,45>", "<-2,1,30>"]


def test_a_new_sequencer_begins_above_the_place_of_the_step_before() -> None:
    lab = busy()
    lab.decide(removed(1, 95, (0, 2, 0)))
    lab.plan("added", 3, steps=1)
    assert (NEW, Solicit(3, 95)) in lab.take_sent()
    lab.hears("<F,3,{(1,0)},90>")
    assert reports(lab) == []
    lab.hears("<F,3,{(1,0)},96>")
    assert reports(lab) == [(LEADER, Report(1, 3, 96, (0, 0, 0)))]


def test_an_addition_and_the_removal_of_the_same_sequencer() -> None:
    lab = receiver(initial={1: 21})
    lab.hears(A, "<G,3,{(1,1)},52>")
    lab.decide(added(3, 50), removed(3, 60, (0, 2, 0), config=2))
    assert lab.delivered() == [A]
    assert lab.gives("<F,1,{(1,1)},99>") == ["<+3,0,50>", "<G,3,{(1,1)},52>", "<D,3,2>", "<-3,2,60>"]


def test_two_additions() -> None:
    lab = busy()
    lab.decide(added(3, 50, (0, 1, 0)), added(4, 55, (0, 6, 0), config=2))
    lab.hears("<G,4,{(1,7)},57>", "<G,3,{(1,2)},56>", C)
    assert lab.delivered() == [B]
    given = lab.gives("<F,1,{(1,2)},99>", "<F,3,{(1,2)},99>", "<F,4,{(1,7)},99>")
    assert given == ["<+3,1,50>", "<+4,6,55>", "<G,3,{(1,2)},56>", "<G,4,{(1,7)},57>", C]


def test_a_sequencer_that_comes_back_has_a_new_number_and_counts_from_the_beginning() -> None:
    lab = receiver()
    lab.hears(A, "<F,2,{(1,0)},30>")
    lab.decide(removed(1, 20, (0, 1, 0)), Step("added", 3, 21, 2, 40, (0, 0, 0)))
    lab.hears("<G,1,{(1,2)},50>", "<G,3,{(1,1)},50>", "<F,2,{(1,0)},60>")
    assert lab.delivered() == [A, "<-1,1,20>", "<+3,0,40>", "<G,3,{(1,1)},50>"]
