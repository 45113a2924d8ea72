"""Without uniform agreement, what a member delivers in a view that it does not survive binds nobody."""

import msgspec

from ordercast.core import ANEW, Agreement, Guarantees, Membership, MessageId, Order
from ordercast.trace import LOST, Kind, Stretch
from tests.check.traces import Trace

SURVIVING = Guarantees(order=Order.ACROSS, agreement=Agreement.ALL, views=True)


def begun() -> tuple[Trace, MessageId, MessageId]:
    """Three members in view 1, and two messages that node 0 delivers in an order of its own."""
    trace = Trace(SURVIVING)
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, b, a)
    return trace, a, b


def start_anew(trace: Trace, node: int, config: int) -> None:
    trace.row(node, Kind.VIEW, config=config, groups=(0,), members=(0, 1, 2), label=ANEW)


def test_what_an_excluded_member_delivered_binds_nobody() -> None:
    trace, a, b = begun()
    for node in range(3):
        trace.view(node, 2, 1, 2)
    for node in (1, 2):
        trace.deliver(node, a, b)
    trace.clean()


def test_a_member_that_starts_anew_may_deliver_again() -> None:
    trace, a, b = begun()
    for node in (1, 2):
        trace.view(node, 2, 0, 1, 2)
    start_anew(trace, 0, 2)
    trace.deliver_to_all(a, b)
    trace.clean()


def test_a_member_that_goes_on_is_bound() -> None:
    trace, a, b = begun()
    for node in (1, 2):
        trace.deliver(node, a, b)
    for node in range(3):
        trace.view(node, 2, 0, 1, 2)
    found = trace.only("total-order", 2)
    assert set(found.messages) == {a, b}
    assert 0 in found.nodes


def test_a_member_of_the_newest_view_is_bound() -> None:
    trace, a, b = begun()
    for node in (1, 2):
        trace.deliver(node, a, b)
    assert set(trace.only("total-order", 2).messages) == {a, b}


def test_a_member_that_stays_behind_is_not_bound() -> None:
    trace, a, b = begun()
    for node in (1, 2):
        trace.deliver(node, a, b)
        trace.view(node, 2, 1, 2)
    trace.clean()


def test_a_member_that_left_with_a_view_that_it_did_not_install_is_not_bound_when_it_joins_again() -> None:
    trace, a, b = begun()
    promised = msgspec.structs.replace(SURVIVING, membership=Membership.VIEWS)
    trace.description = msgspec.structs.replace(trace.description, guarantees=promised)
    for node in (1, 2):
        trace.view(node, 2, 1, 2)
        trace.deliver(node, a, b)
    for config, asked, told in ((2, Kind.LEAVE, Kind.LEFT), (3, Kind.JOIN, Kind.JOINED)):
        trace.row(0, asked, groups=(0,))
        trace.row(0, told, groups=(0,), config=config)
    for node in range(3):
        trace.view(node, 3, 0, 1, 2)
    trace.clean()


def test_a_member_that_lost_its_state_is_not_bound_by_its_earlier_life() -> None:
    trace, a, b = begun()
    for node in (1, 2):
        trace.deliver(node, a, b)
    trace.row(0, Kind.CRASH)
    trace.row(0, Kind.RECOVER, label=LOST)
    trace.clean()


def test_it_still_delivers_a_message_once_in_a_view() -> None:
    trace, a, b = begun()
    trace.deliver(0, a)
    for node in (1, 2):
        trace.deliver(node, b, a)
    assert trace.only("integrity").nodes == (0,)


def test_what_does_not_last_is_still_heard() -> None:
    trace, a, b = begun()
    trace.description = msgspec.structs.replace(
        trace.description, stretches=(Stretch(0, 100_000, 10_000, (3,), (0, 1, 2)),), complete=False
    )
    for node in (1, 2):
        trace.deliver(node, a, b)
    trace.time_ns = 200_000
    for node in range(3):
        trace.view(node, 2, 1, 2)
    trace.clean()


def test_groups_count_their_views_apart() -> None:
    trace = Trace(SURVIVING, groups={0: (0, 1), 1: (2, 3)})
    for node, group in ((0, 0), (1, 0), (2, 1), (3, 1)):
        members = (0, 1) if group == 0 else (2, 3)
        trace.row(node, Kind.VIEW, config=1 + group, groups=(group,), members=members)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.deliver(1, b, a)
    assert set(trace.only("total-order").messages) == {a, b}


def test_what_was_delivered_in_one_group_before_a_leave_is_not_owed_in_another_that_is_joined_later() -> None:
    promised = msgspec.structs.replace(SURVIVING, membership=Membership.VIEWS)
    trace = Trace(promised, groups={0: (0, 1), 1: (2, 3)})
    for node in (0, 1):
        trace.view(node, 1, 0, 1, group=0)
    for node in (2, 3):
        trace.view(node, 1, 2, 3, group=1)
    a = trace.submit(groups=(0, 1))
    for node in range(4):
        trace.deliver(node, a)
    trace.row(3, Kind.LEAVE, groups=(1,))
    for node in (2, 3):
        trace.view(node, 2, 2, group=1)
    trace.row(3, Kind.LEFT, groups=(1,), config=2)
    trace.row(3, Kind.JOIN, groups=(0,))
    trace.row(3, Kind.JOINED, groups=(0,), config=3)
    for node in (0, 1, 3):
        trace.view(node, 3, 0, 1, 3, group=0)
    trace.clean()
