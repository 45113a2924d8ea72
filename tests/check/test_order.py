"""Total order within groups, and acyclic order across them."""

from itertools import permutations

import pytest

from ordercast.core import Guarantees, Membership, Order
from ordercast.judge import VIOLATIONS_MAX, Judge
from ordercast.trace import Kind
from tests.check.traces import Trace

GROUP = Guarantees(order=Order.GROUP)
OVERLAPS = Guarantees(order=Order.OVERLAPS)
ACROSS = Guarantees(order=Order.ACROSS)
SUBSCRIBED = Guarantees(order=Order.OVERLAPS, membership=Membership.SUBSCRIPTIONS)
TRIANGLE = {0: (0, 1), 1: (2, 3), 2: (4, 5)}


def test_two_receivers_in_different_orders() -> None:
    trace = Trace(GROUP)
    a, b = trace.submit(), trace.submit(4)
    trace.deliver(0, a, b)
    trace.deliver(2, b, a)
    found = trace.only("total-order")
    assert found.nodes == (0, 2)
    assert found.messages == (a, b)
    assert found.times_ns == (3000, 4000, 5000, 6000)
    assert found.step == 5
    assert found.detail == (
        "node 0 delivered 3#0 (at 3 us) before 4#0 (at 4 us);"
        " node 2 delivered 4#0 (at 5 us) before 3#0 (at 6 us): this is the cycle 3#0 < 4#0 < 3#0"
    )


def test_an_inversion_is_named_by_its_pair_and_not_by_what_lies_between() -> None:
    trace = Trace(GROUP)
    a, b, c, d, e = (trace.submit() for _ in range(5))
    trace.deliver(0, a, c, d, b)
    trace.deliver(1, b, e, a)
    found = trace.only("total-order")
    assert (found.nodes, found.messages) == ((0, 1), (a, b))


def test_an_inversion_is_told_with_two_nodes_even_if_each_edge_was_seen_elsewhere_first() -> None:
    trace = Trace(GROUP, {0: (0, 1, 2)})
    a, b, c = (trace.submit() for _ in range(3))
    trace.deliver(0, a, b)
    trace.deliver(1, b, c)
    trace.deliver(0, c)
    trace.deliver(2, c, a)
    found = trace.only("total-order")
    assert (found.nodes, found.messages) == ((0, 2), (a, c))


def test_a_loss_at_one_node_makes_no_inversion() -> None:
    # "The smallest position over nodes is not a canonical order": node 1 lost a, so that its
    # positions are all smaller by one than those of node 0, which lost d instead.
    trace = Trace(GROUP)
    a, b, c, d, e = (trace.submit() for _ in range(5))
    trace.deliver(1, b, c, d, e)
    trace.deliver(0, a, b, c, e)
    trace.deliver(2, a, d)
    trace.clean()


def test_receivers_with_nothing_in_common_are_clean() -> None:
    trace = Trace(GROUP)
    a, b, c = (trace.submit() for _ in range(3))
    trace.deliver(0, a, b)
    trace.deliver(1, c, a)
    trace.deliver(2, c, b)
    trace.clean()


def test_three_receivers_in_a_cycle_that_no_two_of_them_show() -> None:
    trace = Trace(GROUP)
    a, b, c = (trace.submit() for _ in range(3))
    trace.deliver(0, a, b)
    trace.deliver(1, b, c)
    trace.deliver(2, c, a)
    found = trace.only("total-order")
    assert sorted(found.nodes) == [0, 1, 2]
    assert sorted(found.messages) == [a, b, c]


def test_a_crashed_prefix_is_legal() -> None:
    trace = Trace()
    a, b, c = (trace.submit() for _ in range(3))
    trace.deliver(1, a)
    trace.crash(1)
    trace.deliver(0, a, b, c)
    trace.deliver(2, a, b, c)
    trace.clean()


def test_a_crash_does_not_excuse_a_wrong_order() -> None:
    trace = Trace()
    a, b = trace.submit(3), trace.submit(4)
    trace.deliver(1, b, a)
    trace.crash(1)
    trace.deliver(0, a, b)
    trace.deliver(2, a, b)
    assert trace.only("total-order", 2).nodes == (1, 0)


def test_out_of_order_deliveries_do_not_count() -> None:
    trace = Trace(Guarantees(order=Order.GROUP, out_of_order=True))
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.deliver(1, b)
    trace.deliver(1, a, kind=Kind.OUT_OF_ORDER)
    trace.clean()


def test_no_order_promised_none_judged() -> None:
    trace = Trace(Guarantees())
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.deliver(1, b, a)
    trace.clean()


