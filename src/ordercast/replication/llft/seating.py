"""How a replica joins its group and leaves it, on behalf of its application (section IV.C).

One that joins first becomes a member and takes over the state, as any newcomer does (`admission.py`). Then it
asks the primary for a seat, and its application receives the group from that place on. One that leaves asks
the primary to end its seat. It goes when that is settled and another replica with a seat has the state; until
then its application hears of everything. A primary that leaves stops ordering until its backups have
everything, and hands over to the next in precedence.

A replica that is in no group, but has a seat or counts as a member, says so when it hears the primary: it has
left, or it has crashed before it had joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Left, Nanos, NodeId
from ordercast.replication.llft.messages import Heartbeat, SeatAsk
from ordercast.replication.llft.orders import SeatOrder
from ordercast.replication.llft.standing import Standing

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica


def farewell(heard: Heartbeat) -> SeatAsk:
    """What a replica that is in no group answers to a primary that counts on it."""
    return SeatAsk(heard.view, heard.orders.end, joins=False)


class Seating:
    """The wish of a replica to be in the group or not, and what the primary does for others."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._env = replica.env
        self.leaving_since: Nanos | None = None
        """Since when its application wants to leave."""
        self.left = False
        """It has left: nothing of it is needed any more."""

    @property
    def wants(self) -> bool | None:
        """Whether it needs a seat (True), or wants to give up the one it has (False)."""
        seats = self._replica.performer.seats
        if self.leaving_since is None or not seats.told:
            return True if seats.silent else None
        return None if seats.mine is None else False

    def leave(self) -> None:
        """Give up the seat, as soon as that is possible."""
        self.leaving_since = self._env.now
        self._replica.performer.seats.leaving = True

    def on_tick(self) -> None:
        """Ask for what this replica wants, again and again."""
        replica, wants = self._replica, self.wants
        if wants is None:
            return
        if replica.leads:
            self._change(self._env.me, joins=wants)
        elif replica.view == replica.promised:
            ask = SeatAsk(replica.view, replica.performer.place, wants)
            self._env.send(replica.setting.primary_node(replica.view), ask)

    # The primary

    def on_ask(self, source: NodeId, message: SeatAsk) -> None:
        """A replica wants to join or to leave; or the primary has left."""
        replica = self._replica
        if message.view != replica.view:
            return
        if not replica.leads:
            self._succeed(source, message)
            return
        seats = replica.performer.seats
        since = seats.since.get(source)
        if message.joins:
            ready = source in self._ready()
            if ready and (since is None or since <= message.place):
                self._change(source, joins=True)
        elif since is not None and since <= message.place:
            self._change(source, joins=False)
        elif since is None and message.place >= seats.changed_at:
            replica.primary.remove_node(source)

    def _ready(self) -> set[NodeId]:
        """The backups that have the state."""
        replica = self._replica
        return {
            precedence % replica.setting.nodes
            for precedence, peer in replica.primary.peers.items()
            if peer.synced
        }

    def _change(self, node: NodeId, *, joins: bool) -> None:
        """Order a change of the seats, if the one before it is settled, and so is the present view."""
        replica = self._replica
        performer = replica.performer
        settled = max(performer.seats.changed_at, replica.begin) <= performer.notices.settled
        others = (self._ready() | {self._env.me}) & performer.seats.since.keys() - {node}
        if settled and (joins or others):
            replica.primary.append(SeatOrder(node, joins))

    # Whoever leaves

    def conclude(self) -> None:
        """Go, if the group can do without this replica."""
        replica = self._replica
        performer = replica.performer
        place = performer.seats.left_at
        notices = performer.notices
        if place is None or notices.confirmed < max(place, notices.settled):
            return
        if replica.leads:
            if not self.hands_over or notices.confirmed < replica.log.end:
                return
            self._env.multicast(replica.peers, SeatAsk(replica.view, place, joins=False))
        elif replica.standing is not Standing.BACKUP:
            return
        self.left = True
        self._env.save("started", b"")
        self._env.deliver(Left(replica.party, stamp=notices.stamp(notices.settled)))

    @property
    def hands_over(self) -> bool:
        """Whether this is a primary that orders nothing more, since it leaves and another one can follow."""
        performer = self._replica.performer
        place = performer.seats.left_at
        if place is None or place > performer.notices.confirmed:
            return False
        return bool(self._ready() & performer.seats.since.keys())

    def _succeed(self, source: NodeId, message: SeatAsk) -> None:
        """The primary has left: the first backup does not wait until it misses it."""
        replica = self._replica
        gone = source == replica.setting.primary_node(replica.view) and not message.joins
        first = replica.membership.rank(replica.precedence) == 2
        if gone and first and replica.standing is Standing.BACKUP and replica.view == replica.promised:
            replica.succession.suspect()
