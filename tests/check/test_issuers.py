"""Issuers that join and leave (Hydra section 4.4 and Appendix B): drop detection with such views."""

import pytest

from ordercast.core import Gaps, Guarantees
from ordercast.trace import ADDED, REMOVED, Kind
from tests.check.traces import Trace

GAPS = Guarantees(gaps=Gaps.NOTIFIED)
OLD, NEW = 9, 10
"""The issuer that a trace begins with, and one that joins."""


def deliver(trace: Trace, node: int, *numbers: int, issuer: int = OLD) -> None:
    """Deliver new messages with these numbers."""
    for number in numbers:
        trace.numbered(node, trace.submit(), number, issuer=issuer)


# Joining


def test_the_numbers_of_an_added_issuer_begin_where_its_view_says() -> None:
    trace = Trace(GAPS)
    deliver(trace, 0, 1)
    trace.added(0, 1, NEW, 40)
    deliver(trace, 0, 41, issuer=NEW)
    deliver(trace, 0, 2)
    trace.drop(0, 42, issuer=NEW)
    deliver(trace, 0, 43, issuer=NEW)
    trace.clean()
    deliver(trace, 0, 45, issuer=NEW)
    assert "neither message nor notification for number 44" in trace.only("drop-detection").detail


def test_the_first_number_of_an_added_issuer_is_passed_over() -> None:
    trace = Trace(GAPS)
    trace.added(0, 1, NEW, 40)
    deliver(trace, 0, 42, issuer=NEW)
    assert "for number 41" in trace.only("drop-detection").detail


def test_a_number_from_before_an_issuer_was_added() -> None:
    trace = Trace(GAPS)
    trace.added(0, 1, NEW, 40)
    trace.clean()
    deliver(trace, 0, 40, issuer=NEW)
    assert "below the first number, 41" in trace.only("drop-detection").detail
    trace = Trace(GAPS)
    trace.added(0, 1, NEW, 40)
    deliver(trace, 0, 41, issuer=NEW)
    trace.drop(0, 1, issuer=NEW)
    assert "below the first number, 41" in trace.only("drop-detection").detail


@pytest.mark.parametrize("number", [1, 3])
def test_something_of_an_issuer_before_the_view_that_adds_it(number: int) -> None:
    trace = Trace(GAPS)
    trace.drop(0, number, issuer=NEW)
    trace.clean()
    trace.added(0, 1, NEW, 0)
    found = trace.only("drop-detection")
    assert (found.nodes, found.messages) == ((0,), ())
    assert "added issuer 10 after number 0 at clock 0 in group 0, after it had heard" in found.detail


def test_without_a_view_of_its_own_a_receiver_begins_at_one() -> None:
    trace = Trace(GAPS)
    trace.added(0, 1, NEW, 40)
    deliver(trace, 1, 41, issuer=NEW)
    found = trace.only("drop-detection")
    assert found.nodes == (1,)
    assert "for numbers 1 to 40" in found.detail


def test_an_issuer_is_added_to_each_group_at_a_number_of_its_own() -> None:
    trace = Trace(GAPS, {0: (0,), 1: (0,)})
    trace.added(0, 1, NEW, 40, group=0)
    trace.added(0, 1, NEW, 7, group=1)
    trace.numbered(0, trace.submit(groups=(0, 1)), 41, 8, issuer=NEW)
    trace.clean()
    trace.numbered(0, trace.submit(groups=(0, 1)), 42, 42, issuer=NEW)
    assert "for numbers 9 to 41" in trace.only("drop-detection").detail


# Leaving


def test_all_that_is_settled_comes_before_the_view_that_removes_an_issuer() -> None:
    trace = Trace(GAPS)
    deliver(trace, 0, 1)
    trace.drop(0, 2)
    trace.drop(0, 3)
    trace.removed(0, 1, OLD, 3)
    trace.clean()


@pytest.mark.parametrize(("early", "hole"), [((), "numbers 2 to 3"), ((3,), "number 2")])
def test_a_number_that_is_settled_has_not_come(early: tuple[int, ...], hole: str) -> None:
    trace = Trace(GAPS)
    deliver(trace, 0, 1)
    for number in early:
        trace.drop(0, number)
    trace.removed(0, 1, OLD, 3)
    found = trace.only("drop-detection")
    assert found.nodes == (0,)
    assert (
        "removed issuer 9 after number 3 at clock 0 in group 0, but got neither message nor notification"
        in (found.detail)
    )
    assert found.detail.split(" for ")[1].startswith(hole)


def test_nothing_came_of_an_issuer_that_is_removed() -> None:
    trace = Trace(GAPS)
    trace.removed(0, 1, OLD, 0)
    trace.clean()
    trace.removed(1, 1, OLD, 0)
    trace.removed(1, 2, 8, 2)
    assert "for numbers 1 to 2" in trace.only("drop-detection").detail


