"""One branch survives: primary views follow each other, and nobody is left with what was discarded."""

from collections.abc import Callable

import pytest

from ordercast.core import format_ns, message_id, message_name
from ordercast.judge import Violation
from ordercast.trace import Kind
from tests.check.branch_traces import FIRST, BranchTrace, is_row, meet, split

VOID = message_id(3, 1)
"""The operation that only node 0 ordered."""


def test_a_split_whose_side_branch_was_taken_back_is_clean() -> None:
    meet(split()).clean()


def test_a_run_without_a_split_is_clean_and_needs_no_view() -> None:
    trace = BranchTrace()
    for clock in range(1, 5):
        trace.serve(3, clock, 0, 0, 1, 2)
    trace.clean()


def test_a_primary_that_crashes_may_leave_operations_that_only_its_client_knows() -> None:
    trace = split()
    trace.crash(0)
    trace.undo(3, 2)
    trace.clean()
    trace.events.pop()
    found = trace.only("branches")
    assert (found.nodes, found.messages) == ((3,), (VOID,))


# Views


def other_predecessor(trace: BranchTrace) -> None:
    trace.change(is_row(2, Kind.VIEW), numbers=(0, 3))


def other_beginning(trace: BranchTrace) -> None:
    trace.change(is_row(2, Kind.VIEW), stamp_clock=1)


def no_beginning(trace: BranchTrace) -> None:
    trace.change(is_row(2, Kind.VIEW), stamp_clock=None)


def no_predecessor(trace: BranchTrace) -> None:
    trace.change(is_row(2, Kind.VIEW), numbers=None)


def without_its_primary(trace: BranchTrace) -> None:
    trace.change(is_row(2, Kind.VIEW), members=(0, 2))


def next_view(trace: BranchTrace, name: tuple[int, int], before: tuple[int, int], clock: int) -> None:
    trace.install(name, before, clock, 0, 1, 2)


@pytest.mark.parametrize(
    "fault", [other_predecessor, other_beginning, no_beginning, no_predecessor, without_its_primary]
)
def test_a_view_is_the_same_at_all_that_install_it(fault: Callable[[BranchTrace], None]) -> None:
    trace = meet(split())
    fault(trace)
    violations = trace.judge()
    assert {found.property for found in violations} == {"branches"}
    assert all(2 in found.nodes for found in violations)


@pytest.mark.parametrize(
    ("name", "before", "clock"),
    [((2, 4), (2, 2), 12), ((2, 4), (3, 2), 12), ((2, 4), (1, 7), 12)],
    ids=["circle", "number", "unknown"],
)
def test_a_view_follows_one_that_was_installed_and_has_a_lower_number(
    name: tuple[int, int], before: tuple[int, int], clock: int
) -> None:
    trace = meet(split())
    next_view(trace, name, before, clock)
    found = [violation.detail for violation in trace.judge() if violation.property == "branches"]
    assert any("view 2 of precedence 4" in detail and "node 0" in detail for detail in found)


def test_precedences_do_not_fall_along_a_branch() -> None:
    trace = BranchTrace()
    trace.serve(3, 1, 0, 0, 1, 2)
    next_view(trace, (1, 4), FIRST, 1)
    next_view(trace, (2, 2), (1, 4), 1)
    found = trace.only("branches")
    assert "view 2 of precedence 2" in found.detail and "precedence 4" in found.detail


def test_a_view_does_not_begin_before_the_one_that_it_follows() -> None:
    trace = BranchTrace()
    trace.serve(3, 1, 0, 0, 1, 2)
    next_view(trace, (1, 1), FIRST, 1)
    trace.serve(3, 5, 1, 0, 1, 2, config=1)
    next_view(trace, (2, 2), (1, 1), 0)
    trace.undo(3, 0)
    for node in range(3):
        trace.undo(node, 0)
    trace.only("branches")


def test_the_same_primary_may_go_on_with_fewer_members_in_a_view_of_the_same_precedence() -> None:
    trace = BranchTrace()
    trace.serve(3, 1, 0, 0, 1, 2)
    next_view(trace, (1, 0), FIRST, 1)
    trace.serve(3, 11, 0, 0, 1, 2, config=1)
    trace.clean()


# The end


def test_all_receivers_that_are_up_are_in_the_last_view_at_the_end() -> None:
    trace = meet(split())
    next_view(trace, (2, 2), (1, 1), 12)
    trace.clean()
    trace.remove(lambda event: event.config == 2 and event.node == 0)
    assert trace.only("branches").nodes == (0,)


def test_a_receiver_that_comes_back_is_told_its_view() -> None:
    trace = meet(split())
    trace.crash(2)
    trace.recover(2)
    assert trace.only("branches").nodes == (2,)
    trace.rejoin(2, 12, (1, 1), FIRST, 2)
    trace.clean()


