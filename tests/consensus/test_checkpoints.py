"""A large snapshot is made rarely, at the same slots by all replicas, and before the log is full."""

from itertools import pairwise

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import checkpoint_pace
from tests.consensus.harness import LogWorld
from tests.consensus.test_transfer import work

OPTIONS = ConsensusOptions(window=8, log_limit=160, checkpoint=5)


def snapshots(world: LogWorld, index: int, count: int) -> list[int]:
    """The slots of the snapshots that a replica makes while so many values are decided."""
    found: list[int] = []
    for _ in range(count):
        work(world, 1)
        world.run_ms(3)
        stable = world.replica(index)._journal.stable
        if not found or found[-1] != stable:
            found.append(stable)
    return found


def test_a_small_snapshot_is_made_as_often_as_it_may_be() -> None:
    assert snapshots(LogWorld(3, 0, OPTIONS), 0, 22) == [0, 5, 10, 15, 20]


def test_a_large_snapshot_is_made_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_pace, "SMALL_BYTES", 0)
    monkeypatch.setattr(checkpoint_pace, "SHARE", 1)
    world = LogWorld(3, 0, OPTIONS, transfers=True)
    made = snapshots(world, 0, 300)
    steps = [later - one for one, later in pairwise(made)]
    assert min(steps) >= 5 and max(steps) == 20, "an eighth of the log"
    assert steps[-1] == 20
    world.crash(2)
    work(world, 150)
    world.restart(2)
    work(world, 50)
    world.run_ms(200)
    assert len({world.replica(index)._journal.stable for index in range(3)}) == 1
    assert world.node(2).applied == world.node(0).applied
