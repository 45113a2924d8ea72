"""The order: messages that wait, their tickets, and the rule by which they are ordered (section 4.1).

This is the part that is the same at all members. They get the same envelopes within a view, so they come to
the same order, the same configurations and the same counts, although not at the same time. When a view ends,
all have the same tickets, so all order them without waiting for anybody, and go on from the same state.

A ticket is ordered when every active member of the configuration is known to be past it: none can issue a
ticket with a lower place any more. Its message must have come too. If a message has not come when the view
ends, nobody has it, and its ticket is void. A ticket counts in the view in which it was issued; what is not
ordered at the end of the view gets another one.
"""

from collections.abc import Iterator
from copy import deepcopy
from enum import Enum
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from ordercast.components.ticketing.configuration import Configuration
from ordercast.components.ticketing.messages import (
    DataMessage,
    Envelope,
    Key,
    Orderable,
    Reassign,
    Sequencer,
    Switch,
    Ticket,
    tickets_of,
)
from ordercast.core import Nanos, NodeId


class Effect(Enum):
    """What a message does when it is ordered."""

    DATA = "data"
    SWITCHED = "switched"
    ABORTED = "aborted"
    """A switch that changes nothing: the last active member stays active, or the last one that its sender
    relied on is passive now."""


class Entry(msgspec.Struct):
    """A message that waits for its place."""

    key: Key
    message: Orderable
    sequencer: Sequencer
    """Who shall issue its ticket now."""
    since: Nanos


class Ordered(NamedTuple):
    """A message in its place."""

    ticket: Ticket
    message: Orderable
    effect: Effect


class Stay(NamedTuple):
    """Which stay of a node its last ordered message is of, named by the view in which it began; its count."""

    began: int
    serial: int


class Ordering(msgspec.Struct):
    """The state that all members share."""

    configuration: Configuration = msgspec.field(default_factory=Configuration)
    waiting: dict[Key, Entry] = msgspec.field(default_factory=dict)
    tickets: list[Ticket] = msgspec.field(default_factory=list)
    """A heap."""
    counts: dict[NodeId, int] = msgspec.field(default_factory=dict)
    """The last ordered message of each member in its stay."""
    stays: dict[NodeId, int] = msgspec.field(default_factory=dict)
    """The view with which the stay of each member began."""
    last: dict[NodeId, Stay] = msgspec.field(default_factory=dict)
    """The last ordered message of each node that ever sent one."""
    clocks: dict[NodeId, int] = msgspec.field(default_factory=dict)
    """What the ticket clock of each member has shown to all."""
    top: int = 0
    """The highest number that any clock has shown to all."""
    place: int = 0
    """How many messages were ordered in this view."""
    anew: bool = False
    """The group begins anew with the next view: all its members were restarted, and nobody has its state."""
    strangers: tuple[NodeId, ...] = ()
    """Members of a group that begins anew whose clocks are not known yet. Until they are, nobody issues
    tickets: a member may have delivered higher ones in an earlier life."""

    # What comes

    def receive(self, source: NodeId, envelope: Envelope, now: Nanos) -> list[Entry]:
        """Take an envelope. The result has the messages that may need a ticket now."""
        header = envelope.header
        self.clocks[source] = max(header.clock, self.clocks.get(source, 0))
        self.top = max(self.top, header.clock)
        if header.view == self.configuration.view:
            for ticket in tickets_of(source, header):
                heappush(self.tickets, ticket)
        if source in self.strangers:
            self.strangers = tuple(node for node in self.strangers if node != source)
        if header.view < self.stays.get(source, 0):
            return []  # from an earlier stay of its sender, which counts anew now
        if isinstance(envelope, DataMessage | Switch):
            return self._take(source, envelope, now)
        return self._rebind(source, envelope) if isinstance(envelope, Reassign) else []

    def _take(self, source: NodeId, message: Orderable, now: Nanos) -> list[Entry]:
        if message.count <= self.counts.get(source, 0):
            return []
        key = Key(source, message.count)
        entry = self.waiting[key] = Entry(key, message, message.sequencer, now)
        return [entry]

    def _rebind(self, source: NodeId, reassign: Reassign) -> list[Entry]:
        keys = (Key(source, count) for count in range(reassign.after + 1, reassign.upto + 1))
        entries = [self.waiting[key] for key in keys if key in self.waiting]
        for entry in entries:
            entry.sequencer = reassign.sequencer
        return entries

    # What follows

    def following(self, me: NodeId, clock: int) -> Ordered | None:
        """The next message in the order, if its place is certain; `clock` is that of this member itself."""
        while self.tickets:
            ticket = self.tickets[0]
            if self._is_open(ticket.key):
                if ticket.key not in self.waiting or next(self.laggards(ticket, me, clock), None) is not None:
                    return None
                heappop(self.tickets)
                return self._order(ticket)
            heappop(self.tickets)
        return None

    def laggards(self, ticket: Ticket, me: NodeId, clock: int) -> Iterator[NodeId]:
        """The active members that may still issue tickets before this one, as far as this member knows."""
        number, issuer, _ = ticket
        return (
            node
            for node in self.configuration.actives
            if node != issuer
            and ((clock if node == me else self.clocks.get(node, 0)) + 1, node) < (number, issuer)
        )

    def _is_open(self, key: Key) -> bool:
        """Whether a message is not ordered yet."""
        return key.serial > self.counts.get(key.sender, 0)

    def _order(self, ticket: Ticket) -> Ordered:
        key = ticket.key
        message = self.waiting.pop(key).message
        self.counts[key.sender] = key.serial
        self.last[key.sender] = Stay(self.stays.get(key.sender, 0), key.serial)
        self.place += 1
        if isinstance(message, DataMessage):
            return Ordered(ticket, message, Effect.DATA)
        in_vain = not message.active and not set(message.instead).intersection(self.configuration.actives)
        switched = not in_vain and self.configuration.switch(key.sender, message.active)
        return Ordered(ticket, message, Effect.SWITCHED if switched else Effect.ABORTED)

    # Views

    def close(self) -> list[Ordered]:
        """The view ends: order every ticket whose message has come and is the next of its sender.

        The others are void. A message whose ticket was of an earlier view has none, and later ones of its
        sender must not pass it.
        """
        ordered = []
        for ticket in sorted(self.tickets):
            sender, serial = ticket.key
            if ticket.key in self.waiting and serial == self.counts.get(sender, 0) + 1:
                ordered.append(self._order(ticket))
        self.tickets.clear()
        return ordered

    def closed(self) -> "Ordering":
        """The state in which the view would end now, for a newcomer."""
        copy = deepcopy(self)
        copy.close()
        return copy

    def enter(
        self,
        view: int,
        members: tuple[NodeId, ...],
        newcomers: tuple[NodeId, ...],
        begin_active: frozenset[NodeId] | None,
    ) -> None:
        """A view begins: what is not ordered of members that left is lost; newcomers begin to count."""
        stayed = [node for node in members if node in self.configuration.members and node not in newcomers]
        entering = tuple(node for node in members if node not in stayed)
        self.configuration.enter(view, members, entering, begin_active)
        self.waiting = {key: entry for key, entry in self.waiting.items() if key.sender in stayed}
        self.counts = dict.fromkeys(entering, 0) | {node: self.counts[node] for node in stayed}
        self.stays = dict.fromkeys(entering, view) | {node: self.stays[node] for node in stayed}
        self.strangers = tuple(node for node in members if self.anew or node in self.strangers)
        self.anew = False
        self.clocks = dict.fromkeys(members, self.top)
        self.place = 0
