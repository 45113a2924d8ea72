"""The configuration service of Hydra section 4.4: whom it removes and adds, and what it makes of reports."""

from ordercast.core import MILLISECOND, Message, NodeId
from ordercast.protocols.hydra.messages import (
    Announce,
    Fetch,
    Join,
    Plans,
    Report,
    Step,
    Steps,
    Suspect,
    Welcome,
)
from tests.hydra.ensemble import EVERYONE, Ensemble

QUORUMS = (0, 1, 3, 4, 6, 7)
CURIOUS: NodeId = 99
"""A node that only asks where the service stands."""


def announced(ensemble: Ensemble) -> Announce:
    """Where the service says that it stands."""
    ensemble.service.take_sent()
    ensemble.service.receive(CURIOUS, Fetch(0))
    (answer,) = [m for to, m in ensemble.service.take_sent() if to == CURIOUS and isinstance(m, Announce)]
    return answer


def report(
    ensemble: Ensemble, node: NodeId, clock: int, *numbers: int, step: int = 0, sequencer: int = 1
) -> None:
    ensemble.service.receive(node, Report(step, sequencer, clock, numbers))


# Suspicions


def test_a_sequencer_is_removed_when_those_that_do_not_suspect_it_are_no_quorum() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, (0,))
    assert announced(ensemble).planned is None
    ensemble.suspect(1, (3, 6))
    assert announced(ensemble).planned is None, "one of each group"
    ensemble.suspect(1, (1,))
    assert announced(ensemble).planned == Plans("removed", 1, 21)


def test_an_old_suspicion_does_not_count() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, (0,))
    ensemble.service.pass_time(40 * MILLISECOND)
    ensemble.suspect(1, (1,))
    assert announced(ensemble).planned is None


def test_a_lonely_suspicion_counts_after_a_long_time() -> None:
    ensemble = Ensemble()
    for _ in range(29):
        ensemble.suspect(1, (0,))
        ensemble.service.pass_time(10 * MILLISECOND)
    assert announced(ensemble).planned is None
    for _ in range(3):
        ensemble.suspect(1, (0,))
        ensemble.service.pass_time(10 * MILLISECOND)
    assert announced(ensemble).planned == Plans("removed", 1, 21)


def test_with_the_whole_group_as_quorum_one_suspicion_is_enough() -> None:
    ensemble = Ensemble(quorum="all")
    ensemble.suspect(2, (4,))
    assert announced(ensemble).planned == Plans("removed", 2, 22)


def test_suspicions_of_sequencers_that_nobody_has_are_nothing() -> None:
    ensemble = Ensemble()
    ensemble.suspect(7, EVERYONE)
    assert announced(ensemble).planned is None


# Removals


def planned_removal() -> Ensemble:
    ensemble = Ensemble()
    ensemble.suspect(1, (0, 1))
    return ensemble


def test_the_new_configuration_is_announced_to_all_receivers() -> None:
    ensemble = planned_removal()
    told = {to: m for to, m in ensemble.service.take_sent() if isinstance(m, Announce)}
    assert set(EVERYONE) <= set(told)
    assert all(m.planned == Plans("removed", 1, 21) and m.steps == 0 for m in told.values())


def test_the_agreed_numbers_are_the_highest_of_any_report_for_each_group() -> None:
    ensemble = planned_removal()
    report(ensemble, 0, 50, 1, 7, 0)
    report(ensemble, 1, 40, 9, 2, 1)
    report(ensemble, 3, 45, 3, 3, 3)
    report(ensemble, 4, 44, 0, 0, 0)
    report(ensemble, 6, 10, 0, 8, 2)
    assert announced(ensemble).steps == 0, "group 2 has no quorum yet"
    report(ensemble, 8, 20, 0, 0, 0)
    answer = announced(ensemble)
    assert answer.latest == Step("removed", 1, 21, 1, 50, (9, 8, 3))
    assert (answer.steps, answer.active, answer.planned) == (1, ((2, 22),), None)


def test_a_quorum_of_each_group_is_needed_and_not_one_of_all_together() -> None:
    ensemble = planned_removal()
    for node in (0, 1, 2, 3, 4, 5, 6):
        report(ensemble, node, 10, 0, 0, 0)
    assert announced(ensemble).steps == 0


def test_a_receiver_counts_once_and_its_first_report_stands() -> None:
    ensemble = planned_removal()
    for node in (0, 3, 4, 6, 7):
        report(ensemble, node, 10, 0, 1, 0)
    report(ensemble, 0, 90, 0, 9, 0)
    assert announced(ensemble).steps == 0
    report(ensemble, 1, 10, 0, 0, 0)
    assert announced(ensemble).latest == Step("removed", 1, 21, 1, 10, (0, 1, 0))


def test_reports_of_another_step_or_sequencer_do_not_count() -> None:
    ensemble = planned_removal()
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0, step=1)
        report(ensemble, node, 10, 0, 0, 0, sequencer=2)
    assert announced(ensemble).steps == 0


# Additions


def join(ensemble: Ensemble, node: NodeId = 23, life: int = 7) -> list[Message]:
    """A sequencer asks to join; what it is told."""
    ensemble.service.take_sent()
    ensemble.service.receive(node, Join(life))
    return [message for to, message in ensemble.service.take_sent() if to == node]


def test_a_node_that_asks_to_join_gets_a_number_that_none_has_had() -> None:
    ensemble = Ensemble()
    assert join(ensemble) == [Welcome(7, 3, 1)]
    assert announced(ensemble).planned == Plans("added", 3, 23)
    assert join(ensemble) == [Welcome(7, 3, 1)], "and the same again for the same life"


