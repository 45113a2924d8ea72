"""Choosing EpTO's parameters: what holds for all conditions, and what is refused."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.core import LocalError
from ordercast.protocols import epto
from ordercast.protocols.epto.bounds import PROCESSES_MAX, expected_balls, hole_bound, proved_holes, reached
from ordercast.protocols.epto.parameters import lemma_parameters, parameters
from ordercast.protocols.epto.stability import Stability

PROCESSES = st.integers(1, 3000)
SHARES = st.floats(0, 0.6)
TARGETS = st.floats(1e-12, 0.5)


@settings(max_examples=40, deadline=None)
@given(n=PROCESSES, loss=SHARES, churn=st.floats(0, 0.2), target=TARGETS)
def test_what_is_achieved_keeps_within_the_target_or_says_so(
    n: int, loss: float, churn: float, target: float
) -> None:
    chosen = parameters(n, loss=loss, churn=churn, target=target)
    assert chosen.hole_at_process <= chosen.hole_anywhere <= target
    assert chosen.proved_at_process <= chosen.proved_anywhere
    assert chosen.within_target == (chosen.proved_anywhere <= target)
    assert chosen.conditions.lemma_fanout() <= chosen.fanout <= n - 1
    assert chosen.first_throw_lost <= chosen.proved_anywhere * (1 + 1e-9)
    if not chosen.within_target:
        assert chosen.fanout == n - 1, "only if there is nobody left to throw at"
        with pytest.raises(LocalError, match="choose a larger target"):
            parameters(n, loss=loss, churn=churn, target=target, strict=True)


@settings(max_examples=15, deadline=None)
@given(n=PROCESSES, losses=st.tuples(SHARES, SHARES), target=TARGETS)
def test_more_loss_needs_no_smaller_fanout(n: int, losses: tuple[float, float], target: float) -> None:
    less, more = (parameters(n, loss=loss, target=target) for loss in sorted(losses))
    assert less.fanout <= more.fanout
    assert less.ttl == more.ttl


@settings(max_examples=40, deadline=None)
@given(n=PROCESSES, targets=st.tuples(TARGETS, TARGETS), clock=st.sampled_from(["logical", "global"]))
def test_a_smaller_target_needs_no_smaller_ttl(n: int, targets: tuple[float, float], clock: Any) -> None:
    small, large = (parameters(n, target=target, clock=clock) for target in sorted(targets))
    assert small.ttl >= large.ttl
    assert small.ttl_proved is not None and large.ttl_proved is not None
    assert small.ttl_proved >= large.ttl_proved
    assert small.ttl_proved <= small.ttl, "Theorem 2 asks for more than is needed"


@settings(max_examples=40, deadline=None)
@given(n=PROCESSES, target=TARGETS)
def test_one_round_less_would_not_be_enough(n: int, target: float) -> None:
    chosen = parameters(n, target=target, clock="global")
    assert chosen.c > 1 or n == 1
    fewer = (chosen.rounds - 1) / math.log2(n) - 1 if n > 1 else 0
    assert fewer <= 1 or n * hole_bound(n, fewer * n * math.log2(n)) > target


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 500), data=st.data(), loss=SHARES)
def test_bounds_and_estimates_only_get_better_with_rounds(n: int, data: st.DataObject, loss: float) -> None:
    fanout = data.draw(st.integers(1, n - 1))
    proved = proved_holes(n, fanout, 12, loss=loss)
    assert all(0 <= late.anywhere <= early.anywhere <= 1 for early, late in pairwise(proved))
    shares = [reached(n, fanout, rounds, loss=loss) for rounds in range(13)]
    assert shares == sorted(shares) and 1 / n == pytest.approx(shares[0]) and shares[-1] <= 1
    balls = [expected_balls(n, fanout, ttl, loss=loss) for ttl in range(13)]
    assert balls == sorted(balls)
    stability = Stability(n, fanout, 13, loss=loss)
    for chances in (
        [stability.known(age) for age in range(20)],
        [stability.stable(age) for age in range(20)],
    ):
        assert chances == sorted(chances) and chances[0] >= 0 and chances[-1] <= 1
    assert stability.known(13) >= stability.stable(13)


@pytest.mark.parametrize("n", range(1, 17))
def test_few_processes_throw_at_all_others(n: int) -> None:
    chosen = parameters(n)
    assert chosen.fanout == n - 1
    assert chosen.ttl >= 1 and chosen.within_target
    assert chosen.proved_anywhere == 0, "without loss, the first throw reaches them all"
    assert Stability(n, chosen.fanout, chosen.ttl).stable(2) == 1


def test_the_number_of_processes_at_which_the_lemmas_begin() -> None:
    assert parameters(17).fanout == 15


def test_a_pair_with_loss_depends_on_one_ball() -> None:
    chosen = parameters(2, loss=0.1)
    assert not chosen.within_target
    assert chosen.proved_anywhere == pytest.approx(0.1) == chosen.first_throw_lost
    assert chosen.ttl_proved is None
    with pytest.raises(LocalError, match=r"the bound is 0\.1, and the broadcaster's throw alone is lost"):
        parameters(2, loss=0.1, strict=True)


def test_where_the_average_of_lemma_7_hides_too_much_the_fanout_is_raised() -> None:
    chosen = parameters(200, loss=0.7)
    lemma = lemma_parameters(200, chosen.c, loss=0.7)
    assert lemma.first_throw_lost > 1e-9 > chosen.proved_anywhere
    assert chosen.fanout > lemma.fanout
    assert proved_holes(200, chosen.fanout - 1, chosen.rounds - 1, loss=0.7)[-1].anywhere > 1e-9


def test_what_is_proved_leaves_out_the_throw_that_is_ignored() -> None:
    lemma = lemma_parameters(100, 1.25, clock="global")
    proved = proved_holes(100, lemma.fanout, 15)
    assert lemma.ttl == 15
    assert lemma.proved_anywhere == proved[14].anywhere > proved[15].anywhere
    assert parameters(100, clock="global").ttl_proved == 5
    assert proved[4].anywhere <= 1e-9 < proved[3].anywhere


def test_a_million_processes_are_no_trouble() -> None:
    chosen = parameters(1_000_000, loss=0.05, drift=0.01, latency=200_000_000)
    assert chosen.within_target and chosen.fanout == 31 and chosen.ttl < 120


def test_tiny_probabilities_are_numbers_and_not_zero() -> None:
    assert hole_bound(1_000_000, 4e8) == pytest.approx(math.exp(-400.0002), rel=1e-6)
    assert parameters(10_000, target=1e-60, clock="global").hole_anywhere > 1e-62


def test_ages_that_run_ahead_say_less() -> None:
    in_step, ahead = Stability(100, 17, 15), Stability(100, 17, 15, pace=3)
    assert ahead.stable(15) == in_step.stable(5)
    assert ahead.stable(4) == in_step.stable(2) < in_step.stable(4)


def test_a_fanout_beyond_the_others_reaches_the_others() -> None:
    assert Stability(3, 8, 5).stable(2) == 1


@pytest.mark.parametrize(
    ("given_", "teaches"),
    [
        ({"n": 0}, "processes must be 1 to 2\\*\\*40"),
        ({"n": PROCESSES_MAX + 1}, "processes must be 1 to 2\\*\\*40"),
        ({"loss": 1.0}, "loss must be .* below 1, not 1.0; 0.05 means 5 %"),
        ({"loss": math.nan}, "loss must be at least 0"),
        ({"loss": -0.1}, "loss must be at least 0"),
        ({"churn": 1.0}, "churn must be at least 0"),
        ({"drift": 1.0}, "drift must be at least 0"),
        ({"drift": math.nan}, "drift must be at least 0"),
        ({"latency": -1}, "latency must not be negative"),
        ({"clock": "atomic"}, "'logical' or 'global', not 'atomic'"),
        ({"target": 0.0}, "between 0 and 1"),
        ({"target": 1.0}, "between 0 and 1"),
        ({"target": math.nan}, "between 0 and 1"),
        ({"drift": 0.9}, "a TTL of .* for a target of 1e-09; choose .*; the largest TTL is 250"),
        ({"target": 1e-300}, "the largest TTL is 250"),
    ],
)
def test_what_makes_no_sense_is_refused_with_advice(given_: dict[str, Any], teaches: str) -> None:
    with pytest.raises(LocalError, match=teaches):
        parameters(**({"n": 100} | given_))


def test_lemma_3_and_the_bounds_refuse_what_they_do_not_cover() -> None:
    for c in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(LocalError, match="c must be above 1"):
            lemma_parameters(100, c)
    with pytest.raises(LocalError, match="the largest TTL is 250"):
        lemma_parameters(100, 100)
    with pytest.raises(LocalError, match="fanout must be 1 to 9 for 10 processes, not 10"):
        expected_balls(10, 10, 5)
    with pytest.raises(LocalError, match="fanout must be 1 to 9"):
        proved_holes(10, 0, 5)
    with pytest.raises(LocalError, match="rounds"):
        reached(10, 3, -1)
    with pytest.raises(LocalError, match="at least 1 process and 0 balls"):
        hole_bound(10, -1)
    with pytest.raises(LocalError, match="pace"):
        Stability(10, 3, 5, pace=0.5)
    with pytest.raises(LocalError, match="ttl"):
        Stability(10, 3, 0)


def test_what_is_known_may_be_given_in_order() -> None:
    in_order = epto.parameters(100, 0.01, 0.02, 0.03, 5_000_000, "global", 1e-6)
    named = epto.parameters(
        n=100, loss=0.01, churn=0.02, drift=0.03, latency=5_000_000, clock="global", target=1e-6
    )
    assert in_order == named
    assert in_order.conditions.latency_ns == 5_000_000
