"""Hydra section 4.4: what a receiver does when a sequencer fails and is removed."""

from ordercast.core import MILLISECOND, Delivered, Dropped, Message, NodeId, View
from ordercast.protocols.hydra.messages import Announce, Fetch, Flush, Report, Steps, Suspect
from tests.hydra.lab import (
    LEADER,
    MEMBERS,
    QUIET,
    SERVICE,
    ReceiverBench,
    active,
    added,
    planning,
    receiver,
    removed,
)

A = "<G,1,{(1,1)},10>"
B = "<G,1,{(0,4),(1,2)},20>"
C = "<G,2,{(1,1)},30>"


def suspicions(sent: list[tuple[NodeId, Message]]) -> list[tuple[NodeId, tuple[int, ...]]]:
    return [(to, message.sequencers) for to, message in sent if isinstance(message, Suspect)]


def reports(lab: ReceiverBench) -> list[tuple[NodeId, Report]]:
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Report)]


def configs(lab: ReceiverBench) -> list[tuple[str, int]]:
    """Each delivery since the last time, and the configuration that it names."""
    numbers = []
    for delivery in lab.env.delivered:
        assert isinstance(delivery, Delivered | Dropped | View)
        numbers.append(delivery.config)
    return list(zip(lab.delivered(), numbers, strict=True))


# Suspicion


def test_a_sequencer_that_says_nothing_for_the_timeout_is_suspected() -> None:
    lab = receiver()
    lab.take_sent()
    for period in range(1, 6):
        lab.pass_time(5 * MILLISECOND)
        lab.receive(22, Flush(2, lab.env.now, (0, 0, 0)))
        assert suspicions(lab.take_sent()) == [], f"after {5 * period} ms"
    for _ in range(2):
        lab.pass_time(5 * MILLISECOND)
        lab.receive(22, Flush(2, lab.env.now, (0, 0, 0)))
    lab.pass_time(MILLISECOND)
    assert suspicions(lab.take_sent()) == [(node, (1,)) for node in SERVICE]


def test_a_suspicion_is_repeated_until_the_sequencer_is_heard_again() -> None:
    lab = receiver(initial={1: 21})
    lab.pass_time(QUIET.suspect_ns + 6 * MILLISECOND)
    lab.take_sent()
    lab.pass_time(5 * MILLISECOND)
    assert suspicions(lab.take_sent()) == [(node, (1,)) for node in SERVICE]
    lab.hears(A)
    lab.pass_time(5 * MILLISECOND)
    assert suspicions(lab.take_sent()) == []


def test_an_old_flush_is_no_sign_of_life() -> None:
    lab = receiver(initial={1: 21})
    lab.hears("<F,1,{(1,0)},99>")
    for _ in range(8):
        lab.pass_time(5 * MILLISECOND)
        lab.hears("<F,1,{(1,0)},98>")
    assert suspicions(lab.take_sent())[-1] == (SERVICE[-1], (1,))


# The report


def test_a_report_names_the_highest_numbers_of_all_groups() -> None:
    lab = receiver()
    lab.hears(A, B, "<G,1,{(1,4),(2,6)},25>", "<F,1,{(0,2),(1,3),(2,9)},22>")
    lab.plan("removed", 1)
    assert reports(lab) == [(LEADER, Report(0, 1, 25, (4, 4, 9)))]


def test_after_its_report_a_receiver_accepts_nothing_more_of_the_sequencer() -> None:
    lab = receiver()
    lab.hears(A)
    lab.plan("removed", 1)
    lab.hears(B, "<F,1,{(0,8),(1,7)},90>")
    assert lab.buffer() == [A]
    lab.plan("removed", 1)
    assert {report for _, report in reports(lab)} == {Report(0, 1, 10, (0, 1, 0))}


def test_a_report_stands_and_is_repeated_to_every_leader_that_asks() -> None:
    lab = receiver()
    lab.hears(A)
    lab.plan("removed", 1)
    lab.receive(SERVICE[1], planning("removed", 1))
    assert reports(lab) == [(LEADER, Report(0, 1, 10, (0, 1, 0))), (SERVICE[1], Report(0, 1, 10, (0, 1, 0)))]