def test_the_flush_with_the_highest_clock_is_where_the_new_sequencer_begins() -> None:
    ensemble = Ensemble()
    join(ensemble)
    for node, clock in zip(QUORUMS, (30, 60, 40, 50, 20, 10), strict=True):
        report(ensemble, node, clock, clock + 1, clock + 2, clock + 3, sequencer=3)
    answer = announced(ensemble)
    assert answer.latest == Step("added", 3, 23, 1, 60, (61, 62, 63))
    assert answer.active == ((1, 21), (2, 22), (3, 23))


def test_steps_are_taken_one_after_the_other() -> None:
    ensemble = planned_removal()
    assert join(ensemble) == [], "a removal is under way"
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0)
    ensemble.service.pass_time(20 * MILLISECOND)
    assert announced(ensemble).planned == Plans("added", 3, 23)


def test_a_removal_comes_before_an_addition() -> None:
    ensemble = Ensemble()
    join(ensemble)
    ensemble.suspect(1, QUORUMS)
    assert announced(ensemble).planned == Plans("added", 3, 23)
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0, sequencer=3)
    ensemble.service.pass_time(20 * MILLISECOND)
    assert announced(ensemble).planned == Plans("removed", 1, 21)


def test_an_addition_that_takes_too_long_is_given_up() -> None:
    ensemble = Ensemble()
    join(ensemble)
    for _ in range(60):
        ensemble.service.pass_time(20 * MILLISECOND)
    answer = announced(ensemble)
    assert answer.latest is not None and answer.latest.change == "void"
    assert answer.active == ((1, 21), (2, 22))


def test_an_addition_of_a_sequencer_that_is_suspected_is_given_up() -> None:
    ensemble = Ensemble()
    join(ensemble)
    ensemble.suspect(3, (3, 4))
    answer = announced(ensemble)
    assert answer.latest is not None and answer.latest.change == "void"


def test_the_first_life_of_an_initial_node_takes_its_number_without_a_step() -> None:
    ensemble = Ensemble(claimed=False)
    assert announced(ensemble).silent == (1, 2), "nobody is to send to a sequencer that has no number yet"
    assert join(ensemble, 21, 0) == [Welcome(0, 1, 0)]
    assert announced(ensemble).silent == (2,)
    assert announced(ensemble).steps == 0


def test_a_later_life_of_an_active_node_is_removed_and_then_added_under_another_number() -> None:
    ensemble = Ensemble()
    join(ensemble, 21, 0)
    assert join(ensemble, 21, 500) == []
    assert announced(ensemble).planned == Plans("removed", 1, 21)
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0)
    ensemble.service.pass_time(20 * MILLISECOND)
    assert announced(ensemble).planned == Plans("added", 3, 21)


# Whom senders should leave alone


def test_a_sequencer_that_is_about_to_be_removed_is_called_silent() -> None:
    ensemble = planned_removal()
    assert announced(ensemble).silent == (1,)
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0)
    answer = announced(ensemble)
    assert (answer.active, answer.silent) == (((2, 22),), ()), "and then it is not there at all"


def test_a_sequencer_that_is_about_to_be_added_is_not() -> None:
    ensemble = Ensemble()
    join(ensemble)
    answer = announced(ensemble)
    assert (answer.planned, answer.silent) == (Plans("added", 3, 23), ())


def test_a_sequencer_that_was_reborn_is_called_silent_at_once() -> None:
    ensemble = Ensemble()
    ensemble.suspect(2, (0, 1))
    assert announced(ensemble).planned == Plans("removed", 2, 22), "which keeps the service busy"
    assert announced(ensemble).silent == (2,)
    join(ensemble, 21, 500)
    assert announced(ensemble).silent == (1, 2), "its number went with its life"


def test_a_life_that_is_over_asks_in_vain() -> None:
    ensemble = Ensemble()
    join(ensemble, 21, 3)
    assert announced(ensemble).silent == ()


# Those who missed something


def test_decided_steps_can_be_fetched_from_any_place() -> None:
    ensemble = planned_removal()
    for node in QUORUMS:
        report(ensemble, node, 10, 0, 0, 0)
    ensemble.service.take_sent()
    ensemble.service.receive(2, Fetch(0))
    answers = [message for to, message in ensemble.service.take_sent() if to == 2]
    step = Step("removed", 1, 21, 1, 10, (0, 0, 0))
    assert answers == [Steps(0, (step,)), Announce(1, ((2, 22),), None, step)]
    ensemble.service.receive(2, Fetch(1))
    assert [type(message) for to, message in ensemble.service.take_sent() if to == 2] == [Announce]


def test_a_planned_step_is_announced_again_and_again() -> None:
    ensemble = planned_removal()
    ensemble.service.take_sent()
    ensemble.service.pass_time(20 * MILLISECOND)
    announcements = [m for to, m in ensemble.service.take_sent() if to == 5 and isinstance(m, Announce)]
    assert len(announcements) >= 5
    assert {m.planned for m in announcements} == {Plans("removed", 1, 21)}


def test_a_follower_says_nothing() -> None:
    ensemble = Ensemble()
    ensemble.service.process._log._step_down()
    ensemble.service.take_sent()
    ensemble.service.process.on_message(0, Suspect((1,)))
    ensemble.service.process.on_message(0, Fetch(0))
    assert ensemble.service.take_sent() == []
