"""Ballots that leave none above them: a replica that took one could never have another leader."""

import pytest

from ordercast.components.consensus.limits import BALLOTS_AHEAD_MAX
from ordercast.components.consensus.messages import Accept, Commit, Prepare, Reject
from ordercast.core import Message, RemoteError
from tests.consensus.harness import LogWorld

HIGHEST = (1 << 63) - 1
OWNER = HIGHEST % 3
"""The replica that owns the highest ballot of all."""


@pytest.mark.parametrize(
    "message",
    [Prepare(HIGHEST, 0, 0), Accept(HIGHEST, 0, b"x", 0), Commit(HIGHEST, 0, 0), Reject(HIGHEST)],
    ids=lambda message: type(message).__name__,
)
def test_the_highest_ballot_of_all_is_refused_and_elections_go_on(message: Message) -> None:
    world = LogWorld()
    world.run_ms(5)
    for index in range(3):
        if index != OWNER:
            with pytest.raises(RemoteError, match=f"from node {OWNER}"):
                world.replica(index).on_message(OWNER, message)
            assert world.replica(index).ballot == 0
    world.crash(0)
    world.run_ms(200)
    assert world.leader() in (1, 2)
    assert world.propose(b"after")
    world.run_ms(10)
    assert world.values(1) == world.values(2) == [b"after"]


def test_a_ballot_within_reach_is_taken() -> None:
    world = LogWorld()
    world.run_ms(5)
    ballot = BALLOTS_AHEAD_MAX - BALLOTS_AHEAD_MAX % 3 + 1 - 3
    world.replica(2).on_message(1, Prepare(ballot, 0, 0))
    assert world.replica(2).ballot == ballot


def test_ballots_of_nodes_that_are_no_replicas_are_refused() -> None:
    world = LogWorld()
    with pytest.raises(RemoteError, match="node 9 sent a message of a log of which it is no replica"):
        world.replica(0).on_message(9, Prepare(HIGHEST, 0, 0))
    assert world.replica(0).ballot == 0
    assert world.replica(0).is_leader
