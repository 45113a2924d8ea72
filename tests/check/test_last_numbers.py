"""Agreement where issuers are removed: a minority may have got more than its group settles (Appendix B)."""

import msgspec
import pytest

from ordercast.core import Agreement, Guarantees
from tests.check.traces import NOTIFIED, Trace

AGREED = msgspec.structs.replace(NOTIFIED, validity=False)
OLD, NEW = 9, 10
"""The issuer that a trace begins with, and one that joins."""
TWO_GROUPS = {0: (0, 1, 2), 1: (3, 4, 5)}


def removal(*numbers: int, last: int) -> Trace:
    """Node 0 delivers some numbers, nodes 1 and 2 the first of them alone; then all remove the issuer."""
    trace = Trace(AGREED)
    messages = [trace.submit() for _ in numbers]
    for message, number in zip(messages, numbers, strict=True):
        trace.numbered(0, message, number, clock=number)
    for node in (1, 2):
        trace.numbered(node, messages[0], numbers[0], clock=numbers[0])
    for node in range(3):
        trace.removed(node, 1, OLD, last, clock=100)
    return trace


def test_beyond_the_last_number_a_minority_binds_nobody() -> None:
    removal(1, 2, 3, last=1).clean()


def last_message(*delivered: int, notified: tuple[int, ...] = (), uniform: bool = True) -> Trace:
    """Some get the only message of an issuer, to two groups; both remove the issuer, and settle nothing."""
    trace = Trace(msgspec.structs.replace(AGREED, uniform=uniform), TWO_GROUPS)
    message = trace.submit(groups=(0, 1))
    for node in delivered:
        trace.numbered(node, message, 1, 1)
    for group, members in TWO_GROUPS.items():
        for node in members:
            if node in notified:
                trace.drop(node, 1, group=group)
            trace.removed(node, 1, OLD, 0, group=group)
    return trace


def test_minorities_of_all_groups_bind_nobody() -> None:
    last_message(0, 3).clean()
    last_message(0, notified=(3,)).clean()


@pytest.mark.parametrize("delivered", [(0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 4, 5)])
def test_what_a_majority_of_one_group_delivered_is_owed_in_all(delivered: tuple[int, ...]) -> None:
    missing = [node for node in range(6) if node not in delivered]
    assert last_message(*delivered).only("agreement").nodes == (0, *missing)
    last_message(*delivered, notified=tuple(missing)).clean()


def test_of_what_a_majority_was_notified_or_got_the_rest_of_the_group_is_told() -> None:
    last_message(notified=(0, 3)).clean()
    assert last_message(notified=(0, 1, 3)).only("agreement").nodes == (0, 2)
    assert last_message(0, notified=(1,)).only("agreement").nodes == (0, 2)
    last_message(0, notified=(1, 2, 3)).clean()


def test_half_of_a_group_is_no_majority() -> None:
    trace = Trace(AGREED, {0: (0, 1, 2, 3)})
    message = trace.submit()
    for node in (0, 1):
        trace.numbered(node, message, 1)
    for node in range(4):
        trace.removed(node, 1, OLD, 0)
    trace.clean()
    trace.events.insert(3, trace.events[2]._replace(node=2))
    assert trace.only("agreement").nodes == (0, 3)


@pytest.mark.parametrize("back", ["", "saved", "lost"])
def test_those_that_crashed_afterwards_count_for_a_majority(back: str) -> None:
    trace = last_message(0, 1, uniform=False)
    trace.crash(1)
    if back:
        trace.recover(1, back)
    assert trace.only("agreement").nodes == (0, 2, 3, 4, 5)


def test_a_majority_that_crashed_binds_nobody_where_agreement_is_not_uniform() -> None:
    trace = last_message(0, 1, uniform=False)
    for node in (0, 1):
        trace.crash(node)
    trace.clean()


def test_up_to_the_last_number_all_are_bound() -> None:
    found = {violation.property: violation for violation in removal(1, 2, 3, last=2).judge()}
    assert found.keys() == {"agreement", "drop-detection"}
    assert found["agreement"].nodes == (0, 1, 2)
    assert len(found["agreement"].messages) == 1


def test_one_view_anywhere_says_what_is_settled() -> None:
    trace = removal(1, 2, last=1)
    trace.events[-3:-1] = []
    trace.clean()
    trace.events.pop()
    trace.only("agreement")


def test_only_the_issuer_that_was_removed_is_free() -> None:
    trace = removal(1, 2, last=1)
    message = trace.submit()
    trace.numbered(0, message, 1, issuer=NEW, clock=200)
    assert trace.only("agreement").messages == (message,)


def test_views_that_differ_excuse_no_more_than_the_largest_of_them() -> None:
    trace = removal(1, 2, last=1)
    trace.events[-3] = trace.events[-3]._replace(numbers=(2,))
    assert {violation.property for violation in trace.judge()} == {"agreement", "drop-detection"}


def test_a_notification_beyond_the_last_number_binds_nobody() -> None:
    trace = Trace(AGREED)
    trace.drop(0, 1)
    for node in range(3):
        trace.removed(node, 1, OLD, 0)
    trace.clean()
    trace.events = [event._replace(numbers=(1,)) for event in trace.events]
    found = [violation for violation in trace.judge() if violation.property == "agreement"]
    assert [violation.nodes for violation in found] == [(0, 1, 2)]


def test_a_message_to_two_groups_is_owed_where_its_number_is_settled() -> None:
    def run(last: int, *notified: int) -> Trace:
        trace = Trace(AGREED, {0: (0, 1), 1: (2, 3)})
        trace.numbered(0, trace.submit(groups=(0, 1)), 1, 1)
        for node in notified:
            trace.drop(node, 1, group=1)
        for node in (0, 1):
            trace.removed(node, 1, OLD, 0, group=0)
        for node in (2, 3):
            trace.removed(node, 1, OLD, last, group=1)
        return trace

    run(0).clean()
    run(1, 2, 3).clean()
    found = [violation for violation in run(1, 2).judge() if violation.property == "agreement"]
    assert [violation.nodes for violation in found] == [(0, 3)]


def test_agreement_of_all_on_all_knows_no_such_excuse() -> None:
    trace = removal(1, 2, last=1)
    everything = Guarantees(agreement=Agreement.ALL)
    trace.description = msgspec.structs.replace(trace.description, guarantees=everything)
    trace.only("agreement")


def test_validity_is_not_excused_by_a_removal() -> None:
    trace = removal(1, 2, last=1)
    promise = msgspec.structs.replace(AGREED, validity=True)
    trace.description = msgspec.structs.replace(trace.description, guarantees=promise)
    assert trace.only("validity").nodes == (3, 1, 2)


def test_a_minority_beyond_the_last_number_keeps_to_the_order() -> None:
    trace = removal(1, 2, last=1)
    late = trace.submit()
    for node in range(3):
        trace.numbered(node, late, 1, issuer=NEW, clock=200)
    trace.clean()
    trace = Trace(AGREED, {0: (0, 1, 2, 3, 4)})
    a, b, c = (trace.submit() for _ in range(3))
    for node, messages in enumerate(((a, b, c), (a, c, b), (a,), (a,), (a,))):  # the first two disagree
        for message in messages:
            trace.numbered(node, message, 1 + (a, b, c).index(message), clock=message)
    for node in range(5):
        trace.removed(node, 1, OLD, 1)
    found = {violation.property for violation in trace.judge()}
    assert "total-order" in found
    assert "agreement" not in found
