"""Agreement and validity, which only the end of a complete run can judge."""

import msgspec

from ordercast.core import Agreement, Gaps, Guarantees, message_id
from ordercast.judge import END_OF_RUN
from tests.check.traces import NOTIFIED, STRICT, Trace

ALL = Guarantees(agreement=Agreement.ALL, validity=True)
UNIFORM = Guarantees(agreement=Agreement.ALL, validity=True, uniform=True)


def test_a_receiver_that_missed_a_message() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver(0, a)
    trace.deliver(2, a)
    found = trace.only("agreement")
    assert found.nodes == (0, 1)
    assert found.messages == (a,)
    assert found.step == END_OF_RUN
    assert "node 0 delivered 3#0 (at 2 us); node 1 never delivered it" in found.detail


def test_a_run_that_was_cut_off_is_not_judged() -> None:
    trace = Trace(complete=False)
    trace.deliver(0, trace.submit())
    trace.clean()


def test_probabilistic_agreement_is_not_judged_here() -> None:
    for promise in (Agreement.NONE, Agreement.PROBABILISTIC):
        trace = Trace(Guarantees(agreement=promise))
        trace.deliver(0, trace.submit())
        trace.clean()


def test_a_crashed_receiver_owes_nothing() -> None:
    trace = Trace()
    a = trace.submit()
    trace.crash(1)
    trace.deliver(0, a)
    trace.deliver(2, a)
    trace.clean()


def test_a_receiver_back_with_its_state_owes_all() -> None:
    trace = Trace()
    a = trace.submit()
    trace.crash(1)
    trace.deliver(0, a)
    trace.deliver(2, a)
    trace.recover(1, "saved")
    assert trace.only("agreement").nodes == (0, 1)
    trace.deliver(1, a)
    trace.clean()


def test_a_receiver_that_lost_its_state_owes_nothing() -> None:
    trace = Trace()
    a = trace.submit()
    trace.deliver_to_all(a)
    trace.crash(1)
    trace.recover(1, "lost")
    b = trace.submit()
    trace.deliver(0, b)
    trace.deliver(2, b)
    trace.clean()


def test_a_lost_state_is_not_made_good_by_a_later_restart() -> None:
    trace = Trace()
    a = trace.submit()
    for label in ("lost", "saved"):
        trace.crash(1)
        trace.recover(1, label)
    trace.deliver(0, a)
    trace.deliver(2, a)
    trace.clean()


def test_what_a_dead_receiver_delivered_binds_only_if_uniform() -> None:
    def run(guarantees: Guarantees) -> Trace:
        trace = Trace(guarantees)
        a = trace.submit()
        trace.deliver(1, a)
        trace.crash(1)
        trace.crash(3)
        return trace

    run(ALL).clean()
    assert run(UNIFORM).only("agreement").nodes == (1, 0, 2)


def test_every_destination_group_gets_it() -> None:
    trace = Trace(groups={0: (0, 1), 1: (2, 3)})
    a = trace.submit(groups=(0, 1))
    trace.deliver(0, a)
    trace.deliver(1, a)
    assert trace.only("agreement").nodes == (0, 2, 3)


def test_a_submission_that_nobody_delivers() -> None:
    trace = Trace()
    a = trace.submit()
    found = trace.only("validity")
    assert found.nodes == (3, 0, 1, 2)
    assert found.messages == (a,)
    assert found.step == END_OF_RUN
    assert "node 3 submitted 3#0 (at 1 us)" in found.detail


def test_the_submission_of_a_sender_that_crashed_afterwards_may_be_lost() -> None:
    trace = Trace()
    trace.submit()
    trace.crash(3)
    trace.recover(3, "saved")
    trace.clean()
    b = trace.submit()
    assert trace.only("validity").messages == (b,)


def test_validity_without_agreement_names_each_receiver_that_lacks_it() -> None:
    trace = Trace(Guarantees(validity=True))
    trace.deliver(0, trace.submit())
    assert trace.only("validity").nodes == (3, 1, 2)


def test_validity_not_promised() -> None:
    trace = Trace(msgspec.structs.replace(STRICT, validity=False))
    trace.submit()
    trace.clean()


def test_a_message_or_its_notification() -> None:
    trace = Trace(NOTIFIED)
    a, b = trace.submit(), trace.submit()
    trace.numbered(0, a, 1)
    trace.numbered(0, b, 2)
    trace.drop(1, 1)
    trace.numbered(1, b, 2)
    trace.numbered(2, a, 1)
    trace.drop(2, 2)
    trace.clean()