def test_other_sequencers_go_on_until_they_need_the_one_that_is_being_removed() -> None:
    lab = receiver()
    lab.hears(A)
    lab.plan("removed", 1)
    assert lab.gives("<F,2,{(1,0)},40>") == [A]
    assert lab.gives("<G,2,{(1,1)},50>") == []


# The removal


def test_a_removal_is_a_final_flush_at_infinity() -> None:
    lab = receiver()
    lab.hears(A, C, "<F,2,{(1,1)},90>")
    lab.plan("removed", 1)
    assert lab.buffer() == [C]
    lab.delivered()
    lab.decide(removed(1, 10, (0, 1, 0)))
    assert lab.delivered() == ["<-1,1,10>", C]
    assert lab.gives("<G,2,{(1,2)},99>") == ["<G,2,{(1,2)},99>"], "sequencer 1 is waited for no more"


def test_all_that_is_missing_up_to_the_agreed_number_is_notified_of_before_the_view() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,2)},20>", "<F,2,{(1,0)},90>")
    lab.plan("removed", 1)
    lab.decide(removed(1, 60, (0, 4, 0)))
    assert lab.delivered() == ["<D,1,1>", "<G,1,{(1,2)},20>", "<D,1,3>", "<D,1,4>", "<-1,4,60>"]


def test_a_message_of_another_sequencer_comes_after_the_notifications_that_it_may_depend_on() -> None:
    lab = receiver()
    lab.hears(C)
    lab.plan("removed", 1)
    lab.decide(removed(1, 60, (0, 2, 0)))
    assert lab.delivered() == ["<D,1,1>", "<D,1,2>", C]
    assert lab.gives("<F,2,{(1,1)},61>") == ["<-1,2,60>"]


def test_the_transition_waits_until_all_pending_messages_are_out() -> None:
    lab = receiver()
    lab.hears(A, B)
    lab.plan("removed", 1)
    lab.decide(removed(1, 20, (4, 2, 0)))
    assert lab.delivered() == [], "sequencer 2 may still come before"
    assert lab.gives("<F,2,{(1,0)},15>") == [A]
    assert lab.gives("<F,2,{(1,0)},30>") == [B, "<-1,2,20>"]


def test_deliveries_name_the_configuration_in_which_they_lie() -> None:
    lab = receiver()
    lab.hears(A, "<G,2,{(1,1)},15>")
    lab.plan("removed", 1)
    lab.decide(removed(1, 20, (0, 2, 0)))
    lab.hears("<G,2,{(1,2)},18>", "<G,2,{(1,3)},25>", "<G,2,{(1,5)},28>")
    lab.hears("<G,2,{(1,6)},40>")
    lab.pass_time(30 * MILLISECOND)
    assert configs(lab) == [
        (A, 0),
        ("<D,1,2>", 0),
        ("<G,2,{(1,1)},15>", 0),
        ("<G,2,{(1,2)},18>", 0),
        ("<-1,2,20>", 1),
        ("<G,2,{(1,3)},25>", 1),
        ("<D,2,4>", 1),
        ("<G,2,{(1,5)},28>", 1),
        ("<G,2,{(1,6)},40>", 1),
    ]


def test_after_the_view_nothing_of_the_sequencer_comes() -> None:
    lab = receiver()
    lab.hears(A, "<F,2,{(1,0)},90>")
    lab.plan("removed", 1)
    lab.decide(removed(1, 20, (0, 2, 0)))
    assert lab.delivered()[-1] == "<-1,2,20>"
    assert lab.gives(A, B, "<G,1,{(1,3)},40>", "<F,1,{(1,9)},99>", "<F,2,{(1,0)},200>") == []
    assert lab.buffer() == []


def test_until_its_notification_a_late_packet_within_the_agreed_numbers_is_delivered() -> None:
    lab = receiver()
    lab.hears(A)
    lab.plan("removed", 1)
    lab.decide(removed(1, 20, (4, 2, 0)))
    lab.hears(B)
    assert lab.gives("<F,2,{(1,0)},90>") == [A, B, "<-1,2,20>"]


