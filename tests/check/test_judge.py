"""The judge on arbitrary rows, and oracles used without it."""

from contextlib import suppress

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core import Consistency, Guarantees, Membership, Order, Partition, RemoteError, message_id
from ordercast.judge import PROPERTIES, Judge, judge, properties_of, verdict
from ordercast.trace import Event, Kind
from tests.check.test_order import ACROSS, triangle
from tests.check.traces import NOTIFIED, STRICT, Trace

small = st.integers(-1, 5)
numbers = small | st.sampled_from([-(2**63), 2**63 - 1, 2**62, 2**100])
groups = st.none() | st.lists(small | st.none(), max_size=3).map(tuple)
WITH_STATES = Guarantees(views=True, membership=Membership.VIEWS, state_transfer=True)
rows = st.builds(
    Event,
    time_ns=numbers,
    clock_ns=numbers,
    node=st.integers(0, 5),
    kind=st.sampled_from(Kind),
    message=st.none() | st.builds(message_id, st.integers(0, 5), st.integers(0, 3)) | numbers,
    groups=groups,
    numbers=st.none() | st.lists(numbers | st.none(), max_size=3).map(tuple),
    submitted_ns=st.none() | numbers,
    stamp_clock=st.none() | numbers,
    stamp_issuer=st.none() | numbers,
    config=st.none() | numbers,
    members=groups,
    peer=st.none() | small,
    digest=st.none() | numbers,
    label=st.sampled_from([None, "saved", "lost", "other"]),
)


@st.composite
def sound_rows(draw: st.DrawFn) -> Event:
    """Rows that get past the gate more often: one group, one number, members that there are."""
    event = draw(rows)
    group = (draw(st.integers(0, 2)),)
    return event._replace(
        groups=group,
        numbers=draw(st.just(event.numbers) | numbers.map(lambda number: (number,))),
        message=message_id(draw(st.integers(4, 5)), draw(st.integers(0, 3))),
        stamp_issuer=draw(st.none() | small),
        members=tuple(draw(st.lists(st.integers(0, 3), max_size=3))),
    )


@given(
    st.lists(rows | sound_rows(), max_size=30),
    st.sampled_from([STRICT, NOTIFIED, msgspec.structs.replace(NOTIFIED, views=True), WITH_STATES]),
    st.sampled_from(["simulator", "live"]),
)
@settings(max_examples=250)
def test_no_row_whatever_it_says_breaks_the_judge(
    events: list[Event], promise: Guarantees, source: str
) -> None:
    trace = Trace(promise, {0: (0, 1), 1: (1, 2), 2: (3,)}, source=source)
    judge = Judge(trace.description)
    for event in events:
        with suppress(RemoteError):
            judge.observe(event)
    with suppress(RemoteError):
        judge.finish()
    assert all(violation.detail for violation in judge.violations)
    with suppress(RemoteError):
        verdict(trace.description, events)


def test_oracles_follow_the_promises() -> None:
    def names(promise: Guarantees, count: int = 2) -> list[str]:
        trace = Trace(promise, {group: (group,) for group in range(count)})
        return [declared.name for declared in properties_of(trace.description)]

    record = ["clock", "lifecycle", "integrity", "digests", "stamp", "stamp-owner"]
    always = ["configuration", "completion"]
    assert names(Guarantees()) == [*record, *always]
    ordered = [*record, "stamp-order", *always, "total-order"]
    assert names(Guarantees(order=Order.GROUP)) == ordered
    assert names(ACROSS) == [*ordered, "acyclic-order"]
    assert names(ACROSS, 1) == ordered  # one group: the same question
    overlaps = Guarantees(order=Order.OVERLAPS)
    assert (names(overlaps), names(overlaps, 1)) == ([*ordered, "pair-order"], ordered)
    both = {*names(STRICT), *names(NOTIFIED), *names(overlaps)}
    assert names(Guarantees(membership=Membership.VIEWS)) == [*record[:3], "tenure", *record[3:], *always]
    replicated = Guarantees(consistency=Consistency.LINEARIZABLE)
    assert names(replicated) == [*record, *always, "linearizable", "replica-state"]
    shards = ["replica-state", "all-or-nothing", "locks"]
    for consistency in (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE):
        wanted = [*record, *always, consistency.value, *shards]
        assert names(Guarantees(consistency=consistency)) == wanted
        both |= set(wanted)
    partition = Partition.SIDE_BRANCHES_DISCARDED
    assert names(Guarantees(partition=partition)) == [*record, *always, "branches"]
    described = {"branches", "progress", "probe", "tenure", "joining", "state-transfer", "answers", "replies"}
    assert both | {*names(replicated)} | described == {declared.name for declared in PROPERTIES}


def test_a_property_needs_no_other_to_be_judged() -> None:
    trace = triangle(ACROSS)
    acyclic = [declared for declared in PROPERTIES if declared.name == "acyclic-order"]
    assert judge(trace.description, trace.events, acyclic) == trace.judge()
    promised = msgspec.structs.replace(ACROSS, validity=True)
    description = msgspec.structs.replace(trace.description, guarantees=promised)
    validity = [declared for declared in PROPERTIES if declared.name == "validity"]
    assert [found.nodes for found in judge(description, trace.events, validity)] == [(6, 5)]


def test_findings_come_in_order_and_those_of_the_end_last() -> None:
    trace = Trace()
    a, b = trace.submit(), trace.submit(4)
    trace.deliver(0, a, b, b)
    trace.deliver(1, b, a)
    found = [violation.property for violation in trace.judge()]
    assert found == ["integrity", "total-order", "agreement", "agreement"]
