"""What the application of a replica is told, in the order of the places: of each place when it is settled.

With `require_majority` it may take a newcomer to settle what is in the state that it gets. So the state says
what is not settled (`Pending`), and the newcomer tells its own application of that when it is, as any backup
does. Otherwise, if the others crash first, no application is ever told of what was done and answered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ordercast.core import (
    Checkpoint,
    Delivered,
    Env,
    GroupId,
    Joined,
    NodeId,
    Payload,
    RemoteError,
    Stamp,
    Undone,
    View,
)
from ordercast.core.bundle import bundle_span
from ordercast.core.delivery import ANEW
from ordercast.replication.llft.lineage import Begun, Views, begin, extended, part
from ordercast.replication.llft.messages import MEMBERS_MAX
from ordercast.replication.llft.names import Link, Natural, Precedence, ViewId
from ordercast.replication.llft.seats import Seats
from ordercast.replication.llft.setting import Setting

WAITING_MAX = 1 << 20
"""So many places of a state may wait to be told."""

Nodes: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(max_length=MEMBERS_MAX)]


class News(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Something of which the application is told when its place is settled."""

    place: Natural


class CallNews(News, frozen=True, tag=1):
    """A call was performed."""

    client: Natural
    bundle: Payload


class ViewNews(News, frozen=True, tag=2):
    """A view began with these members."""

    members: Nodes


class SeatNews(News, frozen=True, tag=3):
    """This replica took its seat, in a view with these members."""

    members: Nodes


class StateNews(News, frozen=True, tag=4):
    """The state had this size and this digest."""

    size: Natural
    digest: Natural