def test_a_view_names_the_members_of_the_group() -> None:
    lab = receiver(initial={1: 21})
    lab.plan("removed", 1)
    lab.decide(removed(1, 0, (0, 0, 0)))
    (view,) = lab.env.delivered
    assert isinstance(view, View)
    assert (view.group, view.members, view.config) == (1, MEMBERS[1], 1)


# Messages of the service that are missed


def test_a_receiver_that_missed_steps_asks_for_them() -> None:
    lab = receiver()
    lab.take_sent()
    second = removed(2, 40, (0, 1, 0), config=2)
    lab.receive(SERVICE[2], Announce(2, active(), None, second))
    assert lab.take_sent() == [(SERVICE[2], Fetch(0))]
    lab.hears(C)
    lab.receive(SERVICE[2], Steps(0, (removed(1, 20, (0, 1, 0)), second)))
    assert lab.delivered() == ["<D,1,1>", "<-1,1,20>", C, "<-2,1,40>"]


def test_the_latest_step_in_an_announcement_saves_asking() -> None:
    lab = receiver()
    lab.take_sent()
    lab.hears(A, C)
    lab.receive(LEADER, Announce(1, active(2), None, removed(1, 20, (0, 1, 0))))
    assert lab.delivered() == [A, "<-1,1,20>", C]
    assert lab.take_sent() == []


def test_steps_come_once_whatever_is_repeated() -> None:
    lab = receiver()
    step = removed(1, 20, (0, 1, 0))
    lab.decide(step)
    lab.decide(step)
    lab.receive(LEADER, Announce(1, active(2), None, step), Announce(0, active(1, 2), None, None))
    lab.hears(C, "<F,2,{(1,1)},99>")
    assert lab.delivered() == ["<D,1,1>", "<-1,1,20>", C]


def test_a_plan_for_steps_that_are_over_is_not_answered() -> None:
    lab = receiver()
    lab.decide(removed(1, 20, (0, 1, 0)))
    lab.take_sent()
    lab.plan("removed", 2, steps=0)
    assert lab.take_sent() == []


def test_what_the_service_has_forgotten_strands_a_receiver_which_says_so() -> None:
    lab = receiver()
    lab.decide(removed(1, 20, (0, 1, 0), config=6), start=5)
    assert lab.delivered() == []
    lab.pass_time(MILLISECOND)
    assert ("all steps", "steps that the service has forgotten", 0) in lab.waits()


def test_announcements_that_answer_a_question_are_no_reason_to_repeat_it_at_once() -> None:
    lab = receiver()
    answer = Announce(6, active(2), None, removed(1, 20, (0, 1, 0), config=6))
    for _ in range(5):
        lab.receive(LEADER, Steps(5, (removed(1, 20, (0, 1, 0), config=6),)), answer, answer)
    assert lab.take_sent() == [(LEADER, Fetch(0))]
    lab.pass_time(MILLISECOND)
    lab.receive(LEADER, answer)
    assert lab.take_sent() == [(LEADER, Fetch(0))]
    lab.decide(removed(1, 20, (0, 1, 0)))
    lab.receive(LEADER, answer)
    assert lab.take_sent() == [(LEADER, Fetch(1))], "there is more to ask for"


# All sequencers


def test_with_all_sequencers_gone_nothing_waits_and_a_new_one_begins() -> None:
    lab = receiver()
    lab.hears(A, C)
    lab.decide(removed(1, 20, (0, 1, 0)), removed(2, 30, (0, 1, 0), config=2))
    assert lab.delivered() == [A, "<-1,1,20>", C, "<-2,1,30>"]
    lab.plan("added", 3, steps=2)
    lab.hears("<F,3,{(1,0)},55>")
    assert reports(lab)[-1] == (LEADER, Report(2, 3, 55, (0, 0, 0)))
    lab.decide(added(3, 55, config=3), start=2)
    assert lab.delivered() == ["<+3,0,55>"]
    assert lab.gives("<G,3,{(1,1)},60>") == ["<G,3,{(1,1)},60>"]
    assert lab.process.config == 3
