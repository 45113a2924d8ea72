from ordercast.core import Guarantees
from tests.check.traces import Trace

VIEWS = Guarantees(views=True)


def test_the_same_messages_between_the_same_views() -> None:
    trace = Trace()
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    a, b = trace.submit(), trace.submit()
    trace.deliver_to_all(a)
    for node in range(3):
        trace.view(node, 2, 2, 1, 0)
    trace.deliver_to_all(b)
    trace.clean()


def test_one_that_lacks_a_message_when_both_move_on() -> None:
    trace = Trace(VIEWS)
    for node in (0, 1):
        trace.view(node, 1, 0, 1)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.deliver(1, a)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    found = trace.only("view-synchrony")
    assert (found.nodes, found.messages) == ((1, 0), (b,))
    assert "both went from view 1 of group 0 to 2" in found.detail
    assert "node 0 delivered 3#1 and node 1 did not" in found.detail


def test_one_that_has_a_message_more_when_both_move_on() -> None:
    trace = Trace(VIEWS)
    for node in (0, 1):
        trace.view(node, 1, 0, 1)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a)
    trace.deliver(1, a, b)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    found = trace.only("view-synchrony")
    assert "node 1 delivered 3#1 and node 0 did not" in found.detail


def test_one_that_crashed_in_between_is_not_compared() -> None:
    for label in ("saved", "lost"):
        trace = Trace(VIEWS)
        for node in (0, 1):
            trace.view(node, 1, 0, 1)
        trace.deliver(0, trace.submit())
        trace.crash(1)
        trace.recover(1, label)
        for node in (0, 1):
            trace.view(node, 2, 0, 1)
        trace.clean()


def test_one_that_went_by_other_views_is_not_compared() -> None:
    trace = Trace(VIEWS)
    for node in (0, 1):
        trace.view(node, 1, 0, 1)
    trace.deliver(0, trace.submit())
    trace.view(0, 2, 0)
    trace.view(0, 3, 0, 1)
    trace.view(1, 3, 0, 1)
    trace.clean()


def test_one_that_joins_is_not_compared() -> None:
    trace = Trace(VIEWS)
    trace.view(0, 1, 0)
    trace.deliver(0, trace.submit())
    trace.view(0, 2, 0, 1)
    trace.view(1, 2, 0, 1)
    trace.clean()


def test_a_message_in_two_views() -> None:
    trace = Trace(VIEWS)
    trace.view(0, 1, 0, 1)
    trace.view(1, 1, 0, 1)
    a = trace.submit()
    trace.deliver(0, a)
    trace.view(1, 2, 0, 1)
    trace.deliver(1, a)
    found = trace.only("view-synchrony")
    assert (found.nodes, found.messages) == ((1, 0), (a,))
    assert "in view 2 of group 0" in found.detail


def test_different_members() -> None:
    trace = Trace(VIEWS)
    trace.view(0, 1, 0, 1)
    trace.view(1, 1, 0, 1, 2)
    assert trace.only("view-synchrony").nodes == (1, 0)


def test_a_view_without_its_installer() -> None:
    trace = Trace(VIEWS)
    trace.view(2, 1, 0, 1)
    assert trace.only("view-synchrony").nodes == (2,)


def test_numbers_that_do_not_grow() -> None:
    for second in (1, 2):
        trace = Trace(VIEWS)
        trace.view(0, 2, 0, 1)
        trace.view(0, second, 0, 1)
        assert "when it was in view 2" in trace.only("view-synchrony").detail


def test_groups_have_views_of_their_own() -> None:
    trace = Trace(VIEWS, {0: (0, 1), 1: (0, 1)})
    for node in (0, 1):
        trace.view(node, 5, 0, 1, group=0)
        trace.view(node, 1, 0, 1, group=1)
    a = trace.submit(groups=(0,))
    trace.deliver(0, a)
    for node in (0, 1):
        trace.view(node, 2, 0, 1, group=1)
    trace.clean()


def test_not_promised_not_judged() -> None:
    trace = Trace(Guarantees())
    trace.view(2, 1, 0, 1)
    trace.view(2, 1, 0)
    trace.clean()
