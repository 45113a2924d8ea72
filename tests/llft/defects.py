"""What broken replicas and clients do: replacements for methods of the protocol."""

from typing import Any

import msgspec

from ordercast.components.execution.client_table import ClientTable
from ordercast.core import NodeId
from ordercast.replication.llft.checkpoint import Record
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.messages import Accept, FirstAck, Head, ProposePrimary, SecondAck
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Party, Precedence, ViewId, short
from ordercast.replication.llft.orders import AnyEntry, MessageOrder, RoundOrder, Slice, ViewOrder
from ordercast.replication.llft.performing import Performer
from ordercast.replication.llft.primary import Primary
from ordercast.replication.llft.recovery import Recovery
from ordercast.replication.llft.remote_views import RemoteViews
from ordercast.replication.llft.replica import Replica
from ordercast.replication.llft.standing import Standing
from ordercast.replication.llft.succession import Succession
from ordercast.replication.llft.upkeep import Upkeep
from tests.llft.test_orders import singles

_head = Messaging.head
_on_first_ack = Messaging._on_first_ack
_follow = Replica.follow
_settle = Primary.settle
_renumber = Performer._renumber
_restore = Performer.restore
_update = Performer.update
_on_propose = Succession.on_propose
_on_accept = Succession.on_accept
_begin = Recovery.begin
_on_view_ack = Recovery.on_view_ack
_conclude = Recovery.conclude
_pass_on = Performer.pass_on
_replica_init = Replica.__init__


# Ordering information


def own_orders_only(self: Messaging, connection: Connection) -> Head:
    """Send with a message the last entries of its connection only, as section III.C has it."""
    head = _head(self, connection)
    part = head.orders
    if part is None:
        return head
    kept, after = [one for entry in part.entries for one in singles(entry)], part.after
    while kept:
        last = kept[-1]
        if _is_of(last, connection):
            break
        kept.pop()
    while not all(_is_of(one, connection) for one in kept):
        after += kept.pop(0).places
    own = Slice(part.view, part.begin, after, tuple(kept), part.safe, part.settled)
    return msgspec.structs.replace(head, orders=own)


def _is_of(entry: AnyEntry, connection: Connection) -> bool:
    match entry:
        case MessageOrder():
            return entry.link in (connection.link, short(connection.link, connection.party))
        case RoundOrder():
            return short(connection.link, connection.party) in entry.links
    return False


def no_orders(self: Replica) -> None:
    """Send no ordering information to remote groups."""


def in_order_of_arrival(self: Replica) -> None:
    """A backup performs what it has received, whoever has ordered it."""
    ready = self.messaging.ready
    while self.standing is Standing.BACKUP and ready:
        link = next(iter(ready))
        del ready[link]
        connection = self.messaging.connections[link]
        while (entry := self.next_order(connection)) is not None:
            place = self.log.append(entry)
            for at in range(place, self.log.end + 1):
                self.performer.step(at, self.log.at(at))
    _follow(self)


def safe_at_once(self: Primary) -> None:
    """Count what the primary has performed as performed by all."""
    self.safe = self._replica.performer.place
    _settle(self)
    self.safe = self._replica.performer.place


def confirm_at_once(self: Messaging, source: NodeId, message: FirstAck) -> None:
    """Confirm a `FirstAck` without a look at what was produced."""
    _on_first_ack(self, source, message)
    connection = self.connections.get(message.head.link)
    if connection is not None and not self._group.leads:
        self.tell(connection.remote, SecondAck(message.head.link, connection.role, message.head.ack))


def release_own(self: Primary) -> None:
    """Forget what this member has received itself."""
    for connection in self._replica.messaging.connections.values():
        connection.incoming.released = connection.incoming.watermark
        connection.incoming.forget()


# Changes of the primary


def ask_nobody(self: Recovery, view: ViewId, members: tuple[Precedence, ...]) -> None:
    """Begin the view without asking remote groups."""
    _begin(self, view, members)
    self._unheard.clear()
    self.conclude()


