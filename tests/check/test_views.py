import msgspec

from ordercast.core import ANEW, Agreement, Guarantees, Membership, MessageId
from ordercast.trace import SAVED, Kind
from tests.check.traces import NOTIFIED, Trace

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
    assert "node 0 delivered 3#1, but node 1 did not" in found.detail


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
    assert "node 1 delivered 3#1, but node 0 did not" in found.detail


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
        assert "while it was in view 2" in trace.only("view-synchrony").detail


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


ALL = Guarantees(views=True, agreement=Agreement.ALL, uniform=True, validity=True)


def shrunk(promise: Guarantees = ALL) -> tuple[Trace, MessageId]:
    """Node 2 is in view 1 and not in view 2; message b is delivered in view 2, by nodes 0 and 1."""
    trace = Trace(promise)
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    trace.deliver_to_all(trace.submit())
    b = trace.submit()
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
        trace.deliver(node, b)
    return trace, b


def test_an_excluded_node_owes_nothing_of_later_views() -> None:
    trace, _ = shrunk()
    trace.clean()


def test_an_excluded_node_owes_nothing_of_its_last_view_either() -> None:
    trace = Trace(ALL)
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    trace.deliver(0, a := trace.submit())
    trace.deliver(1, a)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
    trace.clean()
    trace.view(2, 2, 0, 1)  # it is told, and had not delivered what the others had
    trace.clean()


def test_a_member_that_stays_owes_what_was_delivered_in_its_view() -> None:
    trace = Trace(ALL)
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    trace.deliver(0, a := trace.submit())
    trace.deliver(2, a)
    found = trace.only("agreement")
    assert found.nodes == (0, 1)


def test_a_node_owes_nothing_of_before_it_joined_and_all_of_after() -> None:
    for promise in (ALL, Guarantees(views=True, validity=True)):
        trace = Trace(promise)
        for node in (0, 1):
            trace.view(node, 1, 0, 1)
        a, b = trace.submit(), trace.submit()
        for node in (0, 1):
            trace.deliver(node, a)
        for node in range(3):
            trace.view(node, 2, 0, 1, 2)
        trace.deliver_to_all(b)
        trace.clean()
        trace.events.pop()
        assert trace.judge()[0].nodes[-1] == 2


def test_one_that_was_excluded_and_came_back_owes_what_came_after() -> None:
    trace, _ = shrunk()
    trace.view(2, 2, 0, 1)
    for node in range(3):
        trace.view(node, 3, 0, 1, 2)
    c = trace.submit()
    trace.deliver_to_all(c)
    trace.clean()
    trace.events.pop()
    assert trace.only("agreement").nodes == (0, 2)


def test_a_message_that_nobody_delivered_is_owed_by_those_who_stayed() -> None:
    trace, _ = shrunk()
    trace.submit()
    assert trace.only("validity").nodes == (3, 0, 1)


def test_a_group_of_which_nobody_delivered_a_message() -> None:
    trace = Trace(ALL, {0: (0, 1), 1: (2, 3)})
    for node in range(2):
        trace.view(node, 1, 0, 1, group=0)
    for node in (2, 3):
        trace.view(node, 1, 2, 3, group=1)
    trace.view(2, 2, 2, group=1)
    a = trace.submit(groups=(0, 1))
    trace.deliver(0, a)
    trace.deliver(1, a)
    assert trace.only("agreement").nodes == (0, 2)


def test_slots_are_owed_by_the_members_of_the_view() -> None:
    trace = Trace(msgspec.structs.replace(NOTIFIED, views=True))
    for node in range(3):
        trace.view(node, 1, 0, 1, 2)
    for node in (0, 1):
        trace.view(node, 2, 0, 1)
        trace.drop(node, 1)
    trace.clean()
    trace.events.pop()
    assert trace.only("agreement").nodes == (0, 1)


def test_a_notice_of_exclusion() -> None:
    trace, b = shrunk(VIEWS)
    trace.view(2, 2, 0, 1)
    trace.clean()
    trace.deliver(2, b)
    found = trace.only("view-synchrony")
    assert (found.nodes, found.messages) == ((2,), (b,))
    assert "delivered 3#1 of group 0 after view 2, which leaves it out" in found.detail


def test_what_an_excluded_node_delivers_binds_nobody() -> None:
    trace, _ = shrunk()
    trace.view(2, 2, 0, 1)
    trace.crash(3)
    c = trace.submit(4)
    trace.crash(4)
    trace.deliver(2, c)
    trace.only("view-synchrony")


def test_a_second_notice_of_exclusion() -> None:
    trace, _ = shrunk(VIEWS)
    trace.view(2, 2, 0, 1)
    trace.view(2, 3, 0)
    assert trace.only("view-synchrony").nodes == (2,)


def test_an_excluded_node_may_deliver_for_another_group() -> None:
    trace = Trace(VIEWS, {0: (0, 1), 1: (0, 1)})
    for group in (0, 1):
        for node in (0, 1):
            trace.view(node, 1, 0, 1, group=group)
    trace.view(1, 2, 0, group=0)
    trace.deliver(1, trace.submit(groups=(0, 1)))
    trace.clean()
    trace.deliver(1, trace.submit(groups=(0,)))
    trace.only("view-synchrony")


def test_one_that_left_a_group_when_it_began_anew_delivers_for_its_other_group() -> None:
    trace = Trace(Guarantees(views=True, membership=Membership.VIEWS), groups={0: (0, 1), 1: (0, 1)})
    for node in (0, 1):
        for group in (0, 1):
            trace.view(node, 1, 0, 1, group=group)
    trace.row(0, Kind.CRASH)
    trace.row(0, Kind.RECOVER, label=SAVED)
    trace.row(0, Kind.LEAVE, groups=(0,))
    trace.view(1, 2, 1, group=0)
    trace.view(1, 2, 0, 1, group=1)
    trace.row(0, Kind.JOINED, groups=(1,), config=2)
    trace.row(0, Kind.VIEW, groups=(1,), config=2, members=(0, 1), label=ANEW)
    trace.row(0, Kind.LEFT, groups=(0,), config=2)
    message = trace.submit(groups=(0, 1))
    for node in (1, 0):
        trace.deliver(node, message, config=2)
    trace.clean()
