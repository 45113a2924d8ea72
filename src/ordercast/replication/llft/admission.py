"""How replicas come into a group, and how they get its state (section IV.C; Figure 10).

A replica that is not a member asks the primary (`ProposeBackup`). The primary gives it a precedence and tells
all members (`AcceptBackup`). When all of them know, the primary takes a checkpoint, and the newcomer fetches
it in parts; meanwhile it logs messages. Who founds the group is no question: its first members are those of
the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from ordercast.core import Message, Nanos, NodeId, RemoteError
from ordercast.replication.llft.checkpoint import install, read
from ordercast.replication.llft.messages import (
    PART_BYTES,
    AcceptBackup,
    MembersAck,
    ProposeBackup,
    State,
    StateAsk,
    StateOffer,
    Superseded,
)
from ordercast.replication.llft.names import Precedence, ViewId, next_precedence
from ordercast.replication.llft.orders import OrderLog
from ordercast.replication.llft.standing import Standing, Turn

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica

PARTS_AT_ONCE = 16


class Guest:
    """A newcomer, as the primary sees it; in semi-passive replication also a backup that gets an update."""

    __slots__ = ("birth", "checkpoint", "place")

    def __init__(self, birth: int) -> None:
        self.birth = birth
        self.checkpoint: bytes | None = None
        self.place = 0


class Fetch:
    """A checkpoint that this replica fetches."""

    __slots__ = ("offer", "parts", "source")

    def __init__(self, source: NodeId, offer: StateOffer) -> None:
        self.source = source
        self.offer = offer
        self.parts: dict[int, bytes] = {}

    @property
    def count(self) -> int:
        """How many parts it has."""
        return max(1, -(-self.offer.size // PART_BYTES))

    def lacking(self) -> tuple[int, ...]:
        """The next parts to ask for."""
        missing = (part for part in range(self.count) if part not in self.parts)
        return tuple(part for part, _ in zip(missing, range(PARTS_AT_ONCE), strict=False))


class Admission:
    """Both sides of a newcomer's way into the group."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._env = replica.env
        self._guests: dict[Precedence, Guest] = {}
        self.birth = 0
        """When this replica began to ask for its present membership."""
        self.since: Nanos = replica.env.now
        """When it last heard of a primary, while it is outside."""
        self._patience: Nanos = 0
        """How long it waits for a primary until it appoints itself."""
        self._fetch: Fetch | None = None
        self._updated = 0
        """The place of the last state that backups were handed (semi-passive)."""

    # The primary

    def places(self) -> list[int]:
        """The places of checkpoints that are being fetched: nothing after them may be forgotten."""
        return [guest.place for guest in self._guests.values() if guest.checkpoint is not None]

    def forget(self, precedence: Precedence) -> None:
        """A member is gone."""
        self._guests.pop(precedence, None)

    def on_propose(self, source: NodeId, message: ProposeBackup) -> None:
        """A process wants to join (Figure 10, lines 22 to 26)."""
        replica = self._replica
        if not replica.leads:
            return
        if message.known > replica.view:
            replica.succession.give_way(message.known)
            return
        nodes = replica.setting.nodes
        for precedence, guest in self._guests.items():
            if precedence % nodes == source and guest.birth == message.birth:
                self._welcome(precedence, guest)
                return
        stale = [one for one in replica.membership.members if one % nodes == source]
        if stale:
            replica.primary.remove(*stale)
        precedence = next_precedence(source, nodes, replica.membership.highest)
        members = (*replica.membership.members, precedence)
        replica.membership.adopt(members, replica.membership.change + 1)
        guest = self._guests[precedence] = Guest(message.birth)
        replica.primary.add(precedence)
        self._welcome(precedence, guest)

    def _welcome(self, precedence: Precedence, guest: Guest) -> None:
        replica = self._replica
        membership = replica.membership
        self._env.multicast(
            replica.peers,
            AcceptBackup(replica.view, membership.change, membership.members, guest.birth, precedence),
        )

    def on_primary_tick(self) -> None:
        """Repeat what newcomers wait for; take checkpoints when all members know of them."""
        replica = self._replica
        peers = replica.primary.peers
        for precedence, guest in list(self._guests.items()):
            peer = peers.get(precedence)
            if peer is None:
                del self._guests[precedence]
                continue
            known = all(other.change >= replica.membership.change for other in peers.values())
            if guest.checkpoint is None and known:
                self._capture(guest)
            if guest.checkpoint is not None and self._is_told(guest):
                self._offer(precedence, guest)
            else:
                self._welcome(precedence, guest)
        if replica.options.replication == "semi-passive":
            self._update()

    def _is_told(self, guest: Guest) -> bool:
        """Whether the application here was told of what is in a checkpoint: a newcomer tells nothing of that.
        With `require_majority` that may have to wait for the newcomer itself, and the checkpoint says it."""
        performer, options = self._replica.performer, self._replica.options
        return options.require_majority or not guest.birth or performer.notices.settled >= guest.place

    def _capture(self, guest: Guest) -> None:
        performer = self._replica.performer
        for connection in self._replica.messaging.connections.values():
            # The newcomer lacks what was not delivered by now, although all others may have received it.
            incoming = connection.incoming
            incoming.released = min(incoming.released, incoming.delivered_watermark())
        guest.place = performer.place
        guest.checkpoint = performer.state()

    def _update(self) -> None:
        """Semi-passive: hand the state to the backups, if much has happened since the last time."""
        replica = self._replica
        place = replica.performer.place
        if place - self._updated < replica.options.update_every or self._guests:
            return
        self._updated = place
        for precedence, peer in replica.primary.peers.items():
            if peer.synced:
                guest = self._guests[precedence] = Guest(0)
                self._capture(guest)
                self._offer(precedence, guest)

    def _offer(self, precedence: Precedence, guest: Guest) -> None:
        replica, data = self._replica, guest.checkpoint
        if data is not None:
            offer = StateOffer(replica.view, guest.place, len(data), crc32(data))
            self._env.send(precedence % replica.setting.nodes, offer)

    def on_progress(self, precedence: Precedence, performed: int) -> None:
        """A member says how far it is; it needs no checkpoint of an earlier place any more."""
        guest = self._guests.get(precedence)
        if guest is not None and guest.checkpoint is not None and guest.birth and performed >= guest.place:
            del self._guests[precedence]

    # Checkpoints on their way

    def on_transfer(self, source: NodeId, message: Message) -> None:
        """An offer, a question, or a part."""
        match message:
            case StateOffer():
                self._on_offer(source, message)
            case StateAsk():
                self._on_ask(source, message)
            case State():
                self._on_part(source, message)

    def _on_ask(self, source: NodeId, message: StateAsk) -> None:
        replica = self._replica
        for precedence, guest in list(self._guests.items()):
            if precedence % replica.setting.nodes != source or guest.place != message.place:
                continue
            data = guest.checkpoint
            if data is None or message.view != replica.view:
                continue
            peer = replica.primary.peers.get(precedence)
            if peer is not None:
                peer.heard_at = self._env.now
            if not message.parts:  # an update has arrived
                del self._guests[precedence]
                return
            for part in message.parts:
                piece = data[part * PART_BYTES : (part + 1) * PART_BYTES]
                self._env.send(source, State(replica.view, guest.place, part, piece))

    def _on_offer(self, source: NodeId, message: StateOffer) -> None:
        replica = self._replica
        expected = replica.standing is Standing.ADMITTED or self._wants_update(message)
        if message.view != replica.promised or not expected:
            if self._had(message):
                self._env.send(source, StateAsk(message.view, message.place, ()))
            return
        if self._fetch is None or self._fetch.offer != message:
            self._fetch = Fetch(source, message)
        self._ask()

    def _wants_update(self, message: StateOffer) -> bool:
        replica = self._replica
        performer = replica.performer
        passive = replica.standing is Standing.BACKUP and not performer.active
        return passive and performer.executed < message.place <= performer.place

    def _had(self, message: StateOffer) -> bool:
        replica = self._replica
        return replica.standing is Standing.BACKUP and replica.performer.executed >= message.place

    def _ask(self) -> None:
        fetch = self._fetch
        if fetch is not None:
            self._env.send(fetch.source, StateAsk(fetch.offer.view, fetch.offer.place, fetch.lacking()))

    def _on_part(self, source: NodeId, message: State) -> None:
        fetch = self._fetch
        if fetch is None or source != fetch.source or message.place != fetch.offer.place:
            return
        if message.part >= fetch.count or message.part in fetch.parts:
            return
        fetch.parts[message.part] = message.data
        if len(fetch.parts) == fetch.count:
            self._install(fetch)
        elif len(fetch.parts) % PARTS_AT_ONCE == 0:
            self._ask()

    def _install(self, fetch: Fetch) -> None:
        self._fetch = None
        replica = self._replica
        data = b"".join(fetch.parts[part] for part in range(fetch.count))
        if len(data) != fetch.offer.size or crc32(data) != fetch.offer.check:
            return  # parts of two checkpoints; the primary offers it again
        record = read(data)
        performer = replica.performer
        if replica.standing is Standing.BACKUP:
            if performer.executed < record.place <= performer.place and not performer.active:
                performer.take(record)
                install(record, replica.messaging, keeps_delivered=True)
                performer.update(record)
                self._env.send(fetch.source, StateAsk(fetch.offer.view, fetch.offer.place, ()))
            return
        if replica.standing is not Standing.ADMITTED:
            return
        try:
            performer.take(record)
        except RemoteError:  # the primary would offer it again and again, but not to another newcomer
            replica.exclude("the state that the primary sent cannot be read", replica.promised)
            raise
        performer.notices.undo(record.lineage)
        install(record, replica.messaging)
        performer.restore(record, replica.membership.members)
        performer.active = replica.options.replication == "semi-active"
        replica.log = OrderLog(record.place)
        replica.view, replica.begin = record.lineage[-1]
        replica.remembers = True
        replica.succession.behind = False
        replica.turn(Turn.RESTORE)
        replica.heard_at = self._env.now
        replica.tell_progress()

    # The newcomer

    def begin(self) -> None:
        """Ask to be a member, as a new process."""
        self._fetch = None
        self._guests.clear()
        self.birth = 0
        self.since = self._env.now
        self._patience = self._draw_patience()

    def _draw_patience(self) -> Nanos:
        """How long it waits for a primary before it appoints itself: not all at a time, and those that have a
        later state first."""
        replica, unit = self._replica, self._replica.options.regroup_ns
        nodes = replica.setting.parties[replica.party]
        turns = 1 + sum(node < self._env.me for node in nodes)
        if replica.succession.behind:
            turns += 2 * len(nodes)
        return unit * turns + self._env.rng.randrange(unit // 2 + 1)

    def on_primary(self, view: ViewId) -> None:
        """A primary of this view, or a later one, is alive."""
        if view >= self._replica.promised:
            self.since = self._env.now

    def on_tick(self) -> None:
        """Ask the primary again; go on without one, if there seems to be none."""
        replica, now = self._replica, self._env.now
        if replica.standing is Standing.ADMITTED:
            if now - replica.heard_at > 4 * replica.options.detect_ns:
                replica.exclude("the primary that admitted it is silent", replica.promised)
            elif self._fetch is not None:
                self._ask()
            return
        if replica.remembers and now - self.since > self._patience:
            self.since = now
            self._patience = self._draw_patience()
            replica.succession.appoint()
            return
        if not self.birth:
            self.birth = max(1, now)
        if replica.peers:
            self._env.multicast(replica.peers, ProposeBackup(self.birth, replica.promised))

    def on_accept(self, source: NodeId, message: AcceptBackup) -> None:
        """The primary has admitted a member, perhaps this one (Figure 10, lines 15 to 19 and 43 to 46)."""
        replica = self._replica
        view = message.view
        if source != replica.setting.primary_node(view):
            raise RemoteError(f"node {source} admits a member to view {view}, whose primary it is not")
        replica.membership.note(message.precedence)
        mine = message.precedence % replica.setting.nodes == self._env.me
        if not mine:
            self.on_members(source, view, message.change, message.members)
            return
        if view < replica.promised:
            self._env.send(source, Superseded(replica.promised))
            return
        if message.birth != self.birth or replica.standing not in (Standing.OUTSIDE, Standing.ADMITTED):
            return
        if replica.standing is Standing.OUTSIDE or message.precedence != replica.precedence:
            replica.turn(Turn.ADMIT)
            self._fetch = None
        replica.precedence = message.precedence
        replica.promised = view
        replica.membership.adopt(message.members, message.change)
        replica.heard_at = self._env.now
        self._env.send(source, MembersAck(view, message.precedence, message.change))

    def on_members(self, source: NodeId, view: ViewId, change: int, members: tuple[int, ...]) -> None:
        """The primary has added or removed members (Figure 10, lines 43 to 46)."""
        replica, membership = self._replica, self._replica.membership
        if view != replica.promised or source != replica.setting.primary_node(view) or replica.leads:
            return
        if change < membership.change:
            return  # it is older than what this member knows
        if replica.precedence not in members:
            membership.note(*members)
            replica.exclude("the primary has removed it", view)
            return
        if change > membership.change:
            membership.adopt(members, change)
            if replica.standing in (Standing.BACKUP, Standing.ADMITTED):
                self._env.send(source, MembersAck(view, replica.precedence, change))
        replica.heard_at = self._env.now
