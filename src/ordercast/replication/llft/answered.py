"""Which answers of other groups a member has taken, by their primaries.

When a group tells where its views began, this says which of its answers are undone: those that a primary gave
behind the place at which the surviving branch left it.
"""

from __future__ import annotations

from itertools import pairwise

from ordercast.core import Stamp
from ordercast.replication.llft.lineage import Views
from ordercast.replication.llft.names import Party, Precedence

PRIMARIES_MAX = 64
"""The answers of so many primaries of a group are remembered."""
Ranges = dict[Precedence, tuple[int, int]]


class Answered:
    """For each group and each of its primaries: the lowest and the highest place of its answers."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[Party, Ranges] = {}

    def note(self, party: Party, stamp: Stamp) -> None:
        """A group has answered, from this place in its order."""
        known = self.groups.setdefault(party, {})
        lowest, highest = known.get(stamp.issuer, (stamp.clock, stamp.clock))
        known[stamp.issuer] = (min(lowest, stamp.clock), max(highest, stamp.clock))
        if len(known) > PRIMARIES_MAX:
            del known[min(known)]

    def undone(self, party: Party, lineage: Views) -> Stamp | None:
        """The place behind which answers of a group are undone, if any are."""
        known = self.groups.get(party, {})
        ends: dict[Precedence, int] = {}
        for begun, following in pairwise(lineage):
            ends[begun.view.precedence] = following.place - 1
        last, oldest = lineage[-1].view.precedence, lineage[0].view.precedence
        undone: list[Stamp] = []
        for issuer, (lowest, highest) in known.items():
            if issuer == last or issuer < oldest:
                continue
            end = ends.get(issuer)
            if end is None:
                undone.append(Stamp(lowest - 1, issuer))
            elif highest > end:
                undone.append(Stamp(end, issuer))
        return min(undone, key=lambda stamp: stamp.clock, default=None)

    def forget(self, party: Party, place: int) -> None:
        """Forget the answers of a group behind a place."""
        self.groups[party] = {
            issuer: (lowest, min(highest, place))
            for issuer, (lowest, highest) in self.groups.get(party, {}).items()
            if lowest <= place
        }
