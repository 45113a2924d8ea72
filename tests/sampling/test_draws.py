"""Draws are even, independent of each other, and the same for ever."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.components.sampling import below, choose, draw, mix, stream
from ordercast.components.sampling.draws import GOLDEN, MASK

SEEDS = (0, 1, 2, 12345, MASK)
UINT64 = st.integers(0, MASK)


def chi_square(values: Iterable[object], cells: Sequence[object]) -> float:
    counts = Counter(values)
    expected = counts.total() / len(cells)
    assert counts.keys() <= set(cells)
    return sum((counts[cell] - expected) ** 2 / expected for cell in cells)


def chi_square_limit(cells: int) -> float:
    """What an even source exceeds about once in 10,000 times (Wilson and Hilferty's approximation)."""
    freedom = cells - 1
    return float(freedom * (1 - 2 / (9 * freedom) + 3.72 * (2 / (9 * freedom)) ** 0.5) ** 3)


def test_mix_is_the_finaliser_of_splitmix64() -> None:
    # The first five numbers that SplitMix64 gives for the seed 1234567, as published widely.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [mix(1234567 + step * GOLDEN & MASK) for step in range(1, 6)] == published


def test_draws_are_what_they_were() -> None:
    # Recorded: if these change, so does every run of every seed.
    assert stream(7, 1) == 0x63CBE1E459320DD7
    assert draw(stream(7, 1), 3, 0) == 0xD30DC073D6A69DF8
    assert draw(stream(7, 1), 3, 1) == 0x281DC8D01FD0DAD0
    assert choose(stream(7, 1), 3, 5, 100) == [79, 15, 2, 60, 17]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shift", [0, 17, 32, 60], ids=lambda shift: f"bits from {shift}")
def test_draws_are_even_over_steps_and_over_indices(seed: int, shift: int) -> None:
    cells = range(16)
    steps = (draw(seed, step, 0) >> shift & 15 for step in range(16_000))
    indices = (draw(seed, 0, index) >> shift & 15 for index in range(16_000))
    assert chi_square(steps, cells) < chi_square_limit(16)
    assert chi_square(indices, cells) < chi_square_limit(16)


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbouring_draws_tell_nothing_of_each_other(seed: int) -> None:
    cells = range(256)
    after_step = [
        (draw(seed, step, 0) >> 60) * 16 + (draw(seed, step + 1, 0) >> 60) for step in range(50_000)
    ]
    after_index = [(draw(seed, 0, at) >> 60) * 16 + (draw(seed, 0, at + 1) >> 60) for at in range(50_000)]
    diagonal = [(draw(seed, at, at) >> 60) * 16 + (draw(seed, at, at + 1) >> 60) for at in range(50_000)]
    for pairs in (after_step, after_index, diagonal):
        assert chi_square(pairs, cells) < chi_square_limit(256)


def test_seeds_that_follow_each_other_give_streams_that_do_not() -> None:
    pairs = [
        (draw(stream(seed, 1), 0, 0) >> 60) * 16 + (draw(stream(seed, 2), 0, 0) >> 60)
        for seed in range(50_000)
    ]
    assert chi_square(pairs, range(256)) < chi_square_limit(256)
    assert len({stream(seed, tag) for seed in range(300) for tag in range(30)}) == 9000


def test_each_bit_of_the_value_flips_each_bit_of_the_answer_half_of_the_time() -> None:
    values = [mix(seed) for seed in range(400)]
    for flipped in range(64):
        changes = [mix(value) ^ mix(value ^ 1 << flipped) for value in values]
        for seen in range(64):
            # 400 coins: 4.9 standard deviations either way, for 4096 pairs.
            assert 151 <= sum(change >> seen & 1 for change in changes) <= 249


@given(UINT64, st.integers(1, 1 << 32))
def test_a_number_below_a_limit_is_below_it(bits: int, limit: int) -> None:
    assert 0 <= below(bits, limit) < limit
    assert below(0, limit) == 0
    assert below(MASK, limit) == limit - 1


@pytest.mark.parametrize("limit", [2, 7, 10, 100])
def test_numbers_below_a_limit_are_even(limit: int) -> None:
    values = (below(draw(42, step, 0), limit) for step in range(20_000))
    assert chi_square(values, range(limit)) < chi_square_limit(limit)


@given(UINT64, st.integers(0, 1 << 40), st.integers(0, 40), st.integers(0, 60))
def test_choices_are_different_and_as_many_as_there_are(seed: int, step: int, count: int, limit: int) -> None:
    chosen = choose(seed, step, count, limit)
    assert len(chosen) == len(set(chosen)) == min(count, limit)
    assert all(0 <= choice < limit for choice in chosen)


@pytest.mark.parametrize(("count", "limit"), [(1, 6), (2, 6), (3, 6), (5, 6), (3, 9)])
def test_each_set_of_choices_is_equally_likely(count: int, limit: int) -> None:
    cells = list(combinations(range(limit), count))
    sets = (tuple(sorted(choose(99, step, count, limit))) for step in range(200 * len(cells)))
    assert chi_square(sets, cells) < chi_square_limit(len(cells))


@given(UINT64, st.integers(0, 1000))
def test_a_draw_depends_on_its_name_alone(seed: int, step: int) -> None:
    before = choose(seed, step, 8, 50)
    for other in range(5):
        choose(seed, step + other, 3, 20)
    assert choose(seed, step, 8, 50) == before