def test_a_receiver_that_stays_down_may_be_in_any_view() -> None:
    trace = meet(split())
    trace.install((7, 7), (1, 1), 12, 1)
    trace.crash(1)
    trace.install((2, 2), (1, 1), 12, 0, 2)
    trace.serve(4, 21, 2, 0, 2, config=2)
    trace.clean()


def test_in_an_incomplete_run_the_sides_may_not_have_met() -> None:
    split(complete=False).clean()
    nodes = {found.nodes for found in split().judge() if found.property == "branches"}
    assert nodes == {(0,), (3,)}


# What nodes are told


def without(node: int) -> Callable[[BranchTrace], None]:
    return lambda trace: trace.remove(is_row(node, Kind.UNDONE))


def too_late_a_place(node: int) -> Callable[[BranchTrace], None]:
    return lambda trace: trace.change(is_row(node, Kind.UNDONE), stamp_clock=3)


def no_place(node: int) -> Callable[[BranchTrace], None]:
    return lambda trace: trace.change(is_row(node, Kind.UNDONE), groups=())


def too_early(node: int) -> Callable[[BranchTrace], None]:
    def change(trace: BranchTrace) -> None:
        notice = next(event for event in trace.events if is_row(node, Kind.UNDONE)(event))
        trace.events.remove(notice)
        row = next(r for r, event in enumerate(trace.events) if event.message == VOID)
        before = trace.events[row]
        trace.events.insert(row, notice._replace(time_ns=before.time_ns, clock_ns=before.clock_ns))

    return change


@pytest.mark.parametrize("node", [0, 3])
@pytest.mark.parametrize("fault", [without, too_late_a_place, no_place, too_early])
def test_a_node_is_told_of_what_does_not_survive(
    fault: Callable[[int], Callable[[BranchTrace], None]], node: int
) -> None:
    trace = meet(split())
    fault(node)(trace)
    found = trace.only("branches")
    assert (found.nodes, found.messages) == ((node,), (VOID,))
    _names(found, trace)


def _names(found: Violation, trace: BranchTrace) -> None:
    """The finding names the message, its place and its time."""
    row = next(e for e in trace.events if e.node == found.nodes[0] and e.message == VOID and e.stamp_clock)
    assert row.time_ns in found.times_ns
    for part in (message_name(VOID), "(3, 0)", format_ns(row.time_ns), f"node {found.nodes[0]}"):
        assert part in found.detail


@pytest.mark.parametrize("node", [0, 3])
def test_nobody_is_told_of_what_survives_that_it_does_not(node: int) -> None:
    trace = meet(split())
    trace.change(is_row(node, Kind.UNDONE), stamp_clock=0)
    found = trace.only("branches")
    assert found.nodes == (node,) and message_id(3, 0) in found.messages
    trace.change(is_row(node, Kind.UNDONE), numbers=(1, 1))
    trace.only("branches")


def test_a_notice_has_a_place() -> None:
    trace = meet(split())
    trace.undo(4, 0)
    trace.change(is_row(4, Kind.UNDONE), stamp_clock=None)
    assert trace.only("branches").nodes == (4,)


def three_branches() -> BranchTrace:
    """Node 0 gives way to view 1 of node 1, which gives way to view 2 of node 2; that follows the first."""
    trace = BranchTrace()
    trace.serve(3, 1, 0, 0, 1, 2)
    trace.install((1, 1), FIRST, 1, 1)
    trace.serve(4, 11, 1, 1, config=1)
    trace.serve(3, 2, 0, 0, 2)
    trace.undo(0, 1, follows=(1, 1))
    trace.undo(3, 1, follows=(1, 1))
    trace.rejoin(0, 11, (1, 1), FIRST, 1)
    trace.install((2, 2), FIRST, 2, 2)
    for node in (0, 1, 4):
        trace.undo(node, 1, follows=(2, 2))
    for node in (0, 1):
        trace.rejoin(node, 2, (2, 2), FIRST, 2)
    trace.change(is_row(0, Kind.CHECKPOINT), stamp_issuer=0)
    trace.change(is_row(1, Kind.CHECKPOINT), stamp_issuer=0)
    trace.serve(4, 21, 2, 0, 1, 2, config=2)
    return trace


def test_a_node_may_take_back_too_much_if_it_follows_a_view_that_is_discarded_later() -> None:
    three_branches().clean()
    trace = three_branches()
    for node in (0, 3):
        row = next(r for r, event in enumerate(trace.events) if is_row(node, Kind.UNDONE)(event))
        trace.events[row] = trace.events[row]._replace(numbers=None)
    assert {found.nodes for found in trace.judge()} == {(0,), (3,)}
    trace.only("branches", 3)