class Pending(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What belongs to the last places of a state, which are not settled as far as its donor knows."""

    settled: Natural
    """Everything up to this place is settled, and the donor has told it."""
    members: Nodes
    """The members of the view to which this place belongs."""
    news: Annotated[tuple[CallNews | ViewNews, ...], msgspec.Meta(max_length=WAITING_MAX)]
    outbox: Annotated[tuple[tuple[Natural, Link, Natural], ...], msgspec.Meta(max_length=WAITING_MAX)]
    """Messages that wait for their places: the place, the connection, and the index."""

    def check(self, place: int, views: Iterable[Begun], produced: Mapping[Link, int]) -> None:
        """Refuse what does not belong to a state of this place, after these views, with so many messages."""
        begun = {view.place for view in views}
        last = self.settled
        for news in self.news:
            if not last < news.place <= place or (isinstance(news, ViewNews) and news.place not in begun):
                raise RemoteError(f"a state of place {place} has news of place {news.place} after {last}")
            last = news.place
            if isinstance(news, CallNews):
                bundle_span(news.bundle)
        last = self.settled + 1
        for at, link, index in self.outbox:
            if not last <= at <= place or index > produced.get(link, index):
                raise RemoteError(
                    f"a state of place {place} has message {index} of {link} wait for place {at}"
                )
            last = at


class Waiting(NamedTuple):
    """News that are not settled."""

    news: News
    mine: bool
    """The application of this replica is told."""
    came: bool = False
    """They came with a state."""


class Notices:
    """The notices for one application."""

    def __init__(self, env: Env, setting: Setting, group: GroupId, first: Precedence, seats: Seats) -> None:
        self._env = env
        self._nodes = setting.nodes
        self._group = group
        self._seats = seats
        self._keeps = setting.options.require_majority
        """What it has told stays settled for good."""
        self.lineage: Views = begin(first)
        self.settled = 0
        """The application was told of everything up to this place."""
        self.confirmed = 0
        """The primary has said that all is settled up to this place. A state does not say that of its own."""
        self.doubtful = False
        """An earlier life was there, and nobody knows how much of earlier views it has told."""
        self.waiting: deque[Waiting] = deque()
        self._members = setting.founders(group)
        """The members of the present view, when it began or when this replica came into it."""
        self._settled_in: tuple[NodeId, ...] = self._members
        """The members of the view of the last place that is settled."""

    # The names of places and views

    def stamp(self, place: int) -> Stamp:
        """What a place is called outside."""
        return Stamp(place, self._view_at(place).precedence)

    def _index_at(self, place: int) -> int:
        return max(0, bisect_right(self.lineage, place, key=lambda begun: begun.place) - 1)

    def _view_at(self, place: int) -> ViewId:
        """The view to which a place belongs."""
        return self.lineage[self._index_at(place)].view

    def _view(self, place: int, members: Iterable[NodeId], note: str = "") -> View:
        """The notice of the view to which a place belongs."""
        index = self._index_at(place)
        view, begun = self.lineage[index]
        before = self.lineage[max(0, index - 1)].view
        stamp = Stamp(max(0, begun - 1), view.precedence, (before.number, before.precedence))
        return View(self._group, view.number, tuple(sorted(members)), note, stamp=stamp)

    # What happens

    def tell(self, news: News) -> None:
        """Tell the application when the place is settled, if it is in the group."""
        self.waiting.append(Waiting(news, mine=not self._seats.silent))

    def begin_view(self, place: int, view: ViewId, members: tuple[Precedence, ...]) -> None:
        """A view begins, with these members."""
        self.lineage = extended(self.lineage, view, place)
        self._members = self._nodes_of(members)
        self.tell(ViewNews(place, self._members))

    def come_in(self, place: int) -> None:
        """The application of this replica comes into the group."""
        self.tell(SeatNews(place, self._members))

    def _nodes_of(self, members: tuple[Precedence, ...]) -> tuple[NodeId, ...]:
        return tuple(sorted(member % self._nodes for member in members))

    def settle(self, place: int) -> None:
        """Everything up to a place is settled."""
        while self.waiting and self.waiting[0].news.place <= place:
            waiting = self.waiting.popleft()
            if isinstance(waiting.news, ViewNews):
                self._settled_in = waiting.news.members
            if waiting.mine:
                self._deliver(waiting)
        self.confirmed = max(self.confirmed, place)
        self.settled = max(self.settled, self.confirmed)

    def _deliver(self, waiting: Waiting) -> None:
        news, deliver = waiting.news, self._env.deliver
        place = news.place
        match news:
            case CallNews():
                number = self._view_at(place).number
                stamp = self.stamp(place)
                deliver(Delivered(news.bundle, (self._group,), news.client, stamp, config=number))
            case ViewNews() if waiting.came and self._env.me not in news.members:
                deliver(self._view(place, (*news.members, self._env.me), ANEW))
            case ViewNews():
                deliver(self._view(place, news.members))
            case SeatNews():
                self._seats.told = True
                self._env.save("started", b"1")
                deliver(Joined(self._group, stamp=self.stamp(place)))
                deliver(self._view(place, news.members, ANEW))
            case StateNews():
                deliver(Checkpoint(self._group, self.stamp(place), news.size, news.digest))

    # States

    def undo(self, lineage: Views) -> None:
        """Say what of this replica's work does not survive, where it meets another lineage. If that is its
        seat too, its application is to be told again when it joins."""
        meeting = part(self.lineage, lineage)
        if meeting is None or self._keeps or meeting.place >= self.settled:
            return
        view = lineage[-1].view
        place = Stamp(meeting.place, meeting.view.precedence, (view.number, view.precedence))
        self._env.deliver(Undone(self._group, place))
        if (self._seats.mine or 0) > meeting.place:
            self._seats.told = False

    def pending(self, place: int, outbox: Iterable[tuple[int, Link, int]]) -> Pending | None:
        """What a state of this place must say, if not all of it is settled and may not be waited for."""
        if not self._keeps or self.settled >= place:
            return None
        news = (waiting.news for waiting in self.waiting)
        carried = tuple(one for one in news if isinstance(one, CallNews | ViewNews))
        return Pending(self.settled, self._settled_in, carried, tuple(outbox))

    def restore(
        self,
        place: int,
        lineage: Views,
        members: tuple[Precedence, ...],
        pending: Pending | None,
        digest: tuple[int, int],
    ) -> None:
        """Go on from a state in a view with these members: the application is told where it begins anew, and
        later of what is pending behind that."""
        told, self.settled = self.settled, place
        self.lineage, self._members = lineage, self._nodes_of(members)
        self._settled_in = self._members
        self.confirmed = 0
        self.waiting.clear()
        begins, present = place, self._members
        if pending is not None and self._keeps:
            self.settled = min(place, max(pending.settled, told))
            begins, present = self._wait_for(pending, place)
        if not self._seats.told:
            return
        if begins:
            size, check = digest if begins == place else (None, None)
            self._env.deliver(Checkpoint(self._group, self.stamp(begins), size, check, restored=True))
        self._env.deliver(self._view(begins, present, ANEW))
        if begins < place:
            self.waiting.append(Waiting(StateNews(place, *digest), mine=True))

    def _wait_for(self, pending: Pending, place: int) -> tuple[int, tuple[NodeId, ...]]:
        """Keep the news of a state. The place from which this application is told of them, and the members of
        its view there, with this one."""
        begins = place if self._seats.silent else min(place, max(self.settled, self._first()))
        members = self._settled_in = pending.members
        for news in pending.news:
            if news.place > self.settled:
                self.waiting.append(Waiting(news, mine=news.place > begins, came=True))
            if isinstance(news, ViewNews) and news.place <= begins:
                members = news.members
                if news.place <= self.settled:
                    self._settled_in = members
        if self._index_at(begins) == len(self.lineage) - 1:
            return begins, self._members
        return begins, tuple(sorted({*members, self._env.me}))

    def _first(self) -> int:
        """The last place that this application need not hear of, or may have heard of in an earlier life: of
        the present view, no earlier life has told more than the primary."""
        earlier = self.lineage[-1].place - 1 if self.doubtful else 0
        return max(earlier, self._seats.mine or 0)