def test_an_amnesiac_begins_again_but_must_not_contradict_its_earlier_life() -> None:
    trace = Trace(GROUP)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.crash(0)
    trace.recover(0, "lost")
    trace.deliver(0, a)
    trace.clean()
    trace = Trace(GROUP)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.crash(0)
    trace.recover(0, "lost")
    trace.deliver(0, b, a)
    found = trace.only("total-order")
    assert (found.nodes, set(found.messages)) == ((0,), {a, b})


def test_a_saved_restart_goes_on_in_the_order() -> None:
    trace = Trace(GROUP)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, b)
    trace.deliver(1, b)
    trace.crash(1)
    trace.recover(1, "saved")
    trace.deliver(1, a)
    assert trace.only("total-order").nodes == (0, 1)


def triangle(guarantees: Guarantees) -> Trace:
    """Each group delivers in one order, and the three together go round."""
    trace = Trace(guarantees, TRIANGLE)
    a = trace.submit(groups=(0, 1))
    b = trace.submit(groups=(1, 2))
    c = trace.submit(groups=(0, 2))
    trace.deliver(0, c, a)
    trace.deliver(1, c, a)
    trace.deliver(2, a, b)
    trace.deliver(3, a, b)
    trace.deliver(4, b, c)
    trace.deliver(5, b)
    return trace


def test_groups_in_order_one_by_one_and_not_together() -> None:
    triangle(GROUP).clean()
    triangle(OVERLAPS).clean()  # nobody is in two groups
    found = triangle(ACROSS).only("acyclic-order")
    assert sorted(found.nodes) == [0, 2, 4]
    assert len(found.messages) == 3


def test_a_wrong_order_in_one_group_is_told_once() -> None:
    trace = Trace(ACROSS, {0: (0, 1), 1: (0, 1)})
    a, x, b = trace.submit(groups=(0,)), trace.submit(groups=(1,)), trace.submit(groups=(0,))
    trace.deliver(1, b, a)
    trace.deliver(0, a, x, b)
    found = trace.only("total-order")
    assert set(found.messages) == {a, b}


def test_a_message_in_two_groups_out_of_order_in_both_is_told_once() -> None:
    trace = Trace(ACROSS, {0: (0, 1), 1: (0, 1)})
    a, b = trace.submit(groups=(0, 1)), trace.submit(groups=(0, 1))
    trace.deliver(0, a, b)
    trace.deliver(1, b, a)
    trace.only("total-order")


def test_unrelated_messages_of_two_groups_in_different_orders() -> None:
    # Receivers of both groups see messages to each of them in different orders: legal in each
    # group, and a cycle across them.
    def run(guarantees: Guarantees) -> Trace:
        trace = Trace(guarantees, {0: (0, 1), 1: (0, 1)})
        a, b = trace.submit(groups=(0,)), trace.submit(groups=(1,))
        trace.deliver(0, a, b)
        trace.deliver(1, b, a)
        return trace

    run(GROUP).clean()
    found = run(ACROSS).only("acyclic-order")
    assert found.nodes == (0, 1)


def test_two_receivers_that_disagree_about_two_groups() -> None:
    trace = Trace(OVERLAPS, {0: (0, 1), 1: (0, 1, 2)})
    a, b = trace.submit(groups=(0,)), trace.submit(groups=(1,))
    trace.deliver(2, b)
    trace.deliver(0, a, b)
    trace.deliver(1, b, a)
    found = trace.only("pair-order")
    assert (found.nodes, found.messages) == ((0, 1), (a, b))
    assert found.detail == (
        "node 0 delivered 3#0 (at 4 us) before 3#1 (at 5 us);"
        " node 1 delivered 3#1 (at 6 us) before 3#0 (at 7 us): this is the cycle 3#0 < 3#1 < 3#0"
    )


def test_a_circle_of_receivers_that_have_one_group_in_common_is_no_matter_of_pairs() -> None:
    def run(guarantees: Guarantees) -> Trace:
        trace = Trace(guarantees, {0: (0, 2), 1: (0, 1), 2: (1, 2)})
        a, b, c = (trace.submit(groups=(group,)) for group in range(3))
        trace.deliver(0, a, b)
        trace.deliver(1, b, c)
        trace.deliver(2, c, a)
        return trace

    run(OVERLAPS).clean()
    assert sorted(run(ACROSS).only("acyclic-order").nodes) == [0, 1, 2]


def test_a_circle_of_receivers_of_the_same_two_groups_that_each_miss_a_message() -> None:
    trace = Trace(OVERLAPS, {0: (0, 1, 2), 1: (0, 1, 2)})
    a, b, c = (trace.submit(groups=(group,)) for group in (0, 1, 0))
    trace.deliver(0, a, b)
    trace.deliver(1, b, c)
    trace.deliver(2, c, a)
    found = trace.only("pair-order")
    assert sorted(found.nodes) == [0, 1, 2]
    assert sorted(found.messages) == [a, b, c]


