"""EpTO (Middleware 2015): its lemmas and Figure 3, recomputed, and held against Algorithm 1 itself.

Runs are seeded, so a test passes or fails for good. "Shown" below means: by four standard errors of the mean,
which an estimate on the wrong side of the bound reaches with a probability below 1e-4.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, log2, sqrt
from random import Random
from statistics import mean, stdev

import pytest

from ordercast.protocols.epto.bounds import (
    expected_balls,
    figure_3,
    hole_bound,
    proved_holes,
    reached,
)
from ordercast.protocols.epto.parameters import lemma_parameters
from ordercast.protocols.epto.stability import Stability
from tests.paper.epto_gossip import Spread, spread, spread_out_of_step

RUNS = 400


@cache
def runs(n: int, fanout: int, ttl: int, loss: float = 0.0, leaving: int = 0) -> tuple[Spread, ...]:
    rng = Random(f"{n} {fanout} {ttl} {loss} {leaving}")
    return tuple(spread(rng, n, fanout, ttl, loss, leaving) for _ in range(RUNS))


def lacking(results: Sequence[Spread], after: int = -1) -> list[float]:
    """In each run, the share of the processes other than the broadcaster that lack the event at the end."""
    return [result.lacking[after] / (result.witnesses - 1) for result in results]


def error(values: Sequence[float]) -> float:
    return 4 * stdev(values) / sqrt(len(values))


# The lemmas


def test_lemma_3_gives_the_ttl_of_section_6() -> None:
    chosen = lemma_parameters(100, 1.25, clock="global")
    assert (chosen.ttl, chosen.fanout, chosen.round_ns) == (15, 17, None)
    assert lemma_parameters(500, 1.25, clock="global").fanout == 19
    # 2 log2 n rounds would be c = 1, which is not enough
    assert lemma_parameters(1024, 1 + 1e-12, clock="global").ttl == 21


@pytest.mark.parametrize("n", [2, 17, 100, 500, 10_000])
def test_lemma_4_doubles_the_ttl_with_logical_clocks(n: int) -> None:
    assert lemma_parameters(n, 1.25).ttl == 2 * lemma_parameters(n, 1.25, clock="global").ttl


def test_lemma_5_lengthens_the_ttl_by_the_ratio_of_rounds() -> None:
    assert lemma_parameters(100, 1.25, drift=0.01, clock="global").ttl == 16  # 15 * 101/99 = 15.3
    assert lemma_parameters(100, 1.25, drift=0.01).ttl == 31
    assert lemma_parameters(100, 1.25, drift=0.2).ttl == 45, "30 * 3/2 exactly, in spite of binary fractions"


def test_lemma_6_adds_a_round_and_makes_it_longer_than_the_latency() -> None:
    chosen = lemma_parameters(100, 1.25, latency=125_000_000)
    assert (chosen.ttl, chosen.round_ns) == (31, 125_000_001)
    drifting = lemma_parameters(100, 1.25, latency=99, drift=0.01)
    assert drifting.round_ns == 101, "99 ns is what remains of 100 ns: not more than the latency"
    assert drifting.ttl == 32


def test_lemma_7_makes_up_for_churn_and_loss_by_the_fanout() -> None:
    # 2e ln 500 / ln ln 500 = 18.49
    assert lemma_parameters(500, 1.25, loss=0.1).fanout == 21
    assert lemma_parameters(500, 1.25, churn=0.1).fanout == 21
    both = lemma_parameters(500, 1.25, churn=0.1, loss=0.1)
    assert both.fanout == 23
    assert both.ttl == lemma_parameters(500, 1.25).ttl


# Figure 3


@pytest.mark.parametrize("n", [100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("c", [1, 2, 3])
def test_figure_3_to_ten_digits(n: int, c: int) -> None:
    with localcontext() as context:
        context.prec = 60
        balls = c * n * Decimal(n).ln() / Decimal(2).ln()
        at_process = (1 - Decimal(1) / n) ** balls
        anywhere = min(Decimal(1), n * at_process)
    assert figure_3(n, c) == pytest.approx((float(at_process), float(anywhere)), rel=1e-10, abs=0)


def all_hit(n: int, balls: int) -> Fraction:
    """The probability that each of n bins has a ball, by inclusion and exclusion."""
    return sum(((-1) ** k * comb(n, k) * Fraction(n - k, n) ** balls for k in range(n + 1)), Fraction())


@pytest.mark.parametrize(("n", "balls"), [(2, 8), (6, 20), (10, 50), (20, 200)])
def test_anywhere_is_the_sum_over_processes_for_the_product_would_be_too_small(n: int, balls: int) -> None:
    at_process = hole_bound(n, balls)
    truth = 1 - all_hit(n, balls)
    assert 1 - (1 - Fraction(n - 1, n) ** balls) ** n < truth < n * at_process


# Algorithm 1


def test_the_last_of_ttl_throws_is_in_vain() -> None:
    """Line 13 ignores an event that arrives with a ttl of TTL."""
    assert spread(Random(1), 10, 9, 1).lacking == (9,)
    assert spread(Random(1), 10, 9, 2).lacking == (0, 0)
    assert expected_balls(10, 9, 1) == 0
    assert expected_balls(10, 9, 2) == 9


LOWERED = [
    (60, 1, 60, 0.0),
    (60, 1, 100, 0.02),
    (60, 2, 12, 0.2),
    (60, 2, 30, 0.4),
    (60, 3, 5, 0.0),
    (100, 4, 5, 0.0),
    (100, 5, 5, 0.2),
    (200, 6, 4, 0.0),
    (100, 8, 4, 0.1),
]
"""Processes, fanout, TTL and loss: too low, so that there are holes; with loss, events die out too."""


@pytest.mark.parametrize(("n", "fanout", "ttl", "loss"), LOWERED)
def test_holes_are_rarer_than_the_bound_for_the_balls_that_arrived(
    n: int, fanout: int, ttl: int, loss: float
) -> None:
    results = runs(n, fanout, ttl, loss)
    holes = lacking(results)
    assert mean(holes) > error(holes), "there are holes to speak of"
    assert mean(holes) <= mean(hole_bound(n, result.balls) for result in results)
    # And what is proved, for a number of balls that is fixed beforehand.
    for balls in (n // 2, n, 2 * n):
        with_balls = [hole * (run.balls >= balls) for hole, run in zip(holes, results, strict=True)]
        assert mean(with_balls) + error(with_balls) < hole_bound(n, balls)


@pytest.mark.parametrize(("n", "fanout", "ttl", "loss"), LOWERED)
def test_holes_are_rarer_than_is_proved_from_fanout_and_ttl_alone(
    n: int, fanout: int, ttl: int, loss: float
) -> None:
    holes = lacking(runs(n, fanout, ttl, loss))
    proved = proved_holes(n, fanout, ttl - 1, loss=loss)[-1]
    assert mean(holes) - error(holes) <= proved.at_process < 1, "equal where it is exact, as for one ball"
    assert mean(hole > 0 for hole in holes) <= proved.anywhere


def test_with_churn_those_who_stay_miss_no_more_than_is_proved() -> None:
    results = runs(100, 8, 4, 0.1, leaving=10)
    holes = lacking(results)
    proved = proved_holes(100, 8, 3, loss=0.1, churn=10 / 99)[-1]
    assert mean(holes) > error(holes)
    assert mean(holes) + error(holes) < proved.at_process < 0.2


@pytest.mark.parametrize(
    ("n", "fanout", "ttl", "loss"), [row for row in LOWERED if row[1] * (1 - row[3]) > 2.5]
)
def test_the_mean_field_is_close_where_several_balls_of_a_throw_arrive(
    n: int, fanout: int, ttl: int, loss: float
) -> None:
    results = runs(n, fanout, ttl, loss)
    balls = [result.balls for result in results]
    assert mean(balls) == pytest.approx(expected_balls(n, fanout, ttl, loss=loss), rel=0.02)
    shares = [1 - result.lacking[-1] / n for result in results]
    assert mean(shares) == pytest.approx(reached(n, fanout, ttl - 1, loss=loss), abs=0.02)


@pytest.mark.parametrize(("n", "fanout", "ttl", "loss"), LOWERED)
def test_the_mean_field_estimates_from_above(n: int, fanout: int, ttl: int, loss: float) -> None:
    results = runs(n, fanout, ttl, loss)
    balls = [result.balls for result in results]
    rounding = 1 + 1e-12
    assert mean(balls) - error(balls) <= expected_balls(n, fanout, ttl, loss=loss) * rounding
    shares = [1 - result.lacking[-1] / n for result in results]
    assert mean(shares) - error(shares) <= reached(n, fanout, ttl - 1, loss=loss)


def test_the_mean_field_flatters_where_an_event_may_die_out() -> None:
    holes = lacking(runs(60, 2, 30, 0.4))
    assert mean(holes) > 0.3
    assert 1 - reached(60, 2, 29, loss=0.4) < 0.01


def test_out_of_step_too_holes_are_rarer_than_the_bound_for_the_balls_that_arrived() -> None:
    rng = Random(8)
    results = [spread_out_of_step(rng, 60, 3, 8, 0.05) for _ in range(RUNS)]
    holes = [missing / 59 for _, missing in results]
    assert mean(holes) > error(holes)
    assert mean(holes) <= mean(hole_bound(60, balls) for balls, _ in results)


def test_lemma_6_counts_on_relays_that_take_about_a_round() -> None:
    """Where they take far less, ages run ahead, and c n log2(n) balls do not arrive within the TTL."""
    chosen = lemma_parameters(100, 6.2, clock="global", latency=1)
    promised = chosen.c * 100 * log2(100)
    rng = Random(6)
    slow, fast = (
        mean(spread_out_of_step(rng, 100, chosen.fanout, chosen.ttl, latency)[0] for _ in range(12))
        for latency in (0.99, 0.001)
    )
    assert slow > 8 * promised
    assert fast < 0.95 * promised


# Every outcome, for few processes


def exact_holes(n: int, fanout: int, rounds: int, loss: float) -> list[tuple[float, float]]:
    """After 0, 1, ... throws: that process 1 lacks the event, and that any does. Sets are bit masks."""
    states = {(1, 1): 1.0}  # who knows, and who throws next
    found = []
    for _ in range(rounds + 1):
        lacks = sum(chance for (knows, _), chance in states.items() if not knows & 2)
        any_lacks = sum(chance for (knows, _), chance in states.items() if knows != 2**n - 1)
        found.append((lacks, any_lacks))
        after: dict[tuple[int, int], float] = {}
        for (knows, throwers), chance in states.items():
            for hit, probability in _hits(n, fanout, throwers, loss).items():
                state = knows | hit, hit
                after[state] = after.get(state, 0.0) + chance * probability
        states = after
    return found


def _hits(n: int, fanout: int, throwers: int, loss: float) -> dict[int, float]:
    hits = {0: 1.0}
    for thrower in range(n):
        if throwers >> thrower & 1:
            choices = list(combinations([other for other in range(n) if other != thrower], fanout))
            after: dict[int, float] = {}
            for before, chance in hits.items():
                for choice in choices:
                    for arrived in range(2**fanout):
                        count = arrived.bit_count()
                        mask = sum(1 << target for bit, target in enumerate(choice) if arrived >> bit & 1)
                        weight = chance * (1 - loss) ** count * loss ** (fanout - count) / len(choices)
                        after[before | mask] = after.get(before | mask, 0.0) + weight
            hits = after
    return hits


@pytest.mark.parametrize(
    ("n", "fanout", "loss"),
    [
        (2, 1, 0.1),
        (3, 1, 0.0),
        (3, 2, 0.01),
        (3, 2, 0.3),
        (4, 2, 0.0),
        (4, 2, 0.2),
        (4, 3, 0.1),
        (5, 2, 0.05),
    ],
)
def test_what_is_proved_holds_for_few_processes_in_every_outcome(n: int, fanout: int, loss: float) -> None:
    proved = proved_holes(n, fanout, 6, loss=loss)
    for (lacks, any_lacks), bound in zip(exact_holes(n, fanout, 6, loss), proved, strict=True):
        assert lacks <= bound.at_process * (1 + 1e-9)
        assert any_lacks <= bound.anywhere * (1 + 1e-9)


@pytest.mark.parametrize(("n", "loss"), [(2, 0.1), (3, 0.01), (4, 0.02)])
def test_with_the_largest_fanout_nothing_is_given_away(n: int, loss: float) -> None:
    """The bound is at most 20 % above the truth: nearly all of it is the loss of the first throw."""
    truth = exact_holes(n, n - 1, 6, loss)[-1][1]
    assert loss ** (n - 1) <= truth
    assert proved_holes(n, n - 1, 6, loss=loss)[-1].anywhere < 1.2 * truth


# Sections 6, 8.1 and 8.4


def test_section_6_a_ttl_of_5_is_enough_for_100_processes() -> None:
    assert proved_holes(100, 17, 5 - 1)[-1].anywhere < 1e-13
    assert figure_3(100, 1.25).anywhere > 0.02, "of a TTL of 15: the bounds of Theorem 2 are loose"


@pytest.mark.parametrize(("n", "fanout", "loss"), [(60, 12, 0.0), (100, 8, 0.1), (100, 17, 0.1)])
def test_section_8_4_events_are_at_least_as_stable_as_their_age_says(
    n: int, fanout: int, loss: float
) -> None:
    ttl = 6
    stability = Stability(n, fanout, ttl, loss=loss)
    results = runs(n, fanout, ttl, loss)
    for age in range(2, ttl + 1):
        # At age a, a - 1 throws have landed; only runs in which one other than the broadcaster knows count.
        here = [result.lacking[age - 2] for result in results if result.lacking[age - 2] < n - 1]
        # One who knows asks about another: of the n - 2 others that are not the broadcaster, some lack it.
        known = [1 - missing / (n - 2) for missing in here]
        assert mean(known) + error(known) >= stability.known(age)
        assert mean(missing == 0 for missing in here) >= stability.stable(age)
    assert stability.known(ttl) > 0.99
