"""The first node of a path: takes messages from publishers, each publisher's in its order and once."""

from collections.abc import Mapping

from ordercast.core import GroupId, NodeId
from ordercast.protocols.atoms.messages import Publish
from ordercast.protocols.atoms.records import Serial

EARLY_MAX = 1024
"""Messages of one publisher that are held because an earlier one has not come."""


class Ingress:
    """What is expected from each publisher of one group in one epoch."""

    __slots__ = ("_early", "_expected", "group", "placed", "position")

    def __init__(self, group: GroupId, position: int, serials: Mapping[NodeId, Serial]) -> None:
        self.group = group
        self.position = position
        """The position of the next message."""
        self.placed = dict(serials)
        """What was expected when the epoch began: all before has its place."""
        self._expected = dict(serials)
        self._early: dict[NodeId, dict[int, Publish]] = {}

    def take(self, source: NodeId, message: Publish) -> bool:
        """Take a message of a publisher, or hold it; False if it was taken before."""
        life, number = self._expected.get(source, (-1, 0))
        if message.life < life:
            return True
        if message.life > life or message.floor > number:
            number = message.floor
            self._expected[source] = (message.life, number)
            self._early[source] = {
                one: early
                for one, early in self._early.get(source, {}).items()
                if one >= number and early.life == message.life
            }
        if message.number < number:
            return False
        early = self._early.setdefault(source, {})
        if len(early) < EARLY_MAX or message.number == number:
            early[message.number] = message
        return True

    def ready(self, source: NodeId) -> Publish | None:
        """The next message of a publisher, if it is there; it is then taken."""
        life, number = self._expected.get(source, (-1, 0))
        message = self._early.get(source, {}).pop(number, None)
        if message is not None:
            self._expected[source] = (life, number + 1)
        return message
