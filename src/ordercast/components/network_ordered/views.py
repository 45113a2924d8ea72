"""The view change (NOPaxos section 5.4), also for replicas that come back without memory.

A replica that misses its leader, or leads and hears nobody, or hears of a higher view, stops, and sends its
log to the leader of that view, which merges f+1 logs (`votes.py`) and begins the view with the result.

A replica without memory has no vote: it may have answered a client in the last view, together with the
leader. Any f+1 of the others know what was answered. So it returns with a view change without its vote, and
only with a view whose logs were merged when its new life was known.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ordercast.components.network_ordered.catch_up import Target
from ordercast.components.network_ordered.messages import (
    Return,
    StartView,
    StartViewReply,
    ViewChange,
    ViewChangeRequest,
)
from ordercast.components.network_ordered.votes import Votes, merge
from ordercast.core import NodeId, RemoteError

if TYPE_CHECKING:
    from ordercast.components.network_ordered.replica import NetworkReplica

VIEW, SILENCE, RETURN = "view", "silence", "return"
"""Timers of the replica: to repeat its part in a view change, to watch the leader, to ask to return."""
ATTEMPTS_MAX = 4
BACKOFF_MAX = 3


class Status(Enum):
    """What a replica does."""

    NORMAL = "normal"
    CHANGING = "view change"
    RETURNING = "return without memory"


NORMAL, CHANGING, RETURNING = Status


class Views:
    """The view of one replica, and its part in view changes."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica
        self.status = NORMAL
        self.view = 0
        self.normal = 0
        """The last view in which this replica worked normally."""
        self.life = 0
        self._votes = Votes()
        self._attempts = 0
        self._failed = 0
        """How many views in a row did not begin."""
        self._merging = False
        self._lives: dict[NodeId, int] = {}
        """By replica: the last life of which this one knows that it began without memory."""
        self._returns: tuple[tuple[NodeId, int], ...] = ()
        """Those that come back with this view."""
        self._acks: set[NodeId] = set()
        """Who has the log of the view that this replica leads."""
        self._heard = set(replica.others)
        """Of whom something came since this replica looked last."""

    # The leader

    def watch(self) -> None:
        """Replace a leader that has said nothing since this was asked last, or that hears nobody."""
        replica = self._replica
        replica.env.set_timer(SILENCE, replica.options.silence_ns)
        if replica.is_normal:
            if self._is_cut_off():
                self.change(self.view + 1)
                replica.env.multicast(replica.others, ViewChangeRequest(self.view))
            self._heard.clear()

    def _is_cut_off(self) -> bool:
        """Whether this view cannot go on. Others still hear a deaf leader, so it must notice by itself."""
        if self._replica.leads:
            return len(self._heard) < self._replica.support
        return self._replica.leader not in self._heard

    def hear(self, source: NodeId) -> None:
        """Another replica is alive."""
        self._heard.add(source)

    def has_view(self, node: NodeId) -> bool:
        """Whether a replica has the log of the view that this one leads."""
        return self.view == 0 or node in self._acks

    # A view ends

    def change(self, view: int) -> None:
        """Leave the present view for a higher one."""
        if self.status is not RETURNING and view > self.view:
            self.view = view
            self.enter_change()

    def enter_change(self) -> None:
        """Stop, and vote."""
        replica = self._replica
        self.status = CHANGING
        self._votes.clear()
        self._acks.clear()
        self._merging = False
        self._attempts = 0
        replica.stop()
        self.save()
        self.vote()
        self._arm()

    def save(self) -> None:
        """Keep the view, if the replica is durable."""
        self._replica.store.save_view(self.view, self.normal)

    def vote(self) -> None:
        """Send the own log to the leader of the new view."""
        replica, log = self._replica, self._replica.log
        noops = tuple(sorted(log.noops))
        vote = ViewChange(self.view, replica.tag, self.normal, log.base, log.end, noops)
        if replica.leads:
            self._votes.add(replica.env.me, vote)
            self._try_to_merge()
        else:
            replica.env.send(replica.leader, vote)

    def vote_anew(self) -> None:
        """The tag has changed."""
        self._merging = False
        self.vote()

    def on_timer(self) -> None:
        """Repeat, or try the next leader."""
        replica = self._replica
        if self.status is not CHANGING:
            return
        # Who hears nobody is cut off: with ever higher views it would stop others that can do without it.
        self._attempts += bool(self._heard)
        self._heard.clear()
        if self._attempts >= ATTEMPTS_MAX << min(self._failed, BACKOFF_MAX):
            self._failed += 1
            self.change(self.view + 1)
        else:
            self._arm()
            self.vote()
        replica.env.multicast(replica.others, ViewChangeRequest(self.view))

    def _arm(self) -> None:
        self._replica.env.set_timer(VIEW, self._replica.options.view_ns)

    # A view begins

    def on_vote(self, source: NodeId, vote: ViewChange) -> None:
        """A log has come; if the view has begun, its sender has missed that."""
        replica = self._replica
        if replica.leads and replica.is_normal:
            self.tell(source)
        elif replica.leads:
            self._votes.add(source, vote)
            self._try_to_merge()

    def _try_to_merge(self) -> None:
        """Begin the view, if there are enough logs."""
        replica = self._replica
        votes = self._votes.with_tag(replica.tag)
        if not self._merging and len(votes) > replica.support and replica.env.me in votes:
            self._merging = True
            self._returns = tuple(sorted(self._lives.items()))
            replica.catch_up.begin(merge(votes), self._lead)

    def _lead(self) -> None:
        self._begin()
        self._replica.execute_all()
        self._replica.answers.reply_anew()
        for node in self._replica.others:
            self.tell(node)

    def _begin(self) -> None:
        self.status = NORMAL
        self.normal = self.view
        self._failed = 0
        self._merging = False
        self._heard = set(self._replica.others)
        self._votes.clear()
        self.save()
        self._replica.ordering.holds = False

    def tell(self, to: NodeId) -> None:
        """As the leader, tell a replica the log of this view."""
        replica, log = self._replica, self._replica.log
        if replica.leads and replica.is_normal:
            noops = tuple(sorted(log.noops))
            start = StartView(
                self.view, replica.tag, log.base, log.end, noops, self._returns, replica.ordering.describe()
            )
            replica.env.send(to, start)

    def on_start_view(self, source: NodeId, message: StartView) -> None:
        """Begin a view with the log of its leader."""
        replica = self._replica
        if source != replica.leader_of(message.view):
            raise RemoteError(f"node {source} starts view {message.view}, which it does not lead")
        self.change(message.view)
        self._returns = message.returns
        if replica.is_normal:
            replica.env.send(source, StartViewReply(self.view, replica.tag))
        elif replica.catch_up.target is None:
            target = Target(message.base, message.place, frozenset(message.noops), source, source)
            replica.catch_up.begin(target, self._follow)

    def _follow(self) -> None:
        replica, returned = self._replica, self.status is RETURNING
        self._begin()
        if returned:
            replica.save_ordering()
            replica.ordering.come_back()
        replica.env.send(replica.leader, StartViewReply(self.view, replica.tag))
        replica.answers.reply_anew()

    def on_reply(self, source: NodeId) -> None:
        """A replica has the log of the view."""
        self._acks.add(source)

    # Return without memory

    def on_return(self, source: NodeId, message: Return) -> None:
        """A replica has lost its memory: a view must begin whose logs are merged without its vote."""
        known = self._lives.get(source, -1)
        if message.life < known:
            return
        if message.life > known:
            self._lives[source] = message.life
            self._votes.discard(source)
        self._replica.supply.hold_base()
        if self._replica.is_normal:
            if (source, message.life) in self._returns:
                self.tell(source)
            else:
                self.change(self.view + 1)

    def ask_to_return(self) -> None:
        """Ask for a view that takes in this life."""
        replica = self._replica
        if self.status is RETURNING:
            replica.env.multicast(replica.others, Return(self.life))
            replica.env.set_timer(RETURN, replica.options.view_ns)

    def on_start_view_returning(self, source: NodeId, message: StartView) -> None:
        """Begin only with a view that takes in this life."""
        replica = self._replica
        admitted = (replica.env.me, self.life) in message.returns
        fits = message.view > self.view or replica.catch_up.target is None
        if admitted and fits and replica.ordering.begin_at(message.setting):
            replica.catch_up.stop()
            self.view = message.view
            replica.syncs.muted = message.place.rank
            self.on_start_view(source, message)
