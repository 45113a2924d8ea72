"""Every transition of section 5 of the hybrid paper, by hand, and several at the same time."""

from pathlib import Path

import pytest

from ordercast.components.ticketing.messages import ENVELOPES, Reassign, Tickets
from ordercast.components.ticketing.modes import MODES, Mode
from ordercast.components.ticketing.participant import Participant
from ordercast.core import LocalError
from tests.core.life_cycles import record
from tests.ticketing.hall import Hall
from tests.ticketing.test_any_order import play


def settle(hall: Hall) -> list[str]:
    """Let everything happen; return what all delivered, which must be the same."""
    hall.flow()
    return hall.log()


def test_a_passive_member_has_its_messages_ordered_by_its_sequencer() -> None:
    hall = Hall(3, [0])
    hall.say(2, "a", "b")
    assert [hall.heard(node) for node in range(3)] == [[], [], []]
    hall.step(2, 0)
    assert hall.heard(0) == ["a"]  # the token site issues a ticket and needs nobody
    assert hall.heard(2) == []
    hall.step(0, 2)
    assert hall.heard(2) == ["a"]
    assert settle(hall) == ["a", "b"]


def test_a_symmetric_member_waits_until_all_are_past_the_ticket() -> None:
    hall = Hall(3, [0, 1, 2], silence_ns=10**12)
    hall.say(0, "a")
    hall.step(0, 1)
    assert hall.heard(1) == []
    hall.say(1, "b")
    hall.step(1, 2)
    hall.step(0, 2)
    assert hall.heard(2) == ["a"]  # all have shown a clock past it; the place of b depends on node 0
    hall.say(2, "c")
    hall.step(1, 0)
    hall.step(2, 0)
    assert hall.heard(0) == ["a", "b"]  # node 1 may still issue a ticket before that of c
    hall.step(2, 1)
    hall.say(1, "d")
    hall.step(1, 0)
    assert hall.heard(0)[:3] == ["a", "b", "c"]


def test_tickets_ride_on_messages_and_go_alone_after_the_wait() -> None:
    hall = Hall(2, [0], ticket_wait_ns=5_000_000)
    hall.say(1, "a")
    hall.step(1, 0)
    assert not hall.channels[0, 1]
    hall.say(0, "b")
    (ride,) = map(ENVELOPES.decode, hall.channels[0, 1])
    assert len(ride.header.tickets) == 2  # type: ignore[attr-defined]
    hall.say(1, "c")
    hall.step(1, 0)
    hall.drivers[0].pass_time(6_000_000)
    alone = ENVELOPES.decode(hall.channels[0, 1][-1])
    assert isinstance(alone, Tickets)
    assert settle(hall) == ["a", "b", "c"]


def test_passive_to_active() -> None:
    hall = Hall(3, [0])
    hall.say(1, "a")
    hall.do(1, Participant.go_active)
    hall.say(1, "b")  # waits until the switch is ordered
    assert hall.member(1).mode is Mode.TO_ACTIVE
    assert hall.member(1).outbound.queued == 1
    assert settle(hall) == ["a", "b"]
    assert hall.modes() == ["active", "active", "passive"]
    assert hall.member(2).ordering.configuration.actives == (0, 1)


def test_active_to_passive() -> None:
    hall = Hall(3, [0, 1])
    hall.say(1, "a")
    hall.do(1, Participant.go_passive)
    hall.say(1, "b")
    assert settle(hall) == ["a", "b"]
    assert hall.modes() == ["active", "passive", "passive"]
    assert hall.member(1).sequencer == hall.member(0).sequencer


def test_the_last_active_member_stays_active() -> None:
    hall = Hall(2, [0])
    hall.say(1, "a")
    hall.do(0, Participant.go_passive)
    hall.say(0, "b")
    assert set(settle(hall)) == {"a", "b"}
    assert hall.modes() == ["active", "passive"]


