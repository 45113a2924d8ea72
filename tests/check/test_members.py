"""Receivers that join and leave: each owes what is ordered between its places, and nothing else."""

from collections.abc import Callable

import msgspec
import pytest

from ordercast.core import Agreement, Guarantees, Membership, Order
from ordercast.trace import Kind
from tests.check.traces import Trace

JOINER = 2
"""Node 2 is a receiver that is in no group at the start."""
SUBSCRIBED = Guarantees(
    order=Order.ACROSS,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    membership=Membership.SUBSCRIPTIONS,
)
WITH_VIEWS = Guarantees(order=Order.GROUP, agreement=Agreement.ALL, views=True, membership=Membership.VIEWS)


class Changing(Trace):
    """A trace whose messages are stamped 1, 2, 3, ..., and whose receivers come and go."""

    def __init__(self, guarantees: Guarantees = SUBSCRIBED, **options: object) -> None:
        super().__init__(guarantees, {0: (0, 1)}, **options)  # type: ignore[arg-type]
        self.messages: list[int] = []

    def send(self, *nodes: int) -> None:
        """Submit the next message, and deliver it at these nodes."""
        self.messages.append(self.submit(3))
        for node in nodes:
            self.get(node, len(self.messages))

    def get(self, node: int, place: int) -> None:
        """Deliver a message at a node."""
        self.deliver(node, self.messages[place - 1], stamp_clock=place, stamp_issuer=9)

    def join(self, node: int = JOINER, place: int | None = None, config: int | None = None) -> None:
        """Ask, and be told."""
        self.row(node, Kind.JOIN, groups=(0,))
        self.joined(node, place, config)

    def joined(self, node: int = JOINER, place: int | None = None, config: int | None = None) -> None:
        """Be told that a group is joined."""
        issuer = None if place is None else 9
        self.row(node, Kind.JOINED, groups=(0,), stamp_clock=place, stamp_issuer=issuer, config=config)

    def left(self, node: int = JOINER, place: int | None = None, config: int | None = None) -> None:
        """Be told that a group is left."""
        issuer = None if place is None else 9
        self.row(node, Kind.LEFT, groups=(0,), stamp_clock=place, stamp_issuer=issuer, config=config)


def member_for_a_while() -> Changing:
    """Messages 1 to 4, of which the joiner gets 2 and 3."""
    trace = Changing()
    trace.send(0, 1)
    trace.join(place=1)
    trace.send(0, 1, JOINER)
    trace.send(0, 1, JOINER)
    trace.left(place=3)
    trace.send(0, 1)
    return trace


def test_a_receiver_owes_what_is_ordered_while_it_is_a_member() -> None:
    member_for_a_while().clean()


def test_it_may_come_back() -> None:
    trace = member_for_a_while()
    trace.join(place=4)
    trace.send(0, 1, JOINER)
    trace.clean()


def test_a_founder_may_leave() -> None:
    trace = Changing()
    trace.send(0, 1)
    trace.left(1, place=1)
    trace.send(0)
    trace.clean()


def test_a_message_after_its_place_is_owed() -> None:
    trace = Changing()
    trace.join(place=0)
    trace.send(0, 1)
    trace.send(0, 1, JOINER)
    found = trace.only("agreement")
    assert JOINER in found.nodes and found.messages == (trace.messages[0],)


def test_a_message_before_the_place_where_it_left_is_owed() -> None:
    trace = Changing()
    trace.join(place=0)
    trace.send(0, 1, JOINER)
    trace.send(0, 1)
    trace.left(place=2)
    assert trace.only("agreement").messages == (trace.messages[1],)


def test_a_message_that_nobody_delivers_is_owed_by_those_who_had_joined() -> None:
    trace = Changing()
    trace.join(place=0)
    trace.send()
    found = trace.only("validity")
    assert found.nodes == (3, 0, 1, JOINER)


def test_a_message_that_was_submitted_before_the_join_need_not_be_owed() -> None:
    trace = Changing()
    message = trace.submit(3)
    trace.join(place=0)
    trace.left(0, place=0)
    trace.left(1, place=0)
    trace.clean()
    assert message == trace.events[0].message


def test_nothing_is_delivered_before_the_join() -> None:
    trace = Changing()
    trace.send(0, 1, JOINER)
    trace.join(place=1)
    assert trace.only("integrity").nodes == (JOINER,)


def test_nothing_is_delivered_from_before_its_place() -> None:
    trace = Changing()
    trace.send(0, 1)
    trace.join(place=1)
    trace.get(JOINER, 1)
    assert trace.only("tenure").nodes == (JOINER,)


def test_nothing_is_delivered_after_the_leave() -> None:
    trace = member_for_a_while()
    trace.get(JOINER, 4)
    assert trace.only("integrity").nodes == (JOINER,)


def test_nothing_is_delivered_from_after_the_place_where_it_left() -> None:
    trace = Changing()
    trace.send(0, 1)
    trace.join(place=1)
    trace.send(0, 1, JOINER)
    trace.send(0, 1, JOINER)
    trace.left(place=2)
    found = trace.only("tenure")
    assert found.nodes == (JOINER,) and found.messages == (trace.messages[2],)


