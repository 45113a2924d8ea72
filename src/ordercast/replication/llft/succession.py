"""The election of a new primary (section IV.B, first phase; Figure 9, lines 1 to 27).

A backup that hears nothing of its primary appoints itself, with all members of higher precedence; each of
them must accept, or is left out after a while. Of two proposers, the one of higher precedence goes on. With
`require_majority`, a majority of the replicas of the group must accept, members or not, as long as they have
a state; so what a majority had performed is known to the new primary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Nanos, NodeId, RemoteError
from ordercast.replication.llft.messages import Accept, ProposePrimary, Superseded
from ordercast.replication.llft.names import Precedence, ViewId, next_precedence
from ordercast.replication.llft.orders import Slice, cut
from ordercast.replication.llft.standing import Standing, Turn

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica

VIEWS_AHEAD_MAX = 1 << 32
"""No correct replica is so many views or memberships ahead."""


class Succession:
    """How a replica becomes primary, or lets another one."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._env = replica.env
        self._view: ViewId | None = None
        """The view that it proposes."""
        self._members: tuple[Precedence, ...] = ()
        self._accepted: dict[NodeId, Precedence] = {}
        self._attempts = 0
        self._performed = 0
        """The highest place that those who have accepted have performed (`require_majority`)."""
        self._before = replica.promised
        """What it had promised before it appointed itself."""
        self.since: Nanos = 0
        """When it appointed itself."""
        self.behind = False
        """Whether another replica was found to have a later state."""

    def forget(self) -> None:
        """Propose nothing any more. A promise to oneself ends with the proposal: nobody counts consents to
        it."""
        if self._view is not None and self._view == self._replica.promised:
            self._replica.promised = max(self._before, self._replica.view)
        self._view = None
        self._accepted.clear()

    # The proposer

    def watch_primary(self) -> None:
        """Suspect the primary if nothing was heard of it for too long."""
        replica = self._replica
        patience = replica.membership.patience(replica.precedence, replica.options.detect_ns)
        if replica.performer.seats.silent:  # what it has done, its application will not hear of
            patience += replica.options.regroup_ns
        if self._env.now - replica.heard_at > patience:
            self.suspect()

    def suspect(self) -> None:
        """The primary has failed, or has left: propose to follow it."""
        replica = self._replica
        replica.turn(Turn.SUSPECT)
        self._before = replica.promised
        self._propose(tuple(one for one in replica.membership.members if one >= replica.precedence))

    def appoint(self) -> None:
        """No member seems to be left: go on with the state of an earlier membership."""
        replica = self._replica
        highest = max(replica.membership.highest, replica.promised.precedence)
        replica.precedence = next_precedence(self._env.me, replica.setting.nodes, highest)
        replica.membership.note(replica.precedence)
        replica.turn(Turn.APPOINT)
        self._before = replica.promised
        self._propose((replica.precedence,))

    def renew(self, members: tuple[Precedence, ...]) -> None:
        """A remote group has told this replica, while it recovered, of a view that had begun with the number
        of its own. A view has its number alone (Theorem 1): it proposes the one after that."""
        self._replica.turn(Turn.RENEW)
        self._propose(members)

    def _propose(self, members: tuple[Precedence, ...]) -> None:
        replica = self._replica
        view = ViewId(replica.precedence, max(replica.promised.number, replica.view.number) + 1)
        if view <= replica.promised:  # it has accepted a view of a higher precedence, which did not begin
            replica.membership.note(replica.promised.precedence)
            replica.exclude("the view that it has accepted never began", replica.promised)
            return
        self._view, self._members = view, members
        self._accepted.clear()
        self._attempts = self._performed = 0
        self.since = self._env.now
        replica.promised = view
        self._send()
        self._count()

    def on_tick(self) -> None:
        """Repeat the proposal; leave out who does not answer."""
        self._attempts += 1
        if self._attempts > self._replica.options.attempts:
            nodes = self._replica.setting.nodes
            mine = self._replica.precedence
            heard = (mine, *(one for one in self._members if one % nodes in self._accepted))
            self._members = tuple(sorted(set(heard)))
            self._attempts = 0
            self._count()
        if self._replica.standing is Standing.PROPOSER:
            self._send()

    def _send(self) -> None:
        if self._view is not None:
            self.repeat(self._view, self._members)

    def repeat(self, view: ViewId, members: tuple[Precedence, ...]) -> None:
        """Multicast a proposal."""
        replica = self._replica
        if replica.peers:
            certain = replica.performer.place if replica.options.require_majority else replica.log.end
            proposal = ProposePrimary(view, members, certain, replica.known_lineage())
            self._env.multicast(replica.peers, proposal)

    def on_accept(self, source: NodeId, message: Accept) -> None:
        """A member accepts, and brings what this one lacks."""
        replica = self._replica
        if replica.standing is not Standing.PROPOSER or message.view != self._view:
            return
        if message.precedence % replica.setting.nodes != source:
            raise RemoteError(f"node {source} accepts in the name of precedence {message.precedence}")
        replica.on_orders(message.orders)
        if message.orders.view == replica.view and message.orders.end > replica.log.end:
            return  # what it has does not join on here yet: it will accept again
        self._accepted[source] = message.precedence
        if message.orders.view == replica.view:
            self._performed = max(self._performed, message.orders.end)
        self._count()

    def _count(self) -> None:
        """Begin the second phase if all members have accepted."""
        replica = self._replica
        waited = [one for one in self._members if one != replica.precedence]
        accepted = set(self._accepted.values())
        if all(one in accepted for one in waited) and self._has_majority():
            replica.turn(Turn.ELECT)
            assert self._view is not None
            if replica.options.require_majority:
                # What no replica of a majority has performed was never settled, and its messages may be lost.
                replica.log.truncate(max(self._performed, replica.performer.place))
            view, self._view = self._view, None
            self._accepted.clear()
            replica.recovery.begin(view, self._members)

    def _has_majority(self) -> bool:
        """Whether enough accept of those that have a seat after all that is known to be ordered."""
        replica, performer = self._replica, self._replica.performer
        seated = performer.seats.after(replica.log, performer.place, self._performed)
        return len(seated & {self._env.me, *self._accepted}) >= replica.majority_of(seated)

    def lacks(self) -> list[NodeId]:
        """The members that have not accepted yet."""
        nodes = self._replica.setting.nodes
        members = [one % nodes for one in self._members if one != self._replica.precedence]
        return [node for node in members if node not in self._accepted]

    # The others

    def on_propose(self, source: NodeId, message: ProposePrimary) -> None:
        """Another replica appoints itself (Figure 9, lines 17 to 27)."""
        replica, view = self._replica, message.view
        if view.precedence % replica.setting.nodes != source or view.precedence not in message.members:
            raise RemoteError(f"node {source} proposes view {view}, whose primary it is not")
        if view.number - replica.promised.number > VIEWS_AHEAD_MAX:
            raise RemoteError(f"node {source} proposes view {view}, which is far in the future")
        if view == replica.view:
            return  # it has begun already
        if view < replica.promised or view < replica.view:
            self._env.send(source, Superseded(max(replica.promised, replica.view)))
            return
        if message.lineage[-1].view < replica.view and replica.remembers:
            # The proposer knows an older view only. Its work would replace what this replica and others have.
            self._env.send(source, Superseded(replica.view))
            return
        if replica.options.require_majority and replica.remembers and not self._can_serve(message):
            # The proposer could not perform what this replica has, and a majority may have it.
            self._env.send(source, Superseded(replica.promised, ahead=True))
            return
        member = replica.precedence in message.members
        if member and replica.standing in (Standing.BACKUP, Standing.PROPOSER):
            self.forget()
            replica.promised = view
            replica.turn(Turn.YIELD)
            replica.membership.adopt(message.members, 0)
            replica.heard_at = self._env.now
            self._accept(source, message)
        else:
            replica.exclude(f"view {view} was proposed without it", view)
            if replica.options.require_majority and replica.remembers:
                self._accept(source, message)

    def _can_serve(self, message: ProposePrimary) -> bool:
        """Whether this replica still has all messages that a proposer lacks."""
        replica, log = self._replica, self._replica.log
        if message.lineage[-1].view != replica.view or message.ordered >= replica.performer.place:
            return True
        if message.ordered < log.after:
            return False
        performer, connections = replica.performer, replica.messaging.connections
        return performer.in_use.has_messages(log, message.ordered, performer.place, connections)

    def _accept(self, source: NodeId, message: ProposePrimary) -> None:
        replica, log = self._replica, self._replica.log
        after = max(log.after, min(message.ordered, log.end))
        same = message.lineage[-1].view == replica.view
        entries = log.part(after) if same else ()
        if replica.options.require_majority and same:
            entries = cut(entries, replica.performer.place - after)
        part = Slice(
            replica.view,
            replica.begin if same else 0,
            after if same else 0,
            entries,
            min(replica.primary.safe, after) if same else 0,
            0,
        )
        self._env.send(source, Accept(message.view, replica.precedence, part))

    def on_superseded(self, source: NodeId, message: Superseded) -> None:
        """Somebody knows a higher view, or a later state: this replica gives up, and joins that."""
        replica = self._replica
        if message.view.number - replica.promised.number > VIEWS_AHEAD_MAX:
            raise RemoteError(f"node {source} knows view {message.view}, which is far in the future")
        if message.ahead and replica.standing is Standing.PROPOSER:
            self.behind = True
            replica.exclude("another replica has done more", self._before)
        self.give_way(message.view)

    def give_way(self, view: ViewId) -> None:
        """A higher view is known."""
        replica = self._replica
        replica.membership.note(view.precedence)
        if view > replica.promised or (view == replica.promised and replica.view != view):
            replica.exclude(f"view {view} has overtaken it", view)
        elif replica.standing is Standing.PROPOSER and view > replica.view:
            self.behind = True
            replica.exclude(f"view {view} is of a later state", self._before)
