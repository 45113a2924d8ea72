"""The lineage of a member: the primary views behind it, and where each began.

When two lineages meet, their common beginning says up to which place both did the same. What the one that
does not survive did after that place is undone (section II.B: side branches are pruned).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ordercast.replication.llft.names import Natural, ViewId

LINEAGE_MAX = 1024
"""So many views are remembered; what is older counts as common."""


class Begun(NamedTuple):
    """A primary view, and the place at which it began."""

    view: ViewId
    place: Natural


Views: TypeAlias = Annotated[tuple[Begun, ...], msgspec.Meta(min_length=1, max_length=LINEAGE_MAX)]


class Meeting(NamedTuple):
    """Where two lineages part."""

    place: int
    """The last common place."""
    view: ViewId
    """The last common view."""


def begin(precedence: int) -> Views:
    """The lineage at the very beginning: view 0 of the first member."""
    return (Begun(ViewId(precedence, 0), 0),)


def extended(views: Views, view: ViewId, place: int) -> Views:
    """A lineage with one view more."""
    return (*views, Begun(view, place))[-LINEAGE_MAX:]


def part(mine: Views, theirs: Views) -> Meeting | None:
    """Where `mine` leaves `theirs`; None if it is a beginning of it, so that nothing ends at a place.

    If `theirs` only goes on where `mine` ends, then `mine` ends at the beginning of the next view.
    """
    known = {begun.view: index for index, begun in enumerate(theirs)}
    for index in range(len(mine) - 1, -1, -1):
        view, place = mine[index]
        found = known.get(view)
        if found is None:
            continue
        following = theirs[found + 1].place if found + 1 < len(theirs) else None
        leaving = mine[index + 1].place if index + 1 < len(mine) else None
        ends = [end - 1 for end in (following, leaving) if end is not None]
        return None if not ends else Meeting(max(place, min(ends)), view)
    oldest = theirs[0]
    return Meeting(max(0, min(oldest.place, mine[0].place)), oldest.view)
