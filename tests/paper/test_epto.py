"""EpTO against its paper (Matos et al., Middleware 2015): the figures' runs and the algorithms' lines."""

import pytest

from ordercast.core import Deployment, Guarantees, MessageId, NodeId
from ordercast.judge import Violation
from ordercast.protocols.epto.clocks import LogicalClock
from ordercast.protocols.epto.messages import Ball
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.ordering import Ordering
from ordercast.protocols.epto.protocol import deploy, guarantees
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.check.traces import Trace
from tests.epto.lab import Bench, event
from tests.paper.epto_printed import Printed, printed

PROMISED: Guarantees = guarantees(EptoOptions())
P, Q, R = range(3)


# Table 1 and Figure 1: what is allowed and what is not


def test_figure_1a_a_hole_is_allowed() -> None:
    trace = Trace(PROMISED)
    first, hole, last = (trace.submit() for _ in range(3))
    trace.deliver(P, first, hole, last)
    trace.deliver(Q, first, hole, last)
    trace.deliver(R, first, last)
    trace.clean()


def test_figure_1b_another_order_is_forbidden() -> None:
    trace = Trace(PROMISED)
    first, second, third = (trace.submit() for _ in range(3))
    trace.deliver(P, first, second, third)
    trace.deliver(Q, first, second, third)
    trace.deliver(R, first, third, second)
    found = trace.only("total-order")
    assert R in found.nodes
    assert set(found.messages) == {second, third}


def test_table_1_integrity_forbids_a_second_delivery_and_one_that_was_never_broadcast() -> None:
    twice, made_up = Trace(PROMISED), Trace(PROMISED)
    message = twice.submit()
    twice.deliver(P, message, message)
    assert twice.only("integrity").messages == (message,)
    made_up.deliver(P, 99)
    assert made_up.only("integrity").nodes == (P,)


# Algorithm 1: dissemination


def test_lines_6_to_10_a_broadcast_is_stamped_and_goes_into_the_next_ball() -> None:
    bench = Bench(me=P)
    bench.submit("e")
    sent = bench.round()
    (ball,) = {message for _, message in sent}
    assert isinstance(ball, Ball)
    assert [to for to, _ in sent] in ([Q, R], [R, Q])
    (broadcast,) = ball.events
    assert (broadcast.ts, broadcast.source, broadcast.payload) == (1, P, b"e")


def test_line_13_events_below_the_limit_are_relayed_and_those_at_it_are_not() -> None:
    bench = Bench(ttl=3)
    bench.hear((event("young", 1), 2), (event("old", 2), 3))
    assert bench.balls() == {"young": 3}


def test_line_13_what_comes_only_at_the_limit_is_not_ordered_either() -> None:
    bench = Bench(ttl=3)
    bench.hear((event("old", 2), 3))
    bench.round(10)
    assert bench.words() == []


@pytest.mark.parametrize("ages", [(1, 2), (2, 1)])
def test_lines_14_to_16_of_two_copies_the_older_age_counts(ages: tuple[int, int]) -> None:
    bench = Bench(ttl=5)
    for ttl in ages:
        bench.hear((event("e", 1), ttl))
    assert bench.balls() == {"e": 3}


def test_line_19_every_timestamp_moves_the_logical_clock_even_of_events_that_are_too_old() -> None:
    bench = Bench(me=P, ttl=3)
    bench.hear((event("old", 41), 3), (event("young", 7), 1))
    bench.submit("mine")
    (ball,) = {message for _, message in bench.round()}
    assert isinstance(ball, Ball)
    assert {broadcast.payload: broadcast.ts for broadcast in ball.events} == {b"young": 7, b"mine": 42}


def test_lines_20_to_22_ages_grow_by_one_with_each_relay() -> None:
    bench = Bench(ttl=5)
    bench.submit("mine")
    bench.hear((event("theirs", 1), 3))
    assert bench.balls() == {"mine": 1, "theirs": 4}


def test_line_28_an_event_is_relayed_once_for_each_round_in_which_it_was_heard() -> None:
    bench = Bench(ttl=5)
    bench.hear((event("e", 1), 1))
    assert bench.balls() == {"e": 2}
    assert bench.balls() == {}
    bench.hear((event("e", 1), 4))
    assert bench.balls() == {"e": 5}


# Algorithms 2 to 4: ordering


@pytest.mark.parametrize("ttl", [1, 2, 15])
def test_an_own_event_is_delivered_when_its_age_is_above_the_limit(ttl: int) -> None:
    bench = Bench(ttl=ttl)
    bench.submit("e")
    assert bench.rounds_until("e") == ttl + 1  # its age is 1 in the first round, and stable above the limit


def test_lines_6_and_7_waiting_events_age_without_being_heard_of_again() -> None:
    bench = Bench(ttl=5)
    bench.hear((event("e", 1), 3))
    assert bench.rounds_until("e") == 3  # with ages 4, 5 and 6


def test_lines_10_to_12_an_older_copy_makes_an_event_stable_sooner() -> None:
    bench = Bench(ttl=9)
    bench.hear((event("e", 1), 1))
    bench.round()
    bench.hear((event("e", 1), 8))
    assert bench.rounds_until("e") == 2  # with ages 9 and 10


