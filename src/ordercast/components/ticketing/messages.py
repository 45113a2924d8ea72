"""What members send each other.

*Envelopes* go through the view-synchronous layer: all members of a view get them, those of one sender in
order. Every envelope has the tickets that its sender issued since the last one, and its ticket clock:
whatever ticket the sender issues later has a higher number. *Signals* go from one member to another directly,
and may be lost.
"""

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from ordercast.core import Codec, Groups, Message, NodeId, Payload, message_types

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Sequencer(NamedTuple):
    """The descriptor of an active member: its node, and the number of its role (section 5)."""

    node: Number
    number: Number


class Key(NamedTuple):
    """A message in the order: who sent it, and its count among those of its sender in its stay."""

    sender: Number
    serial: Number


class Ticket(NamedTuple):
    """The place of a message: tickets are ordered by their numbers, then by their issuers."""

    number: Number
    issuer: Number
    key: Key


class Header(NamedTuple):
    """What each envelope begins with."""

    view: Number
    """The view in which it was made. Its tickets count in this view only."""
    clock: Number
    since_ns: int
    """When it was made, or its message submitted, by the clock of its sender."""
    place: Number
    """How much of the order of this view the sender has."""
    tickets: tuple[tuple[Number, Number, Number], ...]
    """Number, sender and count of each."""


class Envelope(Message, frozen=True):
    """Base of all that goes through the view-synchronous layer."""

    header: Header


class DataMessage(Envelope, frozen=True, tag=250):
    """A message of an application, and who shall issue its ticket."""

    count: Number
    sequencer: Sequencer
    groups: Groups
    payload: Payload


class Switch(Envelope, frozen=True, tag=251):
    """goingToActive or goingToPassive: it takes effect at its place in the order."""

    count: Number
    sequencer: Sequencer
    active: bool
    instead: tuple[Number, ...] = ()
    """To passive: the members on whom the sender relies. If none of them is active then, nothing changes."""


class Reassign(Envelope, frozen=True, tag=252):
    """Another member shall issue the tickets of messages that are not ordered yet: counts in ]after,
    upto]."""

    after: Number
    upto: Number
    sequencer: Sequencer


class Tickets(Envelope, frozen=True, tag=253):
    """Tickets, or a clock, that found no message to ride on in time."""


class Probe(Message, frozen=True, tag=254):
    """Asks for an echo, to measure the delay."""

    sent_ns: int


class Echo(Message, frozen=True, tag=255):
    """Answers a probe."""

    sent_ns: int


class Progress(Message, frozen=True, tag=256):
    """How much of the order of a view the sender has; `ask` wants the same from the other."""

    view: Number
    place: Number
    ask: bool


ENVELOPES = Codec(message_types(DataMessage, Switch, Reassign, Tickets))
MESSAGES = message_types(Probe, Echo, Progress)
"""The signals, for the codec of a plan."""

Orderable: TypeAlias = DataMessage | Switch


def tickets_of(source: NodeId, header: Header) -> list[Ticket]:
    """The tickets in a header."""
    return [Ticket(number, source, Key(sender, count)) for number, sender, count in header.tickets]
