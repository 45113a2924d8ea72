"""What a primary does: order, answer, and look after its backups (sections III.B to III.D, IV.C)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import Nanos, NodeId, RemoteError
from ordercast.replication.llft.membership import Peer
from ordercast.replication.llft.messages import (
    CLIENT,
    Heartbeat,
    MembersAck,
    Progress,
    RemoveBackup,
    Superseded,
    Watermarks,
)
from ordercast.replication.llft.names import Link, Precedence
from ordercast.replication.llft.orders import ENTRIES_MAX, AnyEntry, Slice

if TYPE_CHECKING:
    from ordercast.replication.llft.replica import Replica

RUNS_MAX = ENTRIES_MAX // 2
"""A primary waits for its backups before so many entries go with each message."""


class Primary:
    """The part of a replica that works while it is the primary."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._env = replica.env
        self.peers: dict[Precedence, Peer] = {}
        """The backups."""
        self.safe = 0
        """All backups with a state have performed everything up to this place."""
        self.settled = 0
        """What is up to this place outlives the primary."""
        self.slow_until: Nanos = 0
        self.stalled_since: Nanos | None = None
        """Since when the primary waits for its backups."""
        self._marks: dict[Precedence, dict[Link, int]] = {}
        """For each backup: up to which timestamp it has received the messages of each connection."""
        self._spread = 0
        """The place up to which backups were sent ordering information at once."""

    def begin(self, *, synced: bool) -> None:
        """Look after the present members from now on."""
        now, mine = self._env.now, self._replica.precedence
        others = [other for other in self._replica.membership.members if other != mine]
        self.peers = {other: Peer(now, synced=synced) for other in others}
        log = self._replica.log
        self.settled = min(self._replica.performer.notices.settled, log.end)
        self.safe = max(log.after, self.settled)
        if not self._replica.options.require_majority:
            self.settled = self.safe
        for peer in self.peers.values():
            peer.performed = self.settled
        self.stalled_since = None
        self._spread = self.safe
        self._marks.clear()

    def forgive(self) -> None:
        """This process stood still, so it could not hear the backups."""
        for peer in self.peers.values():
            peer.heard_at = self._env.now

    def synced(self) -> list[Peer]:
        """The backups that have the state."""
        return [peer for peer in self.peers.values() if peer.synced]

    # Ordering

    def order(self) -> None:
        """Order and perform what has come, in the order in which it came (Figure 6, delivery at the
        primary)."""
        replica = self._replica
        messaging, ready = replica.messaging, replica.messaging.ready
        while ready:
            if self._must_wait():
                return
            link = next(iter(ready))
            del ready[link]
            connection = messaging.connections.get(link)
            if connection is None:
                continue
            while (entry := replica.next_order(connection)) is not None and not self._must_wait():
                self.append(entry)
            if replica.next_order(connection) is not None:
                ready[link] = None
                return

    def ask(self) -> None:
        """Order what operations ask other groups."""
        asker = self._replica.performer.asker
        while asker.wants and not self._must_wait():
            self.append(asker.next_order())

    def append(self, entry: AnyEntry) -> None:
        """Order something and perform it."""
        replica = self._replica
        place = replica.log.append(entry)
        for at in range(place, replica.log.end + 1):
            replica.performer.step(at, replica.log.at(at))
        self.settle()

    def _must_wait(self) -> bool:
        """Whether the backups are too far behind (intra-group flow control)."""
        log, options = self._replica.log, self._replica.options
        seats = self._replica.performer.seats
        waits = self._env.now < self.slow_until or seats.silent
        if not waits and seats.left_at is not None:
            waits = self._replica.seating.hands_over
        if not waits and log.end - self.safe >= options.behind_max:
            waits = True
        if not waits and log.end - self.safe >= RUNS_MAX:
            waits = log.runs(self.safe) >= RUNS_MAX
        if not waits:
            self.stalled_since = None
        elif self.stalled_since is None:
            self.stalled_since = self._env.now
        return waits

    def settle(self) -> None:
        """Work out how far all backups are, and what outlives this primary."""
        replica = self._replica
        performed = replica.performer.place
        self.safe = max(self.safe, min((performed, *(peer.performed for peer in self.synced()))))
        held = self._held_by_majority() if replica.options.require_majority else self.safe
        if held > self.settled:
            self.settled = held
        replica.performer.settle(self.settled)
        keep = min([self.safe, *replica.admission.places()])
        replica.messaging.buried.forget(keep)
        if keep - replica.log.after > 1024:
            replica.log.forget(keep)

    def _held_by_majority(self) -> int:
        """The last place that a majority of those with a seat has performed."""
        replica = self._replica
        seats, nodes = replica.performer.seats.since, replica.setting.nodes
        places = [peer.performed for one, peer in self.peers.items() if peer.synced and one % nodes in seats]
        if self._env.me in seats:
            places.append(replica.performer.place)
        places.sort(reverse=True)
        needed = replica.majority_of(seats)
        return places[needed - 1] if len(places) >= needed else 0

    def slice(self) -> Slice:
        """All ordering information that is not known to be safe."""
        replica = self._replica
        after = max(self.safe, replica.log.after)
        entries = replica.log.part(after)
        return Slice(replica.view, replica.begin, after, entries, self.safe, self.settled)

    def spread(self) -> None:
        """If nothing leaves before backups have it, tell them at once."""
        replica = self._replica
        if replica.options.require_majority and replica.log.end > self._spread and self.peers:
            self._spread = replica.log.end
            self._beat(marks=False)

    # Backups

    def on_tick(self) -> None:
        """Send a heartbeat, and look after the members."""
        replica, now = self._replica, self._env.now
        silent: list[Precedence] = []
        for precedence, peer in self.peers.items():
            if peer.change < replica.membership.change:
                peer.attempts += 1
            patience = replica.membership.patience(precedence, replica.options.detect_ns)
            if now - peer.heard_at > patience or peer.attempts > replica.options.attempts:
                silent.append(precedence)
        if self._holds_up(now):
            ready = [one for one, peer in self.peers.items() if peer.synced]
            silent += sorted(ready, key=lambda one: self.peers[one].performed)[:1]
        if silent:
            self.remove(*silent)
        replica.admission.on_primary_tick()
        replica.recovery.on_primary_tick()
        self.settle()
        self.release()
        self._beat(marks=True)

    def _holds_up(self, now: Nanos) -> bool:
        options = self._replica.options
        stalled = self.stalled_since is not None and now - self.stalled_since > options.regroup_ns
        return stalled and options.slow_backup == "remove"

    def _beat(self, *, marks: bool) -> None:
        replica = self._replica
        members = replica.membership
        after = min([replica.log.end, *(peer.performed for peer in self.peers.values() if peer.synced)])
        after = max(min([after, *replica.admission.places()]), replica.log.after)
        part = Slice(
            replica.view, replica.begin, after, replica.log.part(after, RUNS_MAX), self.safe, self.settled
        )
        released = tuple(
            (connection.link, CLIENT, connection.incoming.released)
            for connection in (replica.messaging.connections.values() if marks else ())
        )
        told = {one % replica.setting.nodes for one in members.members} | replica.performer.seats.since.keys()
        self._env.multicast(
            tuple(node for node in replica.peers if node in told),
            Heartbeat(replica.view, members.change, members.members, part, released),
        )

    def remove(self, *gone: Precedence) -> None:
        """Remove members from the group."""
        replica = self._replica
        members = tuple(one for one in replica.membership.members if one not in gone)
        replica.membership.adopt(members, replica.membership.change + 1)
        for precedence in gone:
            self.peers.pop(precedence, None)
            self._marks.pop(precedence, None)
            replica.admission.forget(precedence)
        for peer in self.peers.values():
            peer.attempts = 0
        removal = RemoveBackup(replica.view, replica.membership.change, members)
        self._env.multicast(replica.peers, removal)
        self.settle()

    def remove_node(self, node: NodeId) -> None:
        """Remove a replica that has left."""
        gone = [one for one in self._replica.membership.members if one % self._replica.setting.nodes == node]
        if gone:
            self.remove(*gone)

    def add(self, precedence: Precedence) -> None:
        """Look after a new member, which has no state yet."""
        self.peers[precedence] = Peer(self._env.now, synced=False)

    def on_members_ack(self, source: NodeId, message: MembersAck) -> None:
        """A member knows of a change."""
        peer = self._peer(source, message.precedence)
        if peer is not None and self._replica.leads and message.view == self._replica.view:
            peer.change = max(peer.change, min(message.change, self._replica.membership.change))
            peer.heard_at = self._env.now
            if peer.change == self._replica.membership.change:
                peer.attempts = 0

    def on_progress(self, source: NodeId, message: Progress) -> None:
        """A backup is alive, and says how far it is."""
        replica = self._replica
        if message.view < replica.view:
            self._env.send(source, Superseded(replica.view))
            return
        peer = self._peer(source, message.precedence)
        if not replica.leads or message.view != replica.view or peer is None:
            return
        if message.performed > replica.log.end or message.ordered > replica.log.end:
            raise RemoteError(f"node {source} is at place {message.performed}, which was never ordered")
        peer.heard_at = self._env.now
        peer.performed = max(peer.performed, message.performed)
        peer.synced = True  # only a backup with the state of the group says this
        if message.change == replica.membership.change:
            peer.change, peer.attempts = message.change, 0
        replica.admission.on_progress(message.precedence, message.performed)
        if message.watermarks:
            self._note_watermarks(message.precedence, message.watermarks)
        self.settle()

    def _peer(self, source: NodeId, precedence: Precedence) -> Peer | None:
        if precedence % self._replica.setting.nodes != source:
            raise RemoteError(f"node {source} claims precedence {precedence}, which is not its own")
        return self.peers.get(precedence)

    # Watermarks (section III.D)

    def watermarks(self) -> Watermarks:
        """Up to which timestamp this member has received the messages of each connection."""
        return tuple(
            (connection.link, CLIENT, connection.incoming.watermark)
            for connection in self._replica.messaging.connections.values()
        )

    def _note_watermarks(self, precedence: Precedence, watermarks: Watermarks) -> None:
        self._marks[precedence] = {link: mark for link, _, mark in watermarks}

    def release(self) -> None:
        """Forget received messages that all members have."""
        replica = self._replica
        if replica.admission.places():
            return  # a newcomer may lack what the others have
        marks = [self._marks.get(precedence, {}) for precedence in self.peers]
        for connection in replica.messaging.connections.values():
            incoming = connection.incoming
            lowest = min([incoming.watermark, *(known.get(connection.link, 0) for known in marks)])
            incoming.released = max(lowest, incoming.released)
            incoming.forget()

    def take_watermarks(self, watermarks: Watermarks) -> None:
        """A backup learns what all members have received."""
        connections = self._replica.messaging.connections
        for link, _, mark in watermarks:
            connection = connections.get(link)
            if connection is not None:
                connection.incoming.released = max(mark, connection.incoming.released)
                connection.incoming.forget()
