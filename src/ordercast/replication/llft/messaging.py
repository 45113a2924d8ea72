"""The Low Latency Messaging Protocol (section III) at one member: all its connections.

A primary sends, acknowledges and retransmits; a backup receives the same messages, logs what it produces
itself, and asks its own group for what it lacks. What is delivered when is decided by the group (`Group`),
which this module only asks: a primary orders messages as they come, a backup follows.
"""

from __future__ import annotations

from ordercast.core import Env, Message, NodeId, RemoteError
from ordercast.replication.llft.connection import Buried, Connection, Kept
from ordercast.replication.llft.group import Group
from ordercast.replication.llft.held import Holdings
from ordercast.replication.llft.limits import TIME_AHEAD_MAX
from ordercast.replication.llft.messages import (
    CLIENT,
    SERVER,
    Copy,
    FirstAck,
    Head,
    KeepAlive,
    Letter,
    LinkState,
    Missing,
    Nack,
    NewPrimaryView,
    Reply,
    Request,
    Reset,
    Role,
    SecondAck,
    Superseded,
    ViewAck,
)
from ordercast.replication.llft.names import Link, Party, ViewId
from ordercast.replication.llft.remote_views import RemoteViews
from ordercast.replication.llft.setting import Setting

ANSWERED_MAX = 64
"""So many missing messages are sent again at a time."""
LOST_MAX = 3
"""If the remote group asks so often for messages that it has acknowledged before, it has lost them."""


