"""The second phase of a change of the primary (section IV.B; Figure 9, lines 28 to 41).

The new primary asks all remote groups what they know of the old one: which of its messages they have
received, what they have sent, and the ordering information that they hold for this group. It performs all
that the old primary is known to have done, and so produces the same messages. Then its view begins, at a
place in the order of the group that its backups learn like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Nanos, NodeId, RemoteError
from ordercast.replication.llft.lineage import extended
from ordercast.replication.llft.messages import LinkState, NewPrimaryView, ViewAck
from ordercast.replication.llft.names import Link, Party, Precedence, ViewId
from ordercast.replication.llft.orders import ViewOrder
from ordercast.replication.llft.standing import Turn

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica


class Recovery:
    """How an elected primary comes to the state of the old one."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._env = replica.env
        self._view: ViewId | None = None
        self._members: tuple[Precedence, ...] = ()
        self._unheard: dict[Party, None] = {}
        """The remote groups that have not answered."""
        self._received: dict[Link, LinkState] = {}
        self.since: Nanos = 0
        self._told_all: Nanos = 0
        self._told_at: dict[Party, Nanos] = {}

    def forget(self) -> None:
        """Another view has overtaken this one."""
        self._view = None

    def begin(self, view: ViewId, members: tuple[Precedence, ...]) -> None:
        """Ask all remote groups."""
        replica = self._replica
        self._view, self._members = view, members
        self.since = self._env.now
        self._received.clear()
        parties = replica.setting.parties
        self._unheard = {party: None for party in parties if party != replica.party}
        self._ask()
        self.conclude()

    def on_tick(self) -> None:
        """Ask again who has not answered, and let the backups know that this replica is alive."""
        self._ask()
        if self._view is not None:
            self._replica.succession.repeat(self._view, self._members)
        self.conclude()

    def _ask(self) -> None:
        replica, view = self._replica, self._view
        if view is None:
            return
        lineage = extended(replica.known_lineage(), view, replica.log.end + 1)
        question = NewPrimaryView(replica.party, lineage, final=False)
        for party in self._unheard:
            replica.messaging.tell(party, question)

    def on_view_ack(self, source: NodeId, message: ViewAck) -> None:
        """A remote group answers."""
        replica = self._replica
        if source not in replica.setting.parties.get(message.party, ()) or source in replica.peers:
            raise RemoteError(f"node {source} answers for group {message.party}, which is not its own")
        if self._view is None or message.view != self._view or message.party not in self._unheard:
            return
        if message.orders is not None:
            replica.on_orders(message.orders)
            if replica.performer.executor.asks is not None:
                replica.follow()  # so that it knows the connections that its group has opened
        del self._unheard[message.party]
        for state in message.links:
            connection = replica.messaging.connections.get(state.link)
            if connection is None or connection.remote != message.party:
                continue
            self._received[state.link] = state
            if state.sent > connection.incoming.upto:
                connection.incoming.known = max(connection.incoming.known, state.sent)
                replica.messaging.watch(connection)

    def conclude(self) -> None:
        """Begin the view, if the state of the old primary is reached."""
        replica = self._replica
        if self._view is None or not replica.recovers:
            return
        if replica.view.number >= self._view.number:
            self.forget()
            replica.succession.renew(self._members)
            return
        waited = self._env.now - self.since
        # A group that this replica does not know would answer at once, if it were there.
        known = waited <= replica.options.heartbeat_ns or any(map(self._is_known, self._unheard))
        if self._unheard and known and waited <= replica.options.query_ns:
            return
        if replica.performer.place < replica.log.end:
            if self._env.now - self.since <= 2 * replica.options.query_ns:
                return
            if replica.options.require_majority:
                if self._env.now - self.since > 4 * replica.options.query_ns:
                    replica.exclude("nobody who can be reached has a message that was ordered", self._view)
                return
            replica.log.truncate(replica.performer.place)  # nobody who can be reached has the message
        self._start(self._view)

    def _is_known(self, party: Party) -> bool:
        """Whether a remote group was heard of lately."""
        options = self._replica.options
        since = self.since - 4 * options.keep_alive_ns - options.detect_ns
        return any(
            connection.remote == party and connection.heard_at >= since
            for connection in self._replica.messaging.connections.values()
        )

    def _start(self, view: ViewId) -> None:
        replica, performer = self._replica, self._replica.performer
        if not performer.active:
            performer.wake()
        received = tuple(
            (link, max(state.received, connection.outgoing.base))
            for link, state in sorted(self._received.items())
            if (connection := replica.messaging.connections.get(link)) is not None
        )
        place = replica.log.end + 1
        replica.view, replica.begin = view, place
        replica.membership.adopt(self._members, 0)
        replica.turn(Turn.BEGIN)
        replica.primary.begin(synced=True)
        replica.primary.append(ViewOrder(view, self._members, received))
        for link, index in received:
            connection = replica.messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.passed = index
                connection.outgoing.acked = max(connection.outgoing.acked, index)
                connection.heard_at = self._env.now
                replica.messaging.watch(connection)
        for link in replica.messaging.connections:
            replica.messaging.ready.setdefault(link)
        self._view = None
        self._told_at.clear()
        if not replica.options.require_majority:
            replica.messaging.views.unsure.update(performer.asker.answered.groups)
        for party in replica.setting.parties:
            if party != replica.party:
                self.tell(party)
        performer.pass_on(leads=True)
        for connection in list(replica.messaging.connections.values()):
            replica.messaging.pass_on(connection)

    def tell(self, party: Party) -> None:
        """Tell a remote group where the view began; not more often than it can answer."""
        replica = self._replica
        last = self._told_at.get(party)
        if last is not None and self._env.now - last < replica.options.ack_ns:
            return
        self._told_at[party] = self._env.now
        told = NewPrimaryView(replica.party, replica.performer.notices.lineage, final=True)
        replica.messaging.tell(party, told)

    def on_primary_tick(self) -> None:
        """From time to time, tell all groups with which there is no connection who the primary is: one of
        them may know of another branch."""
        replica = self._replica
        if self._env.now - self._told_all < replica.options.close_ns // 4:
            return
        self._told_all = self._env.now
        heard = {connection.remote for connection in replica.messaging.connections.values()}
        for party in replica.setting.parties:
            if party != replica.party and party not in heard:
                self.tell(party)

    def lacks(self) -> list[Party]:
        """The remote groups that have not answered."""
        return list(self._unheard)