def test_each_pair_of_groups_is_judged_and_each_disagreement_is_told_once() -> None:
    groups = dict.fromkeys(range(4), (0, 1))
    for one, other in permutations(groups, 2):
        trace = Trace(OVERLAPS, groups)
        messages = [trace.submit(groups=(group,)) for group in (one, other)]
        trace.deliver(0, *messages)
        trace.deliver(1, *reversed(messages))
        assert set(trace.only("pair-order").messages) == set(messages)


def test_a_wrong_order_in_one_group_is_not_told_of_its_pairs() -> None:
    trace = Trace(OVERLAPS, {0: (0, 1), 1: (0, 1)})
    a, b, c = trace.submit(groups=(0,)), trace.submit(groups=(1,)), trace.submit(groups=(0,))
    trace.deliver(0, a, b, c)
    trace.deliver(1, c, b, a)
    assert set(trace.only("total-order").messages) == {a, c}


def joins(trace: Trace, node: int, group: int) -> None:
    trace.row(node, Kind.JOIN, groups=(group,))
    trace.row(node, Kind.JOINED, groups=(group,))


@pytest.mark.parametrize(("early", "found"), [(True, 0), (False, 1)])
def test_a_pair_counts_from_the_time_on_at_which_a_receiver_is_in_both(early: bool, found: int) -> None:
    trace = Trace(SUBSCRIBED, {0: (0, 1), 1: (0,)})
    a, b = trace.submit(groups=(0,)), trace.submit(groups=(1,))
    trace.deliver(0, b, a)
    if early:
        trace.deliver(1, a)
    joins(trace, 1, 1)
    if not early:
        trace.deliver(1, a)
    trace.deliver(1, b)
    assert [violation.property for violation in trace.judge()] == ["pair-order"] * found


@pytest.mark.parametrize("back", [False, True])
def test_a_receiver_that_comes_back_to_a_group_goes_on_in_the_order(back: bool) -> None:
    trace = Trace(SUBSCRIBED, {0: (0, 1), 1: (0, 1)})
    a, b, c = (trace.submit(groups=(group,)) for group in (0, 1, 0))
    trace.deliver(0, b, a, c)
    trace.deliver(1, a)
    trace.row(1, Kind.LEFT, groups=(1,))
    trace.deliver(1, c)
    if back:
        joins(trace, 1, 1)
        trace.deliver(1, b)
    assert [violation.property for violation in trace.judge()] == ["pair-order"] * back


@pytest.mark.parametrize(("label", "count"), [("saved", 1), ("lost", 0)])
def test_an_amnesiac_of_two_groups_is_a_new_receiver(label: str, count: int) -> None:
    trace = Trace(OVERLAPS, {0: (0, 1), 1: (0, 1)})
    a, b = trace.submit(groups=(0,)), trace.submit(groups=(1,))
    trace.deliver(0, a, b)
    trace.deliver(1, b)
    trace.crash(1)
    trace.recover(1, label)
    trace.deliver(1, a)
    assert [violation.property for violation in trace.judge()] == ["pair-order"] * count


def test_findings_about_pairs_are_capped_and_the_rest_counted() -> None:
    trace = Trace(OVERLAPS, {0: (0, 1), 1: (0, 1)})
    for _ in range(VIOLATIONS_MAX + 5):
        a, b = trace.submit(groups=(0,)), trace.submit(groups=(1,))
        trace.deliver(0, a, b)
        trace.deliver(1, b, a)
    judge = Judge(trace.description)
    judge.observe_all(trace.events)
    judge.finish()
    assert len(judge.violations) == VIOLATIONS_MAX
    assert judge.suppressed == {"pair-order": 5}


def test_all_interleavings_of_consistent_receivers_are_clean() -> None:
    for order in permutations((0, 0, 0, 1, 1, 1)):
        trace = Trace(GROUP)
        messages = [trace.submit() for _ in range(4)]
        logs = {0: messages[:3], 1: messages[1:]}
        for node in order:
            trace.deliver(node, logs[node].pop(0))
        trace.clean()


def test_findings_are_capped_and_the_rest_counted() -> None:
    trace = Trace(GROUP)
    pairs = [(trace.submit(), trace.submit()) for _ in range(VIOLATIONS_MAX + 5)]
    for a, b in pairs:
        trace.deliver(0, a, b)
        trace.deliver(1, b, a)
    judge = Judge(trace.description)
    judge.observe_all(trace.events)
    judge.finish()
    assert len(judge.violations) == VIOLATIONS_MAX
    assert judge.suppressed == {"total-order": 5}