class Messaging:
    """All connections of one member."""

    def __init__(self, env: Env, setting: Setting, party: Party, group: Group) -> None:
        self._env = env
        self._setting = setting
        self._options = setting.options
        self._group = group
        self.party = party
        self.peers = tuple(node for node in setting.parties[party] if node != env.me)
        """The other nodes of the own group."""
        self.connections: dict[Link, Connection] = {}
        self.closed: dict[tuple[Party, Party], int] = {}
        """The highest number of a closed connection, for each pair of groups."""
        self.views = RemoteViews()
        self.held = Holdings()
        self.clock = 0
        """The Lamport clock of the group (Figure 4, `myTimestamp`). It moves only with what the group does in
        order, so that it is the same at all replicas for the same message."""
        self.buried = Buried()
        self.ready: dict[Link, None] = {}
        """Connections with something new to deliver, in the order in which it came."""
        self.busy: dict[Link, None] = {}
        """Connections that need a look soon."""

    # Connections

    def open(self, link: Link, role: Role) -> Connection:
        """This end of a connection; made at its first use."""
        connection = self.connections.get(link)
        if connection is None:
            connection = self.connections[link] = Connection(link, role, self._env.now)
        return connection

    def close(self, link: Link, place: int = 0) -> None:
        """Forget a connection for good; its messages stay until all members have come to this place."""
        connection = self.connections.get(link)
        if place and connection is not None:
            self.buried.add(connection, place)
        pair = (link.client, link.server)
        self.closed[pair] = max(self.closed.get(pair, -1), link.number)
        self.abandon(link)

    def abandon(self, link: Link) -> None:
        """Forget a connection, which may be opened again."""
        self.connections.pop(link, None)
        self.ready.pop(link, None)
        self.busy.pop(link, None)

    def is_closed(self, link: Link) -> bool:
        """Whether a connection, or a later one of the same groups, was closed, or is in use."""
        if link.number <= self.closed.get((link.client, link.server), -1):
            return True
        same = (one for one in self.connections.values() if one.link[:2] == link[:2])
        return any(one.link > link and one.incoming.delivered for one in same)

    def older(self, link: Link) -> list[Link]:
        """The connections of the same groups with lower numbers."""
        return [other for other in self.connections if other[:2] == link[:2] and other.number < link.number]

    # Sending

    def produce(self, connection: Connection, payload: bytes) -> range:
        """The application sends a message: it gets its indexes and its timestamp at every replica."""
        size = self._options.fragment_bytes
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        first = connection.outgoing.produced + 1
        for place, piece in enumerate(pieces, 1):
            self.clock += 1
            connection.outgoing.produce(Kept(self.clock, place < len(pieces), piece))
        return range(first, first + len(pieces))

    def may_send(self, connection: Connection) -> bool:
        """Whether the remote group has room for the next message (flow control between groups)."""
        outgoing = connection.outgoing
        return outgoing.passed - outgoing.acked < min(self._options.window, max(1, outgoing.room))

    def pass_on(self, connection: Connection) -> None:
        """Send what this primary may send, as far as the window allows."""
        outgoing = connection.outgoing
        if outgoing.passed < outgoing.acked:
            outgoing.passed = outgoing.acked
        while outgoing.passed < outgoing.cleared and self.may_send(connection):
            outgoing.passed += 1
            self.transmit(connection, outgoing.passed)
            if outgoing.passed == outgoing.acked + 1:
                outgoing.due = self._env.now + self._options.retransmit_ns

    def transmit(self, connection: Connection, index: int) -> None:
        kept = connection.outgoing.sent.get(index)
        if kept is None:
            return
        make = Reply if connection.role == SERVER else Request
        self.send(connection, make(self.head(connection), index, kept.timestamp, kept.more, kept.payload))
        connection.owed_since = None
        self.watch(connection)

    def head(self, connection: Connection) -> Head:
        incoming, outgoing = connection.incoming, connection.outgoing
        return Head(
            connection.link,
            connection.role,
            self._group.view,
            outgoing.base,
            outgoing.passed,
            self.views.named(connection.remote),
            incoming.upto,
            incoming.room(self._options.window),
            incoming.released if not self._group.alone else incoming.watermark,
            self.clock,
            self._group.orders(),
            self.held.slice(connection.remote),
        )

    def send(self, connection: Connection, message: Message) -> None:
        connection.sent_at = self._env.now
        self.tell(connection.remote, message)

    def tell(self, party: Party, message: Message) -> None:
        """Multicast to a remote group."""
        self._env.multicast(self._setting.way_to(party, self.views.last.get(party)), message)

    # Receiving

    def on_message(self, source: NodeId, message: Message) -> bool:
        """Handle a message of a connection; False if it is no such message."""
        match message:
            case Letter():
                self._on_letter(source, message)
            case FirstAck():
                self._on_first_ack(source, message)
            case KeepAlive():
                self._on_keep_alive(source, message)
            case SecondAck():
                self._on_second_ack(source, message)
            case Nack():
                self._on_nack(source, message)
            case Copy():
                self._on_copy(source, message)
            case Reset():
                self._on_reset(source, message)
            case NewPrimaryView():
                self._on_new_primary_view(source, message)
            case _:
                return False
        return True

    def _check(self, source: NodeId, link: Link, role: Role) -> None:
        """Refuse what does not come from the end of a connection that it claims to come from."""
        sender, mine = (link.server, link.client) if role == SERVER else (link.client, link.server)
        if mine != self.party or source not in self._setting.parties.get(sender, ()):
            raise RemoteError(f"node {source} is not at end {role} of connection {link} with this group")
        if link.number > self._env.now + TIME_AHEAD_MAX:
            raise RemoteError(f"node {source} names connection {link}, which is far in the future")

    def _on_letter(self, source: NodeId, letter: Letter) -> None:
        head = letter.head
        if isinstance(letter, Reply) is not (head.role == SERVER):
            raise RemoteError(f"node {source} sent a {type(letter).__name__} from end {head.role}")
        if head.role == SERVER and head.link not in self.connections:
            self._look_ahead(head)
        connection = self._find(source, head, creates=head.role == CLIENT)
        if connection is None or not self._on_head(source, connection, head):
            return
        self._take(connection, letter.index, Kept(letter.timestamp, letter.more, letter.payload))
        if self._group.leads and connection.owed_since is None:
            connection.owed_since = self._env.now
        self.watch(connection)

    def _look_ahead(self, head: Head) -> None:
        """A backup may not know yet that its group has opened a connection: the reply brings the order."""
        if head.reflected is not None and not self._group.leads and not self.is_closed(head.link):
            self._group.on_orders(head.reflected)
            self._group.catch_up()

    def _take(self, connection: Connection, index: int, kept: Kept) -> None:
        incoming = connection.incoming
        # A backup has room for more: the primary, which is ahead, has told the remote group how much.
        room = self._options.window if self._group.leads else 4 * self._options.window
        if incoming.take(index, kept, room):
            self.ready.setdefault(connection.link)

    def _find(self, source: NodeId, head: Head, *, creates: bool) -> Connection | None:
        self._check(source, head.link, head.role)
        connection = self.connections.get(head.link)
        if connection is not None:
            return connection
        if self.is_closed(head.link) or not creates:
            if self._group.leads:
                self._inform(head.link.client if head.role == CLIENT else head.link.server, head)
                self._env.send(source, Reset(head.link, 1 - head.role))  # type: ignore[arg-type]
            return None
        return self.open(head.link, SERVER)

    def _on_head(self, source: NodeId, connection: Connection, head: Head) -> bool:
        """What every message of a remote primary says; False if it is not the primary of the other end
        now."""
        incoming = connection.incoming
        if head.orders is not None:
            self.held.note(connection.remote, head.orders)
        if head.reflected is not None:
            self._group.on_orders(head.reflected)
        speaks = self._group.leads or self._group.recovers
        if not self.views.heeds(connection.remote, head.view, speaks=speaks):
            self._put_right(source, connection.remote, head.view)
            return False
        if incoming.view != head.view:
            if incoming.view is not None:
                incoming.discard_after(head.base)
            incoming.view, incoming.base = head.view, head.base
        connection.heard_at = self._env.now
        self._name(connection, head.last)
        if connection.outgoing.acknowledge(head.ack, head.room):
            connection.first_acks = 0
            connection.outgoing.due = self._env.now + self._options.retransmit_ns
        connection.outgoing.release(head.back)
        self._group.on_room(connection)
        self._inform(connection.remote, head)
        return True

    def _inform(self, party: Party, head: Head) -> None:
        """Tell a remote group of the view of this one, if it does not know that."""
        if head.ack_view is not None and head.ack_view < self._group.view and self._group.leads:
            self._group.on_outdated(party)

    def _put_right(self, source: NodeId, party: Party, view: ViewId) -> None:
        """A primary that another one has overtaken may be cut off from its group: tell it."""
        if self._group.leads and self.views.overtaken(party, view):
            self._env.send(source, Superseded(self.views.last[party]))

    def _on_first_ack(self, source: NodeId, message: FirstAck) -> None:
        head = message.head
        connection = self._find(source, head, creates=False)
        if connection is None or not self._on_head(source, connection, head):
            return
        group, outgoing = self._group, connection.outgoing
        if group.leads:
            connection.first_acks += 1
            if connection.first_acks > self._options.first_acks_max:
                group.slow_down()
        group.catch_up()  # the acknowledgement may have brought the order of the message's cause
        if outgoing.produced >= head.ack and (not group.leads or group.alone):
            self.tell(connection.remote, SecondAck(head.link, connection.role, head.ack))

    def _on_keep_alive(self, source: NodeId, message: KeepAlive) -> None:
        connection = self._find(source, message.head, creates=False)
        if connection is not None and self._on_head(source, connection, message.head):
            self.watch(connection)

    def _on_second_ack(self, source: NodeId, message: SecondAck) -> None:
        self._check(source, message.link, message.role)
        connection = self.connections.get(message.link)
        if connection is None:
            return
        if message.index >= connection.unconfirmed:
            connection.unconfirmed = 0
        self._name(connection, message.index)

    def _name(self, connection: Connection, index: int) -> None:
        """A message exists; if it does not come, it is missing."""
        incoming = connection.incoming
        if index > max(incoming.upto, incoming.known):
            incoming.known = min(index, incoming.upto + 2 * self._options.window)
            self.watch(connection)

    def _on_nack(self, source: NodeId, message: Nack) -> None:
        """Send again what this member has: what its group produced, or what it received itself."""
        connection = self.connections.get(message.link)
        if connection is None and source in self.peers:
            connection = self.buried.find(message.link)
        if connection is None:
            return
        if source in self.peers and message.role != connection.role:
            wanted = _indexes(message.missing, connection.incoming.kept)
            for index in wanted:
                kept = connection.incoming.kept[index]
                self._env.send(source, Copy(message.link, message.role, index, *kept))
            return
        if message.role == connection.role and source in self._setting.parties[connection.remote]:
            if self._group.leads:
                self._notice_loss(connection, message.missing)
                for index in _indexes(message.missing, connection.outgoing.sent):
                    if index <= connection.outgoing.passed:
                        self.transmit(connection, index)
            return
        raise RemoteError(
            f"node {source} asks for messages of connection {message.link}, which is not its own"
        )

    def _notice_loss(self, connection: Connection, missing: Missing) -> None:
        """Close a connection whose remote group has lost what it had received: its primary then was of a
        branch that did not survive."""
        outgoing = connection.outgoing
        if all(first > outgoing.acked or first in outgoing.sent for first, _ in missing):
            return
        connection.losses += 1
        if connection.losses >= LOST_MAX:
            self.tell(connection.remote, Reset(connection.link, connection.role))
            self._group.on_reset(connection)

    def _on_copy(self, source: NodeId, message: Copy) -> None:
        if source not in self.peers:
            raise RemoteError(f"node {source} of another group sent a copy of a message")
        connection = self.connections.get(message.link)
        if connection is not None and connection.role != message.role:
            self._take(connection, message.index, Kept(message.timestamp, message.more, message.payload))

    def _on_reset(self, source: NodeId, message: Reset) -> None:
        self._check(source, message.link, message.role)
        connection = self.connections.get(message.link)
        if connection is not None and self._group.leads:
            self._group.on_reset(connection)

    # A new primary of a remote group

    def _on_new_primary_view(self, source: NodeId, message: NewPrimaryView) -> None:
        """Fence off the old primary, and say what it had sent (Figure 9, lines 36 to 41)."""
        if source not in self._setting.parties.get(message.party, ()) or source in self.peers:
            raise RemoteError(f"node {source} reports a view of group {message.party}, which is not its own")
        party, view = message.party, message.lineage[-1].view
        if not (self._group.leads or self._group.recovers):
            return
        if self.views.overtaken(party, view):
            self._put_right(source, party, view)
            return
        self.views.fence(party, view)
        if message.final and self.views.begin(party, view):
            self._group.on_lineage(message)
        states = []
        for connection in self.connections.values():
            if connection.remote != party:
                continue
            incoming = connection.incoming
            if incoming.view != view:
                incoming.view, incoming.base = view, incoming.upto
                incoming.discard_after(incoming.upto)
            connection.heard_at = self._env.now
            states.append(LinkState(connection.link, incoming.base, connection.outgoing.passed))
        held = self.held.slice(message.party)
        self._env.send(source, ViewAck(self.party, view, tuple(states), held))

    # Periodic processing

    def watch(self, connection: Connection) -> None:
        """Something of a connection may need a repetition soon."""
        self.busy.setdefault(connection.link)


def _indexes(ranges: tuple[tuple[int, int], ...], known: dict[int, Kept]) -> list[int]:
    """The known indexes in some ranges, at most so many as are sent at a time."""
    return [index for index in known if any(first <= index <= last for first, last in ranges)][:ANSWERED_MAX]
