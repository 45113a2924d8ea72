"""One end of a virtual connection at one member (section III.A, Figure 4): what it sent and what it received.

Messages of a direction are counted from 1 since the connection was opened: that is the *index*. All replicas
of a group produce the same messages with the same indexes and timestamps, so a backup has the `sent` list of
its primary without having sent anything. The message sequence number on the wire is the index less the `base`
of the view of the sender's group: it begins with one in every primary view.
"""

from __future__ import annotations

from typing import NamedTuple

from ordercast.core import Nanos
from ordercast.replication.llft.messages import MISSING_MAX, Role
from ordercast.replication.llft.names import Link, Party, ViewId


class Kept(NamedTuple):
    """A message of the application, or a fragment of one."""

    timestamp: int
    more: bool
    payload: bytes


class Outgoing:
    """The messages that this group has produced on a connection."""

    __slots__ = (
        "acked",
        "attempts",
        "base",
        "cleared",
        "due",
        "passed",
        "produced",
        "released",
        "room",
        "sent",
    )

    def __init__(self) -> None:
        self.sent: dict[int, Kept] = {}
        """The sent list: messages that may have to be sent again, by index."""
        self.produced = 0
        """The index of the last message that this member has produced."""
        self.cleared = 0
        """The primary may send what is up to this index."""
        self.passed = 0
        """The index of the last message that left, if this member is the primary."""
        self.base = 0
        self.acked = 0
        """The remote primary has received everything up to this index."""
        self.room = 1
        """How many messages beyond it the remote group has room for."""
        self.released = 0
        """All members of the remote group have received all messages up to this timestamp."""
        self.attempts = 0
        self.due: Nanos = 0
        """When the first message without an acknowledgement is sent again."""

    def produce(self, kept: Kept) -> int:
        """Add a message to the sent list; return its index."""
        self.produced += 1
        self.sent[self.produced] = kept
        return self.produced

    def acknowledge(self, index: int, room: int) -> bool:
        """The remote primary has everything up to an index; False if that is older news."""
        if index < self.acked:
            return False
        self.room = room
        if index == self.acked:
            return False
        self.acked = index
        self.attempts = 0
        return True

    def release(self, timestamp: int) -> None:
        """Forget messages that all members of the remote group have received (Figure 6, garbage
        collection)."""
        if timestamp > self.released:
            self.released = timestamp
        for index in list(self.sent):
            if index > self.acked or self.sent[index].timestamp > self.released:
                break
            del self.sent[index]


