"""The logs that the leader of a new view has got, and how they are merged (NOPaxos section 5.4).

Only the logs of the latest view count in which their replicas worked normally. The new log is the longest of
these, without the slots that any of them has given up: a leader that gave a slot up never answered it. Logs
are merged only if their tags are equal, for with another tag there are other messages.
"""

from ordercast.components.network_ordered.catch_up import Target
from ordercast.components.network_ordered.messages import Pledge, Pledges, ViewChange
from ordercast.components.network_ordered.place import Slot
from ordercast.core import NodeId


class Votes:
    """The last vote of each replica in one view."""

    def __init__(self) -> None:
        self._votes: dict[NodeId, ViewChange] = {}

    def clear(self) -> None:
        """Another view."""
        self._votes.clear()

    def add(self, source: NodeId, vote: ViewChange) -> None:
        """A later vote of a replica takes the place of the one before."""
        self._votes[source] = vote

    def discard(self, source: NodeId) -> None:
        """The replica has lost its memory since."""
        self._votes.pop(source, None)

    def with_tag(self, tag: int) -> dict[NodeId, ViewChange]:
        """The votes with this tag."""
        return {source: vote for source, vote in sorted(self._votes.items()) if vote.tag == tag}


def merge(votes: dict[NodeId, ViewChange]) -> Target:
    """The log that a view begins with."""
    normal = max(vote.normal for vote in votes.values())
    latest = {source: vote for source, vote in votes.items() if vote.normal == normal}
    source = max(latest, key=lambda node: latest[node].place.rank)
    base_source = max(latest, key=lambda node: latest[node].base.rank)
    noops: set[Slot] = set().union(*(vote.noops for vote in latest.values()))
    return Target(latest[base_source].base, latest[source].place, frozenset(noops), base_source, source)


def merge_pledges(votes: dict[NodeId, ViewChange]) -> Pledges:
    """What binds the view: all that a replica promised in the latest normal view of any.

    What counts of earlier views was taken over by that one. What a majority promised, one of these votes has.
    """
    normal = max(vote.normal for vote in votes.values())
    merged: dict[tuple[int, int, int], Pledge] = {}
    for vote in votes.values():
        for pledge in vote.pledges if vote.normal == normal else ():
            mark = pledge.sequencer, pledge.group, pledge.number
            if mark not in merged or pledge.is_final:
                merged[mark] = pledge
    return tuple(pledge for _, pledge in sorted(merged.items()))
