"""Slots and ballots that no correct replica can know: refused, and nothing has changed."""

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.consensus.limits import BALLOTS_AHEAD_MAX
from ordercast.components.consensus.messages import (
    Accept,
    Canvass,
    Commit,
    Fetch,
    Heard,
    Learn,
    Prepare,
    Promise,
    Support,
)
from ordercast.core import Message, RemoteError
from tests.consensus.harness import LogWorld

OPTIONS = ConsensusOptions(window=8, log_limit=50, checkpoint=10)
DONE = 25
END = 20 + 50
"""The snapshot covers 20 slots, and no log keeps more than 50."""

BAD = [
    Accept(0, END, b"far", 0),
    Accept(0, DONE, b"next", END + 1),
    Accept(0, 2**63 - 1, b"far", 0),
    Commit(0, END + 1, 0),
    Commit(0, DONE, 21),
    Prepare(3, END + 1, 0),
    Prepare(3, 0, END + 1),
    Promise(1, 0, ((END, 0, b"far"),), 0),
    Promise(1, 0, ((DONE, 2, b"later ballot"),), 0),
    Promise(1, 0, (), END + 1),
    Canvass(3, END + 1),
    Support(3, BALLOTS_AHEAD_MAX + 1),
    Fetch(END + 1),
    Learn(END, (b"far",), 0),
    Learn(0, (b"x",) * (END + 1), 0),
    Learn(0, (), END + 1),
    Learn(DONE, (b"not committed",), DONE),
    Heard(0, END + 1),
]


def worked() -> LogWorld:
    world = LogWorld(options=OPTIONS)
    for number in range(DONE):
        assert world.propose(b"%d" % number)
        world.run_ms(2)
    world.run_ms(20)
    return world


@pytest.mark.parametrize("message", BAD, ids=repr)
def test_a_claim_beyond_what_can_be_is_refused_and_changes_nothing(message: Message) -> None:
    world = worked()
    for index in (1, 2):
        before = dict(world.envs[index].saved)
        with pytest.raises(RemoteError, match=r"node 0"):
            world.replica(index).on_message(0, message)
        assert world.envs[index].saved == before
    assert world.propose(b"after")
    world.run_ms(5)
    assert [world.values(i)[-1] for i in range(3)] == [b"after"] * 3
    assert (world.leader(), world.replica(0).ballot) == (0, 0), "no election"


def test_the_farthest_claims_that_can_be_true_are_taken() -> None:
    world = worked()
    replica = world.replica(2)
    for message in (Accept(0, END - 1, b"far", 0), Commit(0, DONE, 20), Fetch(END), Heard(0, END)):
        replica.on_message(0, message)
    assert replica._journal.entries[END - 1] == (0, b"far")


def test_a_replica_that_was_away_for_a_whole_log_is_told_of_slots_at_the_limit() -> None:
    world = LogWorld(options=OPTIONS)
    world.crash(2)
    accepted = 0
    for _ in range(200):
        accepted += world.propose(b"%d" % accepted)
        world.run_ms(1)
    assert accepted == OPTIONS.log_limit
    world.restart(2)
    world.run_ms(200)
    assert world.values(2) == world.values(0)