def test_neither_message_nor_notification() -> None:
    trace = Trace(NOTIFIED)
    a = trace.submit()
    trace.numbered(0, a, 1)
    trace.drop(1, 1)
    found = trace.only("agreement")
    assert (found.nodes, found.messages) == ((0, 2), (a,))
    assert "and got no notification of its drop" in found.detail


def test_a_notification_counts_by_its_slot_and_not_by_number_alone() -> None:
    for wrong in ({"issuer": 8}, {"group": 1}):
        trace = Trace(NOTIFIED, {0: (0, 1), 1: (0, 1)})
        a = trace.submit()
        trace.numbered(0, a, 1)
        trace.drop(0, 1, **wrong)
        trace.drop(1, 1, **wrong)
        assert trace.only("agreement").nodes == (0, 1)


def test_a_message_to_two_groups_has_a_slot_in_each() -> None:
    trace = Trace(NOTIFIED, {0: (0, 1), 1: (2, 3)})
    a = trace.submit(groups=(0, 1))
    trace.numbered(0, a, 1, 1)
    trace.drop(1, 1, group=0)
    trace.drop(2, 1, group=1)
    trace.drop(3, 1, group=1)
    trace.clean()
    trace.events.pop()
    assert trace.only("agreement").nodes == (0, 3)


def test_a_slot_that_nobody_delivered_is_notified_to_all() -> None:
    trace = Trace(NOTIFIED)
    trace.submit()
    for node in range(3):
        trace.drop(node, 1)
    trace.clean()
    trace.events.pop()
    violations = trace.judge()
    assert [v.property for v in violations] == ["agreement", "validity"]
    assert violations[0].nodes == (0, 2)
    assert "number 1 of issuer 9 in group 0" in violations[0].detail


def test_messages_of_one_bundle_share_a_slot() -> None:
    trace = Trace(NOTIFIED)
    a, b = trace.submit(), trace.submit()
    for node in (0, 1):
        trace.numbered(node, a, 1)
        trace.numbered(node, b, 1)
    trace.drop(2, 1)
    trace.clean()


def test_a_notification_at_a_dead_receiver_binds_only_if_uniform() -> None:
    def run(uniform: bool) -> Trace:
        promise = Guarantees(agreement=Agreement.NOTIFIED, gaps=Gaps.NOTIFIED, uniform=uniform)
        trace = Trace(promise)
        trace.drop(0, 1)
        trace.crash(0)
        return trace

    run(False).clean()
    assert run(True).only("agreement").nodes == (0, 1, 2)


def test_a_message_made_up_by_one_is_owed_by_none() -> None:
    trace = Trace()
    trace.deliver(0, message_id(3, 5))
    trace.only("integrity")


VALID = Guarantees(gaps=Gaps.NOTIFIED, validity=True)


def lost(count: int, dropped: int, senders: int = 1) -> Trace:
    """Messages that nobody delivered, and some notifications that may have been for them."""
    trace = Trace(VALID, {0: (0,)})
    for index in range(count):
        trace.submit(trace.sender + index % senders)
    for number in range(1, dropped + 1):
        trace.drop(0, number)
    return trace


def test_a_notification_of_something_unknown_excuses_one_message() -> None:
    lost(3, 3).clean()
    found = lost(5, 3).only("validity", 2)
    assert found.messages == (message_id(1, 3),)
    lost(2, 0).only("validity", 2)


def test_a_notification_excuses_at_its_receiver_and_in_its_group_only() -> None:
    trace = Trace(VALID, {0: (0, 1), 1: (0, 1)})
    trace.submit(groups=(0,))
    trace.submit(groups=(1,))
    trace.drop(0, 1, group=0)
    trace.drop(1, 1, group=1)
    found = trace.judge()
    assert [(v.property, v.nodes) for v in found] == [("validity", (2, 1)), ("validity", (2, 0))]


def test_a_message_to_two_groups_takes_the_excuse_that_no_other_can_use() -> None:
    trace = Trace(VALID, {0: (0,), 1: (0,)})
    trace.submit(groups=(0, 1))
    trace.submit(groups=(0,))
    trace.drop(0, 1, group=0)
    trace.drop(0, 1, group=1)
    trace.clean()


def test_where_there_are_bundles_a_notification_may_be_of_several_messages() -> None:
    trace = lost(0, 0)
    a, b = trace.submit(), trace.submit()
    trace.numbered(0, a, 1)
    trace.numbered(0, b, 1)
    trace.submit()
    trace.submit()  # may have been in one bundle with the one before
    trace.drop(0, 2)
    trace.clean()
    trace.submit(2)  # of another sender: in no bundle with those
    assert trace.only("validity").messages == (message_id(2, 0),)
