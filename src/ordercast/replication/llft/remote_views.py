"""The primary views of remote groups, as one member knows them.

A group with a new primary first asks what is known of the old one; from then on the old one is fenced off.
When the view has begun, the group says where: only then does a primary listen to the new one, for where a
view begins says what of the last one is undone.
"""

from __future__ import annotations

from ordercast.replication.llft.names import Party, ViewId

FIRST_VIEW = ViewId(0, 0)


class RemoteViews:
    """The last view of each remote group that was heard of, and the last that has certainly begun."""

    __slots__ = ("begun", "last", "unsure")

    def __init__(self) -> None:
        self.last: dict[Party, ViewId] = {}
        self.begun: dict[Party, ViewId] = {}
        self.unsure: set[Party] = set()
        """Groups whose views this member has followed without being told where they began. It names a lower
        view to them, so that they tell it."""

    def named(self, party: Party) -> ViewId | None:
        """The view that this member names when it acknowledges: that in which it takes part; a lower one,
        if it knows that another has come, but not where it began; None at the first contact."""
        begun = self.begun.get(party)
        if party in self.unsure:
            return FIRST_VIEW
        return FIRST_VIEW if begun is None and party in self.last else begun

    def heeds(self, party: Party, view: ViewId, *, speaks: bool) -> bool:
        """Whether this member listens to the primary of a view. One that speaks for its own group must
        have been asked and told before; any other follows the highest view."""
        known = self.last.get(party)
        if known is not None and view < known:
            return False
        if known is not None and speaks:
            return view == self.begun.get(party)
        self.last[party] = self.begun[party] = view
        return True

    def overtaken(self, party: Party, view: ViewId) -> bool:
        """Whether a higher view is known."""
        return view < self.last.get(party, view)

    def fence(self, party: Party, view: ViewId) -> None:
        """The primary of a view asks: the one before it is fenced off."""
        self.last[party] = view

    def begin(self, party: Party, view: ViewId) -> bool:
        """A view has begun; whether that is news."""
        news = self.begun.get(party) != view or party in self.unsure
        self.unsure.discard(party)
        self.begun[party] = view
        return news

    def install(self, views: dict[Party, ViewId]) -> None:
        """Take over what another member knew."""
        for party, view in views.items():
            self.last[party] = max(view, self.last.get(party, view))
            self.begun[party] = max(view, self.begun.get(party, view))
