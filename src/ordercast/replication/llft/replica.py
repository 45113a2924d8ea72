"""A replica of a service in LLFT: primary or backup of its process group.

The primary orders the messages of clients as they come, performs them and answers at once; what it did
travels with its messages, and comes back to its backups, which follow (section III). If the primary fails, a
backup appoints itself (`succession.py`), advances to the state of the old primary (`recovery.py`) and begins
a view. Members come and go by the decision of the primary alone (`admission.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sized

from ordercast.core import Env, Explanation, Message, NodeId, Process, RemoteError
from ordercast.replication.llft.admission import Admission
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.explain import explain_replica
from ordercast.replication.llft.group import Group
from ordercast.replication.llft.limits import check_claims
from ordercast.replication.llft.lineage import Views, extended
from ordercast.replication.llft.membership import Membership
from ordercast.replication.llft.messages import (
    Accept,
    AcceptBackup,
    Heartbeat,
    MembersAck,
    NewPrimaryView,
    Progress,
    ProposeBackup,
    ProposePrimary,
    RemoveBackup,
    Reset,
    SeatAsk,
    State,
    StateAsk,
    StateOffer,
    Superseded,
    ViewAck,
)
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Party, ViewId
from ordercast.replication.llft.orders import CloseOrder, MessageOrder, OrderLog, Slice
from ordercast.replication.llft.performing import Performer
from ordercast.replication.llft.primary import Primary
from ordercast.replication.llft.recovery import Recovery
from ordercast.replication.llft.seating import Seating
from ordercast.replication.llft.setting import Setting
from ordercast.replication.llft.standing import STANDINGS, Standing, Turn
from ordercast.replication.llft.succession import Succession
from ordercast.replication.llft.upkeep import Upkeep


class Replica(Process, Group):
    """One replica."""

    def __init__(self, env: Env, setting: Setting, party: Party, *, told: bool = True) -> None:
        """`told`: its application counts itself in the group already."""
        super().__init__(env)
        self.setting = setting
        self.options = setting.options
        self.party = party
        founders = setting.founders(party)
        self.membership = Membership(founders)
        self.precedence = env.me
        """Its own precedence, in its last membership."""
        self.view = ViewId(founders[0], 0)
        """The view to which it belongs, or belonged last."""
        self.promised = self.view
        """It listens to no primary of a lower view."""
        self.begin = 0
        """The place at which the view began."""
        self.standing = Standing.BACKUP
        self.remembers = True
        """Whether it has a state of its group, be it an old one."""
        self.messaging = Messaging(env, setting, party, self)
        self.upkeep = Upkeep(env, self.options, self.messaging, self)
        self.log = OrderLog()
        self.performer = Performer(
            env, setting, party, self.messaging, founders[0], gated=self.options.require_majority
        )
        self.performer.active = self.options.replication == "semi-active" or env.me == founders[0]
        self.performer.seats.told = told
        self.heard_at = env.now
        """When the primary was last heard."""
        self.ticked_at = env.now
        self.primary = Primary(self)
        self.succession = Succession(self)
        self.recovery = Recovery(self)
        self.admission = Admission(self)
        self.seating = Seating(self)
        self.why_outside = ""
        self._told = 0
        """The place that the primary was last told."""
        self._progress_armed = False

    # Roles

    @property
    def leads(self) -> bool:
        """Whether it is the primary."""
        return self.standing is Standing.PRIMARY

    @property
    def recovers(self) -> bool:
        """Whether it will be the primary."""
        return self.standing is Standing.RECOVERING

    @property
    def alone(self) -> bool:
        """Whether there are no backups with a state."""
        return not self.primary.synced()

    def majority_of(self, seats: Sized) -> int:
        """How many replicas with one of these seats a view needs."""
        return len(seats) // 2 + 1 if self.options.require_majority else 0

    @property
    def peers(self) -> tuple[NodeId, ...]:
        """The other nodes that are in the group or may join it."""
        return self.messaging.peers

    def turn(self, event: Turn) -> None:
        """Change the standing by the table."""
        self.standing = STANDINGS.after(self.standing, event)

    # Events

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Be a member at the very first start, and ask to become one in every later life."""
        founders = self.setting.founders(self.party)
        told = self.performer.seats.told
        if saved or self.env.forgot or not told:
            self.standing, self.remembers = Standing.OUTSIDE, False
            restarted = saved or self.env.forgot
            self.why_outside = "it has restarted without its state" if restarted else "it joins the group"
            self.performer.notices.doubtful = bool(saved) and not self.env.forgot
        elif self.env.me == founders[0]:
            self.standing = Standing.PRIMARY
        if told:
            self.env.save("started", b"1")
        self.primary.begin(synced=True)
        self.heard_at = self.env.now
        self._tick()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Handle a message, and do what follows from it."""
        known = max(self.messaging.clock, self.log.end, self.membership.highest, self.promised.number)
        check_claims(source, message, known, self.env.now)
        if not self.messaging.on_message(source, message):
            self._on_own_message(source, message)
        self.conclude()

    def _on_own_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, ViewAck):
            self.recovery.on_view_ack(source, message)
            return
        if isinstance(message, Superseded):
            self.succession.on_superseded(source, message)
            return
        if source not in self.peers:
            raise RemoteError(f"node {source} is not of this group, and sent a {type(message).__name__}")
        match message:
            case Heartbeat():
                self._on_heartbeat(source, message)
            case Progress():
                self.primary.on_progress(source, message)
            case ProposePrimary():
                self.succession.on_propose(source, message)
            case Accept():
                self.succession.on_accept(source, message)
            case ProposeBackup():
                self.admission.on_propose(source, message)
            case AcceptBackup():
                self.admission.on_accept(source, message)
            case RemoveBackup():
                self.admission.on_members(source, message.view, message.change, message.members)
            case MembersAck():
                self.primary.on_members_ack(source, message)
            case StateOffer() | StateAsk() | State():
                self.admission.on_transfer(source, message)
            case SeatAsk():
                self.seating.on_ask(source, message)
            case _:
                raise RemoteError(f"node {source} sent a {type(message).__name__} to a replica")

    def on_timer(self, name: str) -> None:
        """The time for periodic processing."""
        match name:
            case "tick":
                self._tick()
            case "work":
                self.upkeep.on_work()
            case "progress":
                self._progress_armed = False
                self.tell_progress()
        self.conclude()

    def _tick(self) -> None:
        options, now = self.options, self.env.now
        late = now - self.ticked_at > options.heartbeat_ns + options.detect_ns // 2
        self.ticked_at = now
        if late:  # this process stood still: nobody else was silent
            self.heard_at = now
            self.primary.forgive()
        self.env.set_timer("tick", options.heartbeat_ns)
        self.upkeep.on_idle()
        match self.standing:
            case Standing.PRIMARY:
                self.primary.on_tick()
                self.seating.on_tick()
            case Standing.BACKUP:
                self.tell_progress(marks=True)
                self.seating.on_tick()
                self.succession.watch_primary()
            case Standing.PROPOSER:
                self.succession.on_tick()
            case Standing.RECOVERING:
                self.recovery.on_tick()
            case Standing.OUTSIDE | Standing.ADMITTED:
                self.admission.on_tick()

    def conclude(self) -> None:
        """Go on as far as possible after an event."""
        if self.leads:
            self.primary.order()
            self.primary.ask()
        elif self.standing in (Standing.BACKUP, Standing.RECOVERING):
            self.follow()
        if self.recovers:
            self.recovery.conclude()
        self.performer.pass_on(leads=self.leads)
        if self.leads:
            self.primary.spread()
        elif self.standing is Standing.BACKUP and self.performer.place > self._told:
            self._arm_progress()
        if self.performer.seats.left_at is not None:
            self.seating.conclude()
        self.upkeep.arm()

    # A backup

    def follow(self) -> None:
        """Perform what the ordering information names, as far as the messages are there."""
        performer, log = self.performer, self.log
        while performer.place < log.end:
            place = performer.place + 1
            if not performer.step(place, log.at(place)):
                break

    def _arm_progress(self) -> None:
        if self.options.require_majority:
            self.tell_progress()
        elif not self._progress_armed:
            self._progress_armed = True
            self.env.set_timer("progress", self.options.progress_ns)

    def tell_progress(self, *, marks: bool = False) -> None:
        """Tell the primary how far this backup is."""
        if self.standing is not Standing.BACKUP or self.view != self.promised:
            return
        self._told = self.performer.place
        primary = self.setting.primary_node(self.view)
        self.env.send(
            primary,
            Progress(
                self.view,
                self.precedence,
                self.membership.change,
                self.log.end,
                self.performer.place,
                self.primary.watermarks() if marks else (),
            ),
        )

    def _on_heartbeat(self, source: NodeId, message: Heartbeat) -> None:
        if source != self.setting.primary_node(message.view):
            raise RemoteError(f"node {source} sent a heartbeat of view {message.view}, which is not its own")
        if message.view < self.view:
            self.env.send(source, Superseded(self.view))
            return
        if message.view < self.promised:
            return
        self.admission.on_primary(message.view)
        if message.view > self.promised:
            self.membership.note(*message.members)
            self.exclude(f"view {message.view} has begun without it", message.view)
            return
        self.admission.on_members(source, message.view, message.change, message.members)
        if self.standing is Standing.BACKUP:
            self.on_orders(message.orders)
            if self.view == message.view:
                self.performer.settle(message.orders.settled)
                self.log.forget(min(message.orders.safe, self.performer.place))
                self.messaging.buried.forget(message.orders.safe)
                self.primary.take_watermarks(message.watermarks)

    def exclude(self, reason: str, view: ViewId) -> None:
        """It is a member no longer, and asks to become one again."""
        if self.standing is not Standing.OUTSIDE:
            self.turn(Turn.EXCLUDE)
            self.why_outside = reason
            self.succession.forget()
            self.recovery.forget()
            self.admission.begin()
            self.performer.asker.give_up()
        self.promised = max(self.promised, view)

    # Ordering information

    def orders(self) -> Slice | None:
        """What goes with every message: all that is not known to be safe."""
        return self.primary.slice() if self.leads and not self.alone else None

    def on_orders(self, found: Slice) -> None:
        """Ordering information of this group came back, or came from a member."""
        if self.standing in (Standing.PROPOSER, Standing.RECOVERING):
            settled = self.recovers and self.options.require_majority
            if found.view == self.view and not settled:
                self.log.extend(found)
            elif self._missed(found) and not self.options.require_majority:
                self._enter(found)
        elif self.standing is Standing.BACKUP:
            if found.view == self.view == self.promised:
                self.log.extend(found)
            elif found.view == self.promised:
                self._enter(found)

    def _missed(self, found: Slice) -> bool:
        """Whether a view failed before this replica had heard where it began."""
        joins_on = found.after <= self.log.end and max(found.after, self.performer.place) < found.begin
        return joins_on and self.view < found.view < self.promised

    def _enter(self, found: Slice) -> None:
        """The promised view has begun."""
        if self.performer.place >= found.begin:
            self.exclude("it has performed what the new primary does not know", found.view)
            return
        self.log.truncate(found.begin - 1)
        if self.log.extend(found) and self.log.end >= found.begin:
            self.view, self.begin = found.view, found.begin

    # What messaging asks and tells

    def catch_up(self) -> None:
        """Follow the primary."""
        if self.standing is Standing.BACKUP:
            self.follow()

    def on_lineage(self, message: NewPrimaryView) -> None:
        """A remote group has begun a view: replies of two branches must not mix on one connection."""
        for link in self.performer.asker.links_undone(message) if self.leads else ():
            self.on_reset(self.messaging.connections[link])

    def on_outdated(self, party: Party) -> None:
        """A remote group does not know this view yet."""
        if self.leads:
            self.recovery.tell(party)

    def on_room(self, connection: Connection) -> None:
        """The remote group has taken messages."""
        if self.leads:
            self.messaging.pass_on(connection)

    def on_reset(self, connection: Connection) -> None:
        """Close a connection whose other end is gone, at all replicas at the same place."""
        if self.leads and connection.link in self.messaging.connections:
            self.primary.append(CloseOrder(connection.link))
            self.messaging.tell(connection.remote, Reset(connection.link, connection.role))

    def slow_down(self) -> None:
        """Remote groups see no sign of the backups."""
        self.primary.slow_until = self.env.now + self.options.ack_ns

    # States

    def known_lineage(self) -> Views:
        """The views behind this replica, with the one whose beginning it has not performed yet."""
        performed = self.performer.notices.lineage
        return performed if self.performer.view == self.view else extended(performed, self.view, self.begin)

    def explain(self) -> Explanation:
        """What waits here, and for what."""
        return explain_replica(self)

    def next_order(self, connection: Connection) -> MessageOrder | None:
        """The entry for the next message of a connection that can be delivered."""
        count = connection.incoming.deliverable()
        name = self.performer.in_use.name_of(connection.link)
        return MessageOrder(name, connection.incoming.delivered + 1, count) if count else None