def give_up_at_once(self: Recovery) -> None:
    """Do not wait for messages that were ordered, and that remote groups still have."""
    if self._replica.recovers and not self._unheard:
        self._replica.log.truncate(self._replica.performer.place)
    _conclude(self)


def ignore_orders(self: Recovery, source: NodeId, message: Any) -> None:
    """Do not take the ordering information that a remote group hands back."""
    _on_view_ack(self, source, msgspec.structs.replace(message, orders=None))


def received_with_gaps(self: Recovery, source: NodeId, message: Any) -> None:
    """Take messages as received that came after a gap."""
    links = tuple(msgspec.structs.replace(state, received=state.received + 2) for state in message.links)
    _on_view_ack(self, source, msgspec.structs.replace(message, links=links))


def ask_for_nothing(self: Upkeep, connection: Connection, missing: Any) -> None:
    """Ask nobody for missing messages."""


def count_from_one(self: Performer, entry: ViewOrder) -> None:
    """Give messages of a new view numbers that were given before."""
    _renumber(self, entry)
    for connection in self._messaging.connections.values():
        outgoing = connection.outgoing
        outgoing.produced = outgoing.base = outgoing.acked = 0
        outgoing.sent.clear()


def heed_all(self: RemoteViews, party: Party, view: ViewId, *, speaks: bool) -> bool:
    """Listen to the primary of any view."""
    self.last[party] = self.begun[party] = max(view, self.last.get(party, view))
    return True


def accept_any(self: Succession, source: NodeId, message: ProposePrimary) -> None:
    """Accept a proposal, whatever was promised."""
    replica = self._replica
    if message.view < replica.promised and replica.standing is Standing.BACKUP:
        replica.promised = replica.view
    _on_propose(self, source, message)


def accept_older_state(self: Succession, source: NodeId, message: ProposePrimary) -> None:
    """Accept a proposer that knows an older view only."""
    replica = self._replica
    lineage = message.lineage
    if lineage[-1].view < replica.view < message.view:
        lineage = replica.known_lineage()
    _on_propose(self, source, msgspec.structs.replace(message, lineage=lineage))


def accept_nothing(self: Succession, source: NodeId, message: Accept) -> None:
    """Count consents, but do not take what members hand over."""
    part = msgspec.structs.replace(message.orders, after=0, entries=(), safe=0)
    _on_accept(self, source, msgspec.structs.replace(message, orders=part))


def stay_a_member(self: Replica, *args: Any, **options: Any) -> None:
    """Do not notice that this is a new life."""
    _replica_init(self, *args, **options)
    if self.env.now > 100:
        start = self.on_start
        self.on_start = lambda saved: start({})  # type: ignore[method-assign]


def know_no_other_view(self: Replica, found: Slice) -> bool:
    """Ignore the order of a view that this replica has not entered."""
    return False


def take_a_number_again(self: Succession, members: tuple[Precedence, ...]) -> None:
    """Begin a view with the number of one that has begun."""
    replica = self._replica
    replica.recovery._start(ViewId(replica.precedence, replica.view.number))


# Members


def without_table(self: Performer, *args: Any) -> None:
    """Take over a state without the table of clients."""
    _restore(self, *args)
    self.executor._table = ClientTable()


def keep_log(self: Performer, record: Record) -> None:
    """Take over a state, and perform again later what it contains."""
    logged = list(self._logged)
    self.executor.restore(record.executor)
    self.executor._table = ClientTable()
    self.executed = record.place
    self._logged.clear()
    self._logged.extend(logged)


def wake_without_log(self: Performer) -> None:
    """Become the primary with the last state, without what was logged after it."""
    self.active = True
    self._logged.clear()


# Partitions


def report_nothing(self: Any, lineage: Any) -> None:
    """Say nothing of work that is undone."""


def one_is_enough(self: Replica, seats: object) -> int:
    """A majority of one."""
    return 1


def answer_at_once(self: Performer, *, leads: bool) -> None:
    """Send answers before they are settled."""
    self._gated = False
    _pass_on(self, leads=leads)
