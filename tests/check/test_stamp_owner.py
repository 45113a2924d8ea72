"""A stamp, and a number of an issuer for a group, belong to one message or to one bundle."""

import pytest

from ordercast.core import Guarantees
from tests.check.traces import Trace

NOTHING = Guarantees(out_of_order=True)
GROUPS = {0: (0, 1), 1: (2,)}


def test_messages_of_one_bundle_share_a_stamp() -> None:
    trace = Trace(NOTHING)
    bundle = [trace.submit() for _ in range(3)]
    other = trace.submit()
    for node in range(3):
        for message in bundle:
            trace.numbered(node, message, 1, clock=7)
        trace.numbered(node, other, 2, clock=8)
    trace.clean()


def test_two_messages_of_different_senders_share_a_stamp() -> None:
    trace = Trace(NOTHING)
    a, b = trace.submit(3), trace.submit(4)
    trace.deliver(0, a, stamp_clock=7, stamp_issuer=9)
    trace.deliver(1, b, stamp_clock=7, stamp_issuer=9)
    found = trace.only("stamp-owner")
    assert (found.nodes, found.messages) == ((0, 1), (a, b))
    assert "3#0 (at 3 us) and 4#0 (at 4 us) share a stamp or a number" in found.detail
    assert "node 0 delivered the one, node 1 the other, with stamp (7, 9)" in found.detail


@pytest.mark.parametrize("others", [{"stamp_clock": 8}, {"stamp_issuer": 8}, {"stamp_clock": None}])
def test_other_stamps_are_no_matter(others: dict[str, int | None]) -> None:
    trace = Trace(NOTHING)
    a, b = trace.submit(3), trace.submit(4)
    trace.deliver(0, a, stamp_clock=7, stamp_issuer=9)
    trace.deliver(0, b, **({"stamp_clock": 7, "stamp_issuer": 9} | others))
    trace.clean()


def test_a_number_that_is_used_twice() -> None:
    trace = Trace(NOTHING, GROUPS)
    a, b = trace.submit(groups=(0, 1)), trace.submit(groups=(1,))
    trace.numbered(0, a, 1, 4, clock=7)
    trace.numbered(2, b, 4, clock=8)
    found = trace.only("stamp-owner")
    assert (found.nodes, found.messages) == ((0, 2), (a, b))
    assert "numbers 1, 4" in found.detail


def test_numbers_of_other_groups_and_issuers_are_others() -> None:
    trace = Trace(NOTHING, GROUPS)
    a, b, c = trace.submit(groups=(0,)), trace.submit(groups=(1,)), trace.submit(groups=(1,))
    trace.numbered(0, a, 4, clock=7)
    trace.numbered(2, b, 4, clock=8)
    trace.numbered(2, c, 4, clock=8, issuer=8)
    trace.clean()


def test_messages_that_are_not_delivered_together_are_no_bundle() -> None:
    trace = Trace(NOTHING)
    a, b, c = trace.submit(), trace.submit(), trace.submit()
    trace.numbered(0, a, 1, clock=7)
    trace.numbered(0, c, 1, clock=7)  # not the next message of the sender
    assert trace.only("stamp-owner").messages == (a, c)
    trace.events.pop()
    trace.numbered(0, b, 1, clock=7)
    trace.clean()
    trace.numbered(1, b, 1, clock=7)  # node 1 did not get the first of the bundle
    assert trace.only("stamp-owner").messages == (a, b)


def test_messages_to_different_groups_are_no_bundle() -> None:
    trace = Trace(NOTHING, GROUPS)
    a, b = trace.submit(groups=(0,)), trace.submit(groups=(0, 1))
    trace.deliver(0, a, b, stamp_clock=7, stamp_issuer=9)
    assert trace.only("stamp-owner").messages == (a, b)


@pytest.mark.parametrize("label", ["saved", "lost"])
def test_a_later_life_of_a_sender_may_use_a_stamp_again(label: str) -> None:
    trace = Trace(NOTHING)
    a = trace.submit(3)
    trace.crash(3)
    trace.recover(3, label)
    b, c = trace.submit(3), trace.submit(3)
    trace.deliver(0, a, stamp_clock=7, stamp_issuer=3)
    trace.deliver(0, c, stamp_clock=7, stamp_issuer=3)
    trace.clean()
    trace.deliver(0, b, stamp_clock=7, stamp_issuer=3)  # of the same life as the one before
    assert trace.only("stamp-owner").messages[-1] == b
    d = trace.submit(4)
    trace.deliver(1, d, stamp_clock=7, stamp_issuer=3)  # of another sender
    assert len(trace.judge()) == 2


def test_a_lost_life_of_a_receiver_ends_a_bundle() -> None:
    trace = Trace(NOTHING)
    a, b = trace.submit(), trace.submit()
    trace.deliver(0, a, stamp_clock=7, stamp_issuer=9)
    trace.crash(0)
    trace.recover(0, "lost")
    trace.deliver(0, b, stamp_clock=7, stamp_issuer=9)
    trace.only("stamp-owner")
