"""Views that tell a state, views without a majority, and members that do not survive a view or start anew."""

import pytest

from ordercast.core import ANEW, Agreement, Crashes, GroupId, Guarantees, Membership, NodeId, Partition
from ordercast.trace import Kind
from tests.check.traces import Trace

VIEWS = Guarantees(views=True, agreement=Agreement.ALL, validity=True)
MAJORITY = Guarantees(
    views=True,
    partition=Partition.MAJORITY_CONTINUES,
    crashes=Crashes.MINORITY_OF_ALL,
    agreement=Agreement.ALL,
)


def begin(promise: Guarantees = VIEWS) -> Trace:
    """Three members in view 1."""
    trace = Trace(promise)
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    return trace


def anew(trace: Trace, node: NodeId, config: int, *members: NodeId, state: int | None = None) -> None:
    issuer = None if state is None else config
    trace.row(
        node,
        Kind.VIEW,
        groups=(0,),
        config=config,
        members=members,
        label=ANEW,
        stamp_clock=state,
        stamp_issuer=issuer,
    )


def stated(trace: Trace, node: NodeId, config: int, state: int, group: GroupId = 0) -> None:
    trace.row(
        node,
        Kind.VIEW,
        groups=(group,),
        config=config,
        members=(0, 1, 2),
        stamp_clock=state,
        stamp_issuer=config,
    )


def test_a_view_has_one_state() -> None:
    trace = Trace(VIEWS)
    for node in range(3):
        stated(trace, node, 1, 7)
    trace.clean()
    for node, state in ((0, 9), (1, 9)):
        stated(trace, node, 2, state)
    anew(trace, 2, 2, 0, 1, 2, state=8)
    found = trace.only("view-synchrony")
    assert found.nodes == (2, 0)
    assert "with the state 8, node 0 with the state 9" in found.detail


def test_the_clock_of_a_change_of_issuers_is_no_state() -> None:
    trace = begin()
    for node in range(3):
        trace.added(node, 2, 9, 0, clock=node)
    assert [one for one in trace.judge() if one.property == "view-synchrony" and "state" in one.detail] == []


def test_a_minority_that_goes_on() -> None:
    trace = begin(MAJORITY)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    trace.clean()
    trace.view(0, 3, 0)
    found = trace.only("view-synchrony")
    assert found.nodes == (0,) and "view 3 has only the members 0" in found.detail


def test_a_minority_may_go_on_where_only_that_is_promised() -> None:
    trace = begin(VIEWS)
    trace.view(0, 2, 0)
    trace.clean()


@pytest.mark.parametrize(
    ("asks", "clean"), [((), False), ((2,), True), ((1, 2), True)], ids=["nobody", "one", "two"]
)
def test_who_asked_to_leave_may_be_missing(asks: tuple[int, ...], clean: bool) -> None:
    promise = Guarantees(views=True, partition=Partition.MAJORITY_CONTINUES, membership=Membership.VIEWS)
    trace = begin(promise)
    for node in asks:
        trace.row(node, Kind.LEAVE, groups=(0,))
    trace.view(0, 2, 0)
    assert (trace.judge() == []) is clean


def test_a_majority_of_all_groups_counts_if_that_is_promised() -> None:
    for crashes, clean in ((Crashes.MINORITY_OF_ALL, True), (Crashes.MINORITY, False)):
        promise = Guarantees(views=True, partition=Partition.MAJORITY_CONTINUES, crashes=crashes)
        trace = Trace(promise, {0: (0, 1), 1: (2, 3, 4)})
        trace.view(0, 2, 0)
        for node in (2, 3, 4):
            trace.view(node, 2, 2, 3, 4, group=1)
        assert (trace.judge() == []) is clean


def test_what_an_excluded_member_delivered_last_binds_nobody() -> None:
    trace = begin()
    a = trace.submit(2)
    trace.deliver(2, a)
    trace.crash(2)
    trace.recover(2)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    trace.clean()


def test_what_a_member_delivered_that_starts_anew_in_the_next_view_binds_nobody() -> None:
    trace = begin()
    a = trace.submit(2)
    trace.deliver(2, a)
    trace.crash(2)
    trace.recover(2)
    for node in (0, 1):
        trace.view(node, 2, 0, 1, 2)
    anew(trace, 2, 2, 0, 1, 2)
    trace.clean()


def test_what_it_delivered_in_a_view_that_it_survived_binds() -> None:
    trace = begin()
    a = trace.submit()
    trace.deliver(1, a)
    trace.deliver(2, a)
    trace.crash(0)
    trace.recover(0)
    for node in range(3):
        trace.view(node, 2, 0, 1, 2)
    found = trace.only("agreement")
    assert found.nodes == (1, 0)


def test_uniform_agreement_binds_by_what_an_excluded_member_delivered() -> None:
    trace = begin(Guarantees(views=True, agreement=Agreement.ALL, uniform=True))
    trace.deliver(2, trace.submit(2))
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    assert trace.only("agreement").nodes == (2, 0, 1)


def test_one_that_starts_anew_owes_nothing_of_before_and_all_of_after() -> None:
    trace = begin()
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a)
    trace.crash(2)
    trace.recover(2)
    for node in (0, 1):
        trace.view(node, 2, 0, 1, 2)
    anew(trace, 2, 2, 0, 1, 2)
    trace.deliver_to_all(b)
    trace.clean()
    trace.events.pop()
    assert trace.only("agreement").nodes == (0, 2)