def test_lines_18_to_26_a_stable_event_waits_for_those_before_it() -> None:
    bench = Bench(ttl=5)
    bench.hear((event("second", 2), 4), (event("first", 1), 1))
    bench.round(4)
    assert bench.words() == []
    bench.round()
    assert bench.words() == ["first", "second"]


def test_line_9_an_event_before_the_last_delivered_one_is_discarded() -> None:
    bench = Bench(ttl=2)
    bench.hear((event("second", 2), 1))
    assert bench.rounds_until("second") == 2
    bench.hear((event("first", 1), 1), (event("second", 2), 1), (event("third", 3), 1))
    bench.round(5)
    assert bench.words() == ["second", "third"]


def test_validity_a_peer_with_a_clock_far_behind_delivers_its_own_event() -> None:
    bench = Bench(me=P, ttl=2)
    bench.hear((event("far", 1000), 1))
    bench.round(2)
    bench.submit("mine")
    bench.round(3)
    assert bench.words() == ["far", "mine"]


# Figure 4: a concurrency hole with logical time


def figure_4(ttl: int) -> tuple[list[str], list[str]]:
    """What p and q deliver. q broadcasts e; p hears of it two rounds later, just after it broadcast e'."""
    p, q = Bench(me=P, peers=2, ttl=ttl), Bench(me=Q, peers=2, ttl=ttl)
    q.submit("e")
    ((_, late),) = q.round()  # round 0; the ball takes two rounds
    q.round(1)
    p.submit("e'")
    p.peer.on_message(Q, late)
    ((_, ball),) = p.round()  # round 2
    q.round(1)
    q.peer.on_message(P, ball)
    for bench in (p, q):
        bench.round(2 * ttl)
    return p.words(), q.words()


def test_figure_4_both_events_have_the_same_timestamp() -> None:
    p, q = Bench(me=P, clock=LogicalClock()), Bench(me=Q, clock=LogicalClock())
    stamps = []
    for bench in (p, q):
        bench.submit("event")
        message = bench.round()[0][1]
        assert isinstance(message, Ball)
        stamps.append((message.events[0].ts, message.events[0].source))
    assert stamps == [(1, P), (1, Q)]


def test_figure_4_with_too_few_rounds_q_has_a_hole() -> None:
    assert figure_4(ttl=2) == (["e'", "e"], ["e"])


def test_figure_4_with_twice_as_many_there_is_none() -> None:
    assert figure_4(ttl=4) == (["e'", "e"], ["e'", "e"])


# Algorithm 2 as printed loses total order on equal timestamps


def one_timestamp(make: type[Ordering]) -> tuple[Trace, dict[NodeId, list[str]], dict[str, MessageId]]:
    """e and e' have one timestamp, and e is a round older; but r heard of e a round late."""
    ttl = 4
    older, younger = event("e", 1, source=Q), event("e'", 1, source=P)
    q, r = (Bench(me=node, order=make(ttl), ttl=ttl) for node in (Q, R))
    q.hear((older, 2), (younger, 1))
    r.hear((older, 1), (younger, 1))
    words = {}
    for bench in (q, r):
        bench.round(2 * ttl)
        words[bench.env.me] = bench.words()
    trace = Trace(PROMISED)
    named = {"e": trace.submit(), "e'": trace.submit()}
    for node, delivered in words.items():
        trace.deliver(node, *(named[word] for word in delivered))
    return trace, words, named


def test_as_printed_two_processes_deliver_in_different_orders_and_the_check_names_them() -> None:
    trace, words, named = one_timestamp(Printed)
    assert words == {Q: ["e", "e'"], R: ["e'", "e"]}
    found = trace.only("total-order")
    assert set(found.nodes) == {Q, R}
    assert set(found.messages) == set(named.values())


def test_compared_by_source_too_both_deliver_in_one_order() -> None:
    trace, words, _ = one_timestamp(Ordering)
    assert words == {Q: ["e'", "e"], R: ["e'", "e"]}
    trace.clean()


TTL = 4


def same_run(seed: int, as_printed: bool) -> Run:
    """Five peers that broadcast at the same time, with logical clocks."""
    scenario = Scenario(
        protocol="epto",
        seed=seed,
        receivers=5,
        senders=5,
        colocated=True,
        options={"ttl": TTL},
        network=NetworkSpec(latency=UniformSpec(100, 3000)),
        workload=WorkloadSpec(messages=100, rate_per_s=400),
        settle_ms=50,
    )
    plan = deploy(Deployment.disjoint(1, 5, 5, colocated=True), EptoOptions(ttl=TTL))
    return simulate(scenario, printed(plan, TTL) if as_printed else plan)


def test_in_the_simulator_the_printed_algorithm_is_caught_and_ours_passes_the_same_runs() -> None:
    found: list[Violation] = []
    for seed in range(3):
        found += same_run(seed, as_printed=True).violations
        assert same_run(seed, as_printed=False).violations == []
    assert {violation.property for violation in found} == {"total-order", "stamp-order"}
    for violation in [one for one in found if one.property == "total-order"]:
        assert len(violation.nodes) == 2
        assert len(violation.messages) == 2
        assert all(str(node) in violation.detail for node in violation.nodes)
