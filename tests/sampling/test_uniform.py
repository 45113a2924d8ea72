"""Uniform sampling: every other peer of a list, equally likely."""

from collections import Counter

import pytest

from ordercast.components.sampling import Uniform
from ordercast.components.sampling.messages import ShuffleRequest
from ordercast.testing import RecordingEnv
from tests.sampling.test_draws import chi_square, chi_square_limit

PEERS = (3, 5, 8, 9, 12, 40)


@pytest.mark.parametrize("me", PEERS)
def test_every_peer_but_oneself_is_equally_likely(me: int) -> None:
    sampler = Uniform(RecordingEnv(me), 7, PEERS)
    others = [peer for peer in PEERS if peer != me]
    targets = [target for step in range(4000) for target in sampler.sample(step, 2)]
    assert chi_square(targets, others) < chi_square_limit(len(others))
    assert sampler.known() == others


def test_somebody_who_is_not_in_the_list_chooses_from_all_of_it() -> None:
    sampler = Uniform(RecordingEnv(99), 7, PEERS)
    assert list(sampler.known()) == list(PEERS)
    assert sorted(sampler.sample(0, 100)) == list(PEERS)


def test_peers_are_different_and_as_many_as_there_are() -> None:
    sampler = Uniform(RecordingEnv(3), 7, PEERS)
    for step in range(200):
        assert len(set(sampler.sample(step, 4))) == 4
    assert sorted(sampler.sample(0, 5)) == sorted(sampler.sample(0, 50)) == [5, 8, 9, 12, 40]
    assert Uniform(RecordingEnv(3), 7, (3,)).sample(0, 5) == []


def test_the_same_round_has_the_same_answer_and_rounds_differ() -> None:
    sampler = Uniform(RecordingEnv(0), 7, range(1000))
    twin = Uniform(RecordingEnv(0), 7, range(1000))
    assert sampler.sample(3, 10) == sampler.sample(3, 10) == twin.sample(3, 10)
    assert sampler.sample(3, 10) != sampler.sample(4, 10)
    assert sampler.sample(3, 10) != Uniform(RecordingEnv(0), 8, range(1000)).sample(3, 10)


def test_two_nodes_rarely_choose_alike() -> None:
    targets = Counter(
        target for node in range(200) for target in Uniform(RecordingEnv(node), node, range(200)).sample(0, 5)
    )
    assert max(targets.values()) < 16  # 5 on average


def test_it_sends_nothing_and_wants_nothing() -> None:
    env = RecordingEnv(3)
    sampler = Uniform(env, 7, PEERS)
    sampler.on_start({})
    sampler.on_message(5, ShuffleRequest(0, ()))
    sampler.on_timer("shuffle")
    assert not env.sent
    assert not env.timers