def test_nothing_of_an_issuer_comes_after_the_view_that_removes_it() -> None:
    trace = Trace(GAPS)
    a, b = trace.submit(), trace.submit()
    trace.numbered(0, a, 1)
    trace.removed(0, 1, OLD, 1)
    trace.numbered(1, a, 1)  # node 1 has not installed it
    trace.numbered(1, b, 2)
    trace.clean()
    trace.numbered(0, b, 2)
    assert "after view 1, which removed the issuer" in trace.only("drop-detection").detail
    trace.events.pop()
    trace.drop(0, 2)
    found = trace.only("drop-detection")
    assert "was notified of the drop of number 2 of issuer 9 in group 0, after view 1" in found.detail


def test_a_minority_got_more_than_the_last_number() -> None:
    trace = Trace(GAPS)
    deliver(trace, 0, 1, 2, 3)
    trace.drop(0, 5)
    trace.removed(0, 1, OLD, 1)
    trace.clean()


def test_an_issuer_that_joined_leaves() -> None:
    trace = Trace(GAPS)
    for node in (0, 1):
        trace.added(node, 1, NEW, 40)
    deliver(trace, 0, 41, 42, issuer=NEW)
    trace.removed(0, 2, NEW, 42)
    trace.clean()
    trace.removed(1, 2, NEW, 42)
    assert "for numbers 41 to 42" in trace.only("drop-detection").detail


def test_an_issuer_that_left_does_not_come_back() -> None:
    trace = Trace(GAPS)
    trace.removed(0, 1, OLD, 0)
    trace.clean()
    trace.added(0, 2, OLD, 0)
    assert "after it had heard of that issuer" in trace.only("drop-detection").detail


def test_a_bundle_does_not_go_on_after_a_removal() -> None:
    trace = Trace(GAPS)
    deliver(trace, 0, 1, 1)
    trace.clean()
    trace.removed(0, 1, OLD, 1)
    deliver(trace, 0, 1)
    trace.only("drop-detection")


# Configurations


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"label": ADDED},
        {"stamp_issuer": 8},
        {"numbers": (0,)},
        {"stamp_clock": 6},
        {"stamp_clock": None},
    ],
)
def test_a_configuration_is_the_same_at_all_nodes(other: dict[str, object]) -> None:
    trace = Trace(GAPS)
    for node in (0, 1):
        trace.drop(node, 1)
        trace.removed(node, 3, OLD, 1, clock=5)
    trace.events[-1] = trace.events[-1]._replace(**other)  # type: ignore[arg-type]
    if not other:
        trace.clean()
        return
    violations = trace.judge()
    assert {violation.property for violation in violations} == {"drop-detection"}
    (found,) = (violation for violation in violations if violation.nodes == (1, 0))
    assert "node 1 installed view 3 of group 0" in found.detail
    assert "at node 0 it removed issuer 9 after number 1 at clock 5" in found.detail


def test_groups_have_configurations_of_their_own() -> None:
    trace = Trace(GAPS, {0: (0,), 1: (1,)})
    trace.removed(0, 1, OLD, 0, group=0)
    trace.drop(1, 1, group=1)
    trace.removed(1, 1, OLD, 1, group=1)
    trace.clean()


def test_a_view_of_another_kind_moves_nothing() -> None:
    for fields in ({}, {"label": "joined"}, {"label": REMOVED}, {"label": ADDED, "stamp_issuer": NEW}):
        trace = Trace(GAPS)
        deliver(trace, 0, 1)
        for config in (1, 2):
            trace.row(0, Kind.VIEW, groups=(0,), config=config, members=(0, 1, 2), **fields)
        deliver(trace, 0, 2)
        deliver(trace, 0, 1, issuer=NEW)
        trace.clean()
        deliver(trace, 0, 40, issuer=11)
        assert "for numbers 1 to 39" in trace.only("drop-detection").detail


def test_a_node_that_does_not_receive_a_group_owes_it_no_numbers() -> None:
    trace = Trace(GAPS, {0: (0,), 1: (1,)})
    trace.removed(1, 1, OLD, 7, group=0)
    trace.clean()


# Receivers that lost their state


def forgetful() -> Trace:
    trace = Trace(GAPS)
    deliver(trace, 0, 1)
    trace.removed(0, 1, OLD, 1)
    trace.crash(0)
    trace.recover(0, "lost")
    return trace


def test_a_receiver_without_its_state_begins_with_what_comes_first() -> None:
    trace = forgetful()
    deliver(trace, 0, 7, 8)
    trace.removed(0, 2, OLD, 8)
    trace.clean()
    deliver(trace, 0, 9)
    trace.only("drop-detection")


def test_a_receiver_without_its_state_still_has_all_that_it_began() -> None:
    trace = forgetful()
    deliver(trace, 0, 7, 8)
    trace.removed(0, 2, OLD, 9)
    assert "for number 9" in trace.only("drop-detection").detail


def test_a_receiver_without_its_state_knows_of_no_number_to_settle() -> None:
    trace = forgetful()
    trace.removed(0, 2, OLD, 8)
    trace.clean()
    trace.removed(0, 3, OLD, 9)
    assert "for number 9" in trace.only("drop-detection").detail


def test_a_receiver_without_its_state_is_told_where_an_issuer_begins() -> None:
    trace = forgetful()
    trace.added(0, 2, NEW, 40)
    deliver(trace, 0, 42, issuer=NEW)
    assert "for number 41" in trace.only("drop-detection").detail
