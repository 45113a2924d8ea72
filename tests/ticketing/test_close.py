"""When views change, messages of one sender keep their order, also if one of them has no ticket."""

import pytest

from ordercast.components.ticketing.messages import DataMessage, Header, Key, Sequencer
from ordercast.components.ticketing.ordering import Ordering
from ordercast.components.ticketing.participant import Participant
from tests.ticketing.hall import Hall


def test_a_later_message_does_not_pass_one_whose_ticket_was_of_an_earlier_view() -> None:
    ordering = Ordering()
    ordering.enter(2, (0, 1), (0, 1), None)
    stale, fresh = Header(1, 5, 0, 0, ((5, 1, 1),)), Header(2, 7, 0, 0, ((7, 1, 2),))
    ordering.stays[1] = 1
    for count, header in ((1, stale), (2, fresh)):
        ordering.receive(1, DataMessage(header, count, Sequencer(1, 1), (0,), b"x"), 0)
    assert ordering.close() == []
    assert list(ordering.waiting) == [Key(1, 1), Key(1, 2)], "both get tickets in the next view"


def caught_between_views() -> Hall:
    """Two active members; a message of node 1 is under way from one view to the next, and lost its ticket."""
    hall = Hall(2, [0, 1])
    hall.stop()
    hall.say(1, "a")
    hall.fill(1)
    hall.change((0, 1))
    return hall


def test_a_message_of_the_next_view_does_not_pass_one_that_comes_from_the_view_before() -> None:
    hall = caught_between_views()
    hall.say(1, "b")
    hall.drain(1)
    hall.flow()
    assert hall.log() == ["a", "b"]


def test_nor_does_a_switch_and_no_ticket_is_left_over_when_it_is_ordered() -> None:
    hall = caught_between_views()
    hall.do(1, Participant.go_passive)
    hall.drain(1)
    hall.flow()
    hall.say(1, "b")
    hall.flow()
    assert hall.log() == ["a", "b"]
    assert hall.modes() == ["active", "passive"]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_member_that_takes_over_orders_first_what_its_sequencer_did_not(arrives: bool) -> None:
    hall = Hall(3, [0])
    hall.say(2, "a")
    if arrives:
        hall.step(2, 1)
    hall.crash(0)
    hall.fill(2)
    hall.change((1, 2))
    hall.say(2, "b")
    hall.drain(2)
    hall.flow()
    assert hall.log() == ["a", "b"]


@pytest.mark.parametrize("uniform", [False, True])
def test_a_member_that_leaves_delivers_what_the_others_deliver_at_the_end_of_its_last_view(
    uniform: bool,
) -> None:
    hall = Hall(3, [0, 1], uniform=uniform)
    hall.say(0, "a")
    hall.stop()
    hall.change((0, 1), leaving=[2])
    assert [hall.heard(node) for node in range(3)] == [["a"]] * 3
