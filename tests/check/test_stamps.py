import pytest

from ordercast.core import Guarantees
from ordercast.trace import Kind
from tests.check.traces import Trace

NOTHING = Guarantees(out_of_order=True)


def test_the_same_stamp_everywhere_or_none() -> None:
    trace = Trace(NOTHING)
    a, b = trace.submit(), trace.submit()
    trace.deliver_to_all(a)
    for node in range(3):
        trace.numbered(node, b, 4, clock=7)
    trace.clean()


@pytest.mark.parametrize(
    "other",
    [
        {"stamp_clock": 8, "stamp_issuer": 9, "numbers": (4,)},
        {"stamp_clock": 7, "stamp_issuer": 8, "numbers": (4,)},
        {"stamp_clock": 7, "stamp_issuer": 9, "numbers": (5,)},
        {"stamp_clock": 7, "stamp_issuer": 9},
        {},
    ],
)
def test_another_stamp_or_none(other: dict[str, object]) -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.numbered(0, a, 4, clock=7)
    trace.deliver(1, a, **other)
    trace.numbered(2, a, 4, clock=7)
    found = trace.only("stamp")
    assert (found.nodes, found.messages) == ((0, 1), (a,))
    assert "node 0 delivered 3#0 (at 2 us) with stamp (7, 9) and numbers 4, node 1 at 3 us" in found.detail
    assert other or "without a stamp" in found.detail


def test_a_stamp_where_the_first_had_none() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.deliver(0, a)
    trace.numbered(1, a, 4)
    trace.only("stamp")


def test_what_is_out_of_order_has_lost_its_place() -> None:
    trace = Trace(NOTHING)
    a = trace.submit()
    trace.numbered(0, a, 4)
    trace.deliver(1, a, kind=Kind.OUT_OF_ORDER)
    trace.clean()