class Incoming:
    """The messages of the remote group that this member has received on a connection."""

    __slots__ = (
        "base",
        "delivered",
        "ended",
        "kept",
        "known",
        "partial",
        "released",
        "upto",
        "view",
        "watermark",
    )

    def __init__(self) -> None:
        self.kept: dict[int, Kept] = {}
        """The received list and the delivered list: by index, from what a member of the own group may lack.
        """
        self.upto = 0
        """`receivedUpToMsn`: the index of the last message that was received without a gap."""
        self.delivered = 0
        """The index of the last message that was delivered to the application."""
        self.partial: list[bytes] = []
        """The fragments that were delivered of a message that is not whole yet."""
        self.view: ViewId | None = None
        """The view of the remote group."""
        self.base = 0
        self.watermark = 0
        """The timestamp of the last message that was received without a gap."""
        self.released = 0
        """All members of the own group have received all messages up to this timestamp."""
        self.known = 0
        """The highest index that somebody has named; the message exists, and may have been lost here."""
        self.ended = False
        """Whether nothing more will be delivered. A semi-passive backup may still have to perform what was.
        """

    def take(self, index: int, kept: Kept, limit: int) -> bool:
        """Add a message to the received list; False if it was there, or if there is no room for it: so
        many may wait for their delivery, and more only if the first of them is not whole yet."""
        if self.ended or index <= self.upto or index in self.kept:
            return False
        if index > self.delivered + limit and (index > self.upto + limit or self.deliverable()):
            return False
        self.kept[index] = kept
        while (following := self.kept.get(self.upto + 1)) is not None:
            self.upto += 1
            self.watermark = following.timestamp
        return True

    def missing(self) -> tuple[tuple[int, int], ...]:
        """The nack list: ranges of indexes that are missing, up to the last that is known."""
        if self.ended:
            return ()
        last = max(self.known, max(self.kept, default=0))
        gaps: list[tuple[int, int]] = []
        index = self.upto + 1
        while index <= last and len(gaps) < MISSING_MAX:
            if index in self.kept:
                index += 1
                continue
            first = index
            while index <= last and index not in self.kept:
                index += 1
            gaps.append((first, index - 1))
        return tuple(gaps)

    def room(self, window: int) -> int:
        """How many more messages there is room for. One is always, if the next message is not whole yet: it
        may have more fragments than the window."""
        left = window - (self.upto - self.delivered)
        return left if left > 0 else int(not self.deliverable())

    def deliverable(self) -> int:
        """How many messages make the next whole one; 0 if it is not complete."""
        index = self.delivered + 1
        while index <= self.upto:
            if not self.kept[index].more:
                return index - self.delivered
            index += 1
        return 0

    def forget(self) -> None:
        """Forget messages that are delivered, and that all members have received."""
        for index in list(self.kept):
            if index > self.delivered or self.kept[index].timestamp > self.released:
                break
            del self.kept[index]

    def delivered_watermark(self) -> int:
        """The timestamp of the last message that was delivered, or an earlier one."""
        if self.delivered == self.upto:
            return self.watermark
        known, following = self.kept.get(self.delivered), self.kept[self.delivered + 1]
        return min(self.released, following.timestamp - 1) if known is None else known.timestamp

    def restart(self, delivered: int, watermark: int) -> None:
        """Go on after another message than before, with those of the later ones that were received."""
        self.ended = False
        logged = sorted((index, kept) for index, kept in self.kept.items() if index > delivered)
        self.kept = {}
        self.delivered = self.upto = delivered
        self.watermark = watermark
        for index, kept in logged:
            self.take(index, kept, index)

    def end(self) -> None:
        """Nothing more will be delivered; what was is kept for members that lack it."""
        self.ended = True
        self.discard_after(self.delivered)

    def discard_after(self, index: int) -> None:
        """A new remote primary begins: forget what came after the last message without a gap."""
        for late in [known for known in self.kept if known > index]:
            del self.kept[late]
        if index < self.upto:
            self.upto = max(index, self.delivered)
            known = self.kept.get(self.upto)
            self.watermark = self.watermark if known is None else known.timestamp


class Connection:
    """One end of a connection."""

    __slots__ = (
        "acked_at",
        "first_acks",
        "heard_at",
        "incoming",
        "link",
        "losses",
        "nacked_at",
        "outgoing",
        "owed_since",
        "role",
        "sent_at",
        "unconfirmed",
    )

    def __init__(self, link: Link, role: Role, now: Nanos) -> None:
        self.link = link
        self.role: Role = role
        self.outgoing = Outgoing()
        self.incoming = Incoming()
        self.heard_at = now
        self.sent_at = now
        self.nacked_at: Nanos = 0
        self.owed_since: Nanos | None = None
        """Since when an acknowledgement is owed to the remote primary."""
        self.unconfirmed = 0
        """The index of the last `FirstAck`, if no `SecondAck` has confirmed it."""
        self.acked_at: Nanos = 0
        """When the last `FirstAck` was sent."""
        self.losses = 0
        """How often the remote group asked for messages that it had acknowledged."""
        self.first_acks = 0
        """How many `FirstAck`s have come for the last message."""

    @property
    def party(self) -> Party:
        """The group of this end."""
        return self.link.server if self.role else self.link.client

    @property
    def remote(self) -> Party:
        """The group of the other end."""
        return self.link.client if self.role else self.link.server


class Buried:
    """Connections that have ended at a place in the order of the group. Until all members have come to it,
    one of them may lack messages."""

    def __init__(self) -> None:
        self._ended: dict[Link, tuple[int, Connection]] = {}

    def add(self, connection: Connection, place: int) -> None:
        """A connection has ended: nothing more is taken from it."""
        connection.incoming.end()
        if connection.incoming.kept:
            self._ended[connection.link] = (place, connection)

    def find(self, link: Link) -> Connection | None:
        """A connection whose messages are still here."""
        return self._ended[link][1] if link in self._ended else None

    def forget(self, safe: int) -> None:
        """All members have performed everything up to a place."""
        for link in [link for link, (place, _) in self._ended.items() if place <= safe]:
            self._ended.pop(link)[1].incoming.kept.clear()