def test_of_all_active_members_that_leave_at_once_the_last_one_stays() -> None:
    hall = Hall(3, [0, 1, 2])
    for node in range(3):
        hall.say(node, f"{node}.0")
        hall.do(node, Participant.go_passive)
        hall.say(node, f"{node}.1")
    assert len(settle(hall)) == 6
    assert sorted(hall.modes()) == ["active", "passive", "passive"]


def test_a_member_stays_active_if_those_that_it_relied_on_leave_before_it() -> None:
    """Nodes 0 and 1 are close to each other, and node 2 is far away: each of the two relies on the other."""
    hall = Hall(3, [0, 1, 2])
    for node, other in ((0, 1), (1, 0)):
        hall.say(node, f"{node}.0")
        hall.do(node, lambda member, other=other: member.go_passive({other}))
        hall.say(node, f"{node}.1")
    assert len(settle(hall)) == 4
    assert sorted(hall.modes()[:2]) == ["active", "passive"]
    assert hall.modes()[2] == "active"


def test_one_of_those_that_it_relied_on_is_enough() -> None:
    hall = Hall(4, [0, 1, 2, 3])
    hall.do(0, lambda member: member.go_passive({1, 2, 3}))
    hall.do(1, lambda member: member.go_passive({0, 2}))
    hall.do(2, lambda member: member.go_passive({0, 1}))
    settle(hall)
    assert sorted(hall.modes()[:3]) == ["active", "passive", "passive"]
    assert hall.modes()[3] == "active"


def test_three_switches_at_once() -> None:
    hall = Hall(4, [0, 1])
    hall.do(1, Participant.go_passive)
    hall.do(2, Participant.go_active)
    hall.do(3, Participant.go_active)
    for node in range(4):
        hall.say(node, f"{node}")
    assert sorted(settle(hall)) == ["0", "1", "2", "3"]
    assert hall.modes() == ["active", "passive", "active", "active"]


def test_a_sequencer_that_leaves_has_its_messages_reassigned() -> None:
    hall = Hall(3, [0, 1])
    hall.member(2).estimates.round_trip(1, 10)
    hall.do(2, Participant.change_sequencer)
    hall.say(2, "a", "b")
    hall.do(1 if hall.member(2).sequencer == hall.member(1).sequencer else 0, Participant.go_passive)
    assert settle(hall) == ["a", "b"]
    assert sorted(hall.modes()) == ["active", "passive", "passive"]


def test_a_change_of_sequencer_waits_for_what_is_under_way() -> None:
    hall = Hall(3, [0, 1])
    before = hall.member(2).sequencer
    hall.say(2, "a")
    for _ in range(5):
        hall.member(2).estimates.round_trip(1, 10)
    hall.do(2, Participant.change_sequencer)
    hall.say(2, "b")
    assert (hall.member(2).mode, hall.member(2).sequencer) == (Mode.CHANGING, before)
    assert settle(hall) == ["a", "b"]
    assert hall.member(2).sequencer == hall.member(1).sequencer


def test_a_sequencer_that_crashes_is_replaced() -> None:
    hall = Hall(3, [0, 1])
    hall.say(2, "a", "b")
    hall.step(2, 1)
    hall.crash(0)
    hall.change((1, 2))
    assert any(isinstance(ENVELOPES.decode(data), Reassign) for data in hall.channels[2, 1])
    assert settle(hall) == ["a", "b"]


@pytest.mark.parametrize("ordered", [False, True])
def test_if_all_active_members_crash_the_highest_takes_over(ordered: bool) -> None:
    hall = Hall(4, [0, 1])
    for node in (2, 3):
        hall.say(node, f"{node}.0")
    if ordered:
        hall.flow()
    for node in (2, 3):
        hall.say(node, f"{node}.1")
    hall.crash(0, 1)
    hall.change((2, 3))
    assert hall.modes() == ["passive", "active"]
    assert sorted(settle(hall)) == ["2.0", "2.1", "3.0", "3.1"]


