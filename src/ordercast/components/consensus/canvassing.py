"""Before an election: whether a majority would vote, asked without a ballot being taken.

A replica that hears nobody wants to stand, and it may be the one that is cut off. Others support it only if
they too have heard of no leader for a while. So a replica that is deaf, or comes back after it was cut off,
does not depose a leader that the others hear; and no ballot goes up in vain.
"""

from ordercast.components.consensus.log import Log
from ordercast.components.consensus.messages import Canvass
from ordercast.core import NodeId, Wait


class Canvassing:
    """Which replicas would vote for this one."""

    __slots__ = ("_lacking", "_log", "_since", "ballot")

    def __init__(self, log: Log, ballot: int) -> None:
        self.ballot = ballot
        """Its name: the ballot that this replica would take as far as it knows now."""
        self._log = log
        self._since = log.env.now
        self._lacking = list(log.group.others)

    def solicit(self) -> None:
        """Ask those who have not answered yet."""
        self._log.env.multicast(self._lacking, Canvass(self.ballot, self._log.committed))

    def on_support(self, source: NodeId) -> None:
        """A replica would vote for this one."""
        if source in self._lacking:
            self._lacking.remove(source)

    def won(self) -> bool:
        """Whether a majority would vote for this replica."""
        group = self._log.group
        return len(group.peers) - len(self._lacking) >= group.majority

    def waits(self) -> list[Wait]:
        """Whose support is missing."""
        asked = tuple(self._lacking)
        blocker = f"nodes {', '.join(map(str, asked))} to say that they hear no leader either"
        return [Wait("the election of a leader", blocker, self._since, on=asked)]
