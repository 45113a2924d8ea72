"""The first message behind a gap is found without a look at every sequencer."""

from random import Random

import pytest

from ordercast.protocols.hydra.lane_life import ENDING
from ordercast.protocols.hydra.merge import END, Merge, Position
from ordercast.protocols.hydra.messages import Groupcast
from ordercast.protocols.hydra.new_lane import started

GROUP = 0


def merge_of(sequencers: int) -> Merge:
    """A merge of so many lanes."""
    merge = Merge(GROUP, 10_000)
    for sequencer in range(1, sequencers + 1):
        merge.add(started(sequencer, 100 + sequencer, 0, (0,), GROUP))
    return merge


def offer(merge: Merge, sequencer: int, number: int) -> None:
    """A message comes; clocks of sequencers are apart."""
    packet = Groupcast(sequencer, 10 * number + sequencer, (GROUP,), (number,), 0, b"")
    merge.offer(merge.lanes[sequencer], packet, number)


def first_of_all(merge: Merge) -> Position:
    """What `first_early` says, by looking everywhere."""
    lanes = merge.lanes.items()
    return min(((p.clock, key) for key, lane in lanes for p in lane.early.values()), default=END)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_message_behind_a_gap_is_the_first_of_all_lanes(seed: int) -> None:
    rng, merge = Random(seed), merge_of(4)
    found = set()
    for step in range(800):
        sequencer = rng.choice(sorted(merge.lanes))
        lane = merge.lanes[sequencer]
        action = rng.random()
        if action < 0.75:
            offer(merge, sequencer, max(1, lane.front + rng.randint(0, 6)))
        elif action < 0.85 and lane.has_gap and not lane.queue:
            merge.skip(lane, lane.high)
        elif action < 0.87 and lane.state is not ENDING:
            merge.finish(lane, (lane.high - rng.randint(0, 2),))
        elif action < 0.9:
            merge.discard(sequencer)
            merge.add(started(10 + step, 100, 0, (0,), GROUP))
        while rng.random() < 0.9 and merge.take() is not None:
            pass
        if rng.random() < 0.7:
            assert merge.first_early() == first_of_all(merge)
            found.add(merge.first_early())
    assert len(found) > 20


class Counted(dict[int, Groupcast]):
    """Counts how often anybody asks whether it is empty."""

    looks = 0

    def __len__(self) -> int:
        Counted.looks += 1
        return super().__len__()


def test_gaps_everywhere_cost_no_look_at_every_sequencer() -> None:
    merge = merge_of(64)
    for sequencer, lane in merge.lanes.items():
        lane.early = Counted()
        offer(merge, sequencer, 2)
    Counted.looks = 0
    for _ in range(100):
        assert merge.first_early() == (21, 1)
    assert Counted.looks <= 100
