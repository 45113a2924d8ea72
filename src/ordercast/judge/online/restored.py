"""States that replicas of a service took from others, instead of executing the operations themselves.

A `checkpoint` row with the label `restored` says up to which place in the order of a group a state goes. Its
node does not deliver, and does not owe, what is ordered up to there.
"""

from ordercast.core import GroupId, NodeId
from ordercast.judge.online.stamp_place import StampPlace, place_of
from ordercast.trace import RESTORED, Event


class Restored:
    """For each node and group, the highest place up to which the node took over a state."""

    def __init__(self) -> None:
        self._places: dict[tuple[NodeId, GroupId], StampPlace] = {}

    def on_checkpoint(self, event: Event) -> None:
        """Take note of a state that a node took over."""
        place = place_of(event)
        if event.label == RESTORED and place is not None:
            for group in event.groups or ():
                key = (event.node, group)
                self._places[key] = max(place, self._places.get(key, place))

    def covers(self, node: NodeId, delivery: Event) -> bool:
        """Whether a state that a node took over stands for a message, of which this is a delivery."""
        place = place_of(delivery)
        if not self._places or place is None:
            return False
        reached = [self._places.get((node, group)) for group in delivery.groups or ()]
        return any(restored is not None and place <= restored for restored in reached)