@pytest.mark.parametrize(
    "change",
    [
        lambda trace: trace.joined(place=0),  # it has not asked
        lambda trace: trace.join(0, place=0),  # it is a member
        lambda trace: trace.left(place=0),  # it never joined
        lambda trace: (trace.left(1, place=0), trace.left(1, place=0)),
    ],
)
def test_joins_and_leaves_come_in_turn(change: Callable[[Changing], object]) -> None:
    trace = Changing()
    change(trace)
    trace.only("tenure")


def test_groups_that_are_fixed_do_not_change() -> None:
    trace = Changing(Guarantees())
    trace.join(place=0)
    assert "the groups are fixed" in trace.only("integrity").detail


def test_groups_that_are_unknown_cannot_be_joined() -> None:
    trace = Changing()
    trace.row(JOINER, Kind.JOINED, groups=(7,), stamp_clock=0, stamp_issuer=9)
    assert "the run has group 0" in trace.only("integrity").detail


def test_who_loses_its_state_is_where_it_began() -> None:
    trace = member_for_a_while()
    trace.join(place=4)
    for node in (1, JOINER):
        trace.crash(node)
        trace.recover(node, "lost")
    trace.send(0, 1, JOINER)
    assert trace.only("integrity").nodes == (JOINER,)


def test_a_founder_that_forgot_where_it_was_joins_anew() -> None:
    trace = Changing()
    trace.send(0, 1)
    trace.crash(1)
    trace.recover(1, "lost")
    trace.joined(1, place=1)
    trace.send(0, 1)
    trace.clean()


def test_views_say_who_owes_what() -> None:
    trace = Changing(WITH_VIEWS)
    for node in (0, 1):
        trace.view(node, 1, 0, 1)
    first = trace.submit(3)
    for node in (0, 1):
        trace.deliver(node, first, config=1)
        trace.view(node, 2, 0, 1, JOINER)
    trace.join(config=2)
    trace.view(JOINER, 2, 0, 1, JOINER)
    second = trace.submit(3)
    for node in (0, 1, JOINER):
        trace.deliver(node, second, config=2)
    trace.clean()
    third = trace.submit(3)
    for node in (0, 1):
        trace.deliver(node, third, config=2)
    assert trace.only("agreement").nodes == (0, JOINER)


def test_a_live_run_compares_no_times_of_different_nodes() -> None:
    trace = Changing(source="live")
    trace.join(place=0)
    trace.send()
    assert trace.only("validity").nodes == (3, 0, 1)


class Overlapping(Trace):
    """Two groups, each with stamps of its own: the place in the group's order, and the group."""

    def __init__(self) -> None:
        super().__init__(msgspec.structs.replace(SUBSCRIBED, order=Order.OVERLAPS), {0: (0, 1, 2), 1: (0, 1)})
        self.places = {0: 0, 1: 0}

    def send(self, group: int, *nodes: int) -> int:
        """Submit the next message of a group, and deliver it at these nodes."""
        sent = sum(event.kind is Kind.SUBMIT for event in self.events)
        message = self.submit(self.sender + sent % 2, groups=(group,))  # the next is of no bundle with it
        self.places[group] += 1
        for node in nodes:
            self.get(node, message, group, self.places[group])
        return message

    def get(self, node: int, message: int, group: int, place: int) -> None:
        """Deliver a message at a place of its group."""
        self.deliver(node, message, stamp_clock=place, stamp_issuer=group)

    def change(self, node: int, kind: Kind, group: int, place: int) -> None:
        """Join or leave a group at a place."""
        if kind is Kind.JOINED:
            self.row(node, Kind.JOIN, groups=(group,))
        self.row(node, kind, groups=(group,), stamp_clock=place, stamp_issuer=group)


def test_places_of_groups_that_overlap_are_apart() -> None:
    trace = Overlapping()
    for _ in range(3):
        trace.send(0, 0, 1, JOINER)
    trace.send(1, 0, 1)
    trace.change(JOINER, Kind.JOINED, 1, 1)
    trace.send(1, 0, 1, JOINER)
    trace.send(0, 0, 1, JOINER)
    trace.change(JOINER, Kind.LEFT, 0, 4)
    trace.send(0, 0, 1)
    trace.send(1, 0, 1, JOINER)
    trace.clean()


def test_what_is_owed_of_a_group_follows_the_places_of_that_group() -> None:
    trace = Overlapping()
    for _ in range(3):
        trace.send(0, 0, 1, JOINER)
    trace.send(1, 0, 1)
    trace.change(JOINER, Kind.JOINED, 1, 1)
    missed = trace.send(1, 0, 1)
    trace.send(1, 0, 1, JOINER)
    found = trace.only("agreement")
    assert JOINER in found.nodes and found.messages == (missed,)


def test_what_comes_before_the_place_in_a_group_is_not_delivered() -> None:
    trace = Overlapping()
    early = trace.send(1, 0, 1)
    trace.change(JOINER, Kind.JOINED, 1, 1)
    trace.get(JOINER, early, 1, 1)
    assert trace.only("tenure").nodes == (JOINER,)


def test_groups_that_overlap_may_have_the_same_places_but_no_group_has_one_twice() -> None:
    trace = Overlapping()
    trace.send(0, 0, 1, JOINER)
    trace.send(1, 0, 1)
    trace.clean()
    trace.places[1] -= 1
    trace.send(1, 0, 1)
    assert {violation.property for violation in trace.judge()} == {"stamp-owner"}
