"""What the members of a group send each other.

A protocol that embeds view synchrony puts `MESSAGES` into its codec beside its own.
"""

from typing import Annotated

import msgspec

from ordercast.components.membership.record import Counts, Natural, Node, Nodes, Received, ViewRecord
from ordercast.core import Message, Payload, message_types

HEARS_BYTES_MAX = 1024

Chunk = Payload


class Data(Message, frozen=True, tag=180):
    """A message of a member in a view, from the member itself or from another one that has it."""

    view: Natural
    sender: Node
    place: Natural
    """How many messages the member had sent in this view before."""
    payload: Payload


class Beat(Message, frozen=True, tag=181):
    """A heartbeat: whom its sender hears, and how many messages of each member it has received."""

    view: Natural
    incarnation: Natural
    ballot: Natural
    """The ballot that it has promised in the change that is under way; 0 if there is none."""
    asks: bool
    """It asks for a change: to be let go, or to receive other groups."""
    abstains: bool
    """It has lost its state, and does not vote until it sits again."""
    hears: Annotated[bytes, msgspec.Meta(max_length=HEARS_BYTES_MAX)]
    """A bit for each member and voter of the view, in ascending order."""
    received: Counts
    """Empty if it has no seat."""


class Join(Message, frozen=True, tag=182):
    """A node asks to come in; it knows of views up to this one."""

    view: Natural
    incarnation: Natural
    groups: Received
    """What it wants to receive."""


class BeginChange(Message, frozen=True, tag=183):
    """Phase 1a of the agreement on the view after `base`: stop sending, and tell what you have."""

    ballot: Natural
    base: ViewRecord


class Stopped(Message, frozen=True, tag=184):
    """Phase 1b: the value accepted before, and what its sender has received of each seat."""

    view: Natural
    """The base."""
    ballot: Natural
    incarnation: Natural
    votes: bool
    """Whether it is a voter that may promise; one that lost its state may not, until it sits again."""
    wishes: Received | None
    """The groups that it wants to receive in the next view; None if it does not want to sit there."""
    accepted_ballot: Natural
    accepted: ViewRecord | None
    received: Counts | None
    """None if it has no seat in the base, or has nothing of it."""


class Cut(Message, frozen=True, tag=185):
    """Get all messages of each seat up to this count; each of the holders has those of one seat."""

    view: Natural
    ballot: Natural
    cut: Counts
    holders: Nodes


class Flushed(Message, frozen=True, tag=186):
    """The sender of this has everything up to the cut of this ballot."""

    view: Natural
    ballot: Natural


class Proposal(Message, frozen=True, tag=187):
    """Phase 2a."""

    ballot: Natural
    value: ViewRecord


class Agreed(Message, frozen=True, tag=188):
    """Phase 2b."""

    view: Natural
    ballot: Natural


class Outbid(Message, frozen=True, tag=189):
    """The ballot is outdated: the sender of this has promised a higher one."""

    view: Natural
    ballot: Natural


class Install(Message, frozen=True, tag=190):
    """A view was decided."""

    record: ViewRecord


class Resend(Message, frozen=True, tag=191):
    """Asks for the messages of a member in a view from one place up to before another."""

    view: Natural
    sender: Node
    first: Natural
    end: Natural


class StateRequest(Message, frozen=True, tag=192):
    """A newcomer asks for the state at the beginning of a view, from this byte on."""

    view: Natural
    offset: Natural


class StateChunk(Message, frozen=True, tag=193):
    """A piece of the state at the beginning of a view."""

    view: Natural
    offset: Natural
    size: Natural
    """The size of the whole state."""
    data: Chunk


MESSAGES = message_types(
    Data,
    Beat,
    Join,
    BeginChange,
    Stopped,
    Cut,
    Flushed,
    Proposal,
    Agreed,
    Outbid,
    Install,
    Resend,
    StateRequest,
    StateChunk,
)
