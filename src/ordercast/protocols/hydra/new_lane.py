"""Lanes as they begin: where all receivers agree on it, or without what an earlier life knew."""

from collections.abc import Sequence

from ordercast.core import NodeId
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import BLIND


def blind(sequencer: int, node: NodeId, groups: int) -> Lane:
    """A lane of which this receiver has lost what an earlier life knew."""
    return Lane(sequencer, node, groups, state=BLIND)


def started(sequencer: int, node: NodeId, clock: int, numbers: Sequence[int], group: int) -> Lane:
    """A lane whose start is agreed."""
    lane = Lane(sequencer, node, len(numbers))
    lane.start(clock, numbers, group)
    return lane