def test_a_stand_in_steps_down_when_the_token_site_is_back() -> None:
    hall = Hall(4, [0])
    hall.say(3, "a")
    hall.change((1, 2, 3))
    hall.say(1, "b")
    hall.say(3, "c")
    assert hall.member(3).mode is Mode.ACTIVE
    hall.change((0, 1, 2, 3))
    hall.say(3, "d")
    assert sorted(settle(hall)) == ["a", "b", "c", "d"]
    assert hall.modes() == ["active", "passive", "passive", "passive"]
    assert {hall.member(node).ordering.configuration.actives for node in range(4)} == {(0,)}


def relieved_on_its_way_to_passive() -> Hall:
    """Nodes 1 and 2 are active without node 0; node 2 wants to be passive when node 0 is back."""
    hall = Hall(3, [0])
    hall.change((1, 2))
    hall.do(1, Participant.go_active)
    hall.flow()
    hall.say(2, "a")
    hall.stop()  # so its switch waits for the next view
    hall.do(2, Participant.go_passive)
    hall.say(2, "b")
    hall.change((0, 1, 2))
    return hall


def test_a_stand_in_on_its_way_to_passive_steps_down_too() -> None:
    hall = relieved_on_its_way_to_passive()
    assert hall.modes() == ["active", "passive", "passive"]
    assert settle(hall) == ["a", "b"]
    assert hall.modes() == ["active", "passive", "passive"]


def test_a_given_active_member_that_is_back_finds_the_other_one_as_it_was() -> None:
    hall = Hall(4, [0, 1])
    before = hall.member(1).sequencer
    hall.change((1, 2, 3))
    hall.change((0, 1, 2, 3))
    assert hall.modes() == ["active", "active", "passive", "passive"]
    assert hall.member(1).sequencer == before


def test_tickets_that_wait_for_a_view_are_void_and_issued_again() -> None:
    hall = Hall(3, [0])
    hall.stop()
    hall.say(0, "a", "b")
    hall.crash(2)
    hall.change((0, 1))
    assert settle(hall) == ["a", "b"]


def test_an_excluded_member_sends_again_what_the_others_have_not_ordered() -> None:
    hall = Hall(3, [0])
    hall.say(2, "a")
    hall.flow()
    hall.say(2, "b", "c")
    hall.step(2, 0)
    hall.step(2, 1)
    hall.change((0, 1))
    assert hall.heard(2) == ["a"]
    hall.change((0, 1, 2))
    assert settle(hall) == ["a", "b", "c"]
    assert hall.heard(2) == ["a", "c"]  # b was ordered while it was out


def test_what_only_an_excluded_member_delivered_is_given_back() -> None:
    hall = Hall(3, [2])
    hall.say(2, "a")
    assert hall.heard(2) == ["a"]
    hall.change((0, 1))
    hall.change((0, 1, 2))
    assert settle(hall) == []
    assert hall.returned == ["a"]


def test_a_group_without_its_state_begins_anew() -> None:
    hall = Hall(2, [0])
    hall.say(1, "a")
    for node in (0, 1):
        hall.layer(node).install(2, (), ())
        hall.layer(node).restore(b"")
    hall.number = 2
    for node in (0, 1):
        hall.layer(node).install(3, (0, 1), (0, 1))
        hall.member(node).conclude()
    hall.say(1, "b")
    assert [hall.heard(node) for node in (0, 1)] == [[], []]
    hall.flow()
    assert [hall.heard(node) for node in (0, 1)] == [["b"], ["b"]]
    assert hall.returned == ["a"]


def test_a_switch_that_makes_no_sense_is_refused() -> None:
    hall = Hall(2, [0])
    with pytest.raises(LocalError, match="not allowed in state 'active'"):
        hall.member(0).go_active()


def test_every_transition_of_the_table_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, MODES)
    for seed in range(150):
        play(seed)
    relieved_on_its_way_to_passive()
    assert set(MODES.table) - taken == set()


def test_the_page_draws_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocols" / "hybrid.md").read_text()
    lines = page.split("Member:\n")[1].split("```")[0].splitlines()
    drawn = {tuple(line.strip().replace(" --> ", " -- ").split(" -- ")) for line in lines}
    table = {(state.value, event.value, to.value) for (state, event), to in MODES.table.items()}
    assert drawn == table
