"""The messages of LLFT (Figures 2 and 7).

Connections carry `Request`, `Reply`, `FirstAck`, `SecondAck`, `Nack` and `KeepAlive` between groups. All
others stay within a group.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from ordercast.core import Message, Payload, message_types
from ordercast.replication.llft.lineage import Views
from ordercast.replication.llft.names import Link, Natural, Party, Precedence, ViewId
from ordercast.replication.llft.orders import Slice

Role: TypeAlias = Literal[0, 1]
CLIENT: Role = 0
"""The end of a connection that opened it."""
SERVER: Role = 1

MISSING_MAX = 1024
Missing: TypeAlias = Annotated[tuple[tuple[Natural, Natural], ...], msgspec.Meta(max_length=MISSING_MAX)]
"""Ranges of missing messages: the first and the last index of each."""
MEMBERS_MAX = 4096
Members: TypeAlias = Annotated[tuple[Precedence, ...], msgspec.Meta(max_length=MEMBERS_MAX)]
"""The precedences of the members of a group, ascending: the first is the primary, and so on by rank."""
LINKS_MAX = 65_536
PART_BYTES = 60_000
ASKED_MAX = 64


class Head(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The header of a message on a connection (Figure 2). Source and destination follow from link and
    role."""

    link: Link
    role: Role
    """Which end of the connection sent it."""
    view: ViewId
    """The primary view number, and the precedence of the primary."""
    base: Natural
    """The index after which the messages of this view are numbered from one again."""
    last: Natural
    """The index of the last message sent on the connection."""
    ack_view: ViewId | None
    """The view of the message that is acknowledged."""
    ack: Natural
    """The index of the last message that was received without a gap."""
    room: Natural
    """How many more messages the receiver has room for."""
    back: Natural
    """The timestamp watermark: all members of the group have received all messages up to it."""
    timestamp: Natural
    """The Lamport clock of the group."""
    orders: Slice | None = None
    """Ordering information of the own group that is not known to be safe."""
    reflected: Slice | None = None
    """Ordering information of the other group, handed back."""


class Letter(Message, frozen=True):
    """A message of the application on a connection. Its index counts all of this direction since the
    connection was opened; its message sequence number in its view is the index less the base of the view."""

    head: Head
    index: Annotated[int, msgspec.Meta(ge=1, le=(1 << 63) - 1)]
    timestamp: Natural
    """The timestamp of the message, the same at all replicas of its source; that of the head is the present.
    """
    more: bool
    """The next message continues this one, which was too large for one."""
    payload: Payload


class Request(Letter, frozen=True, tag=310):
    """From the group that opened the connection."""


class Reply(Letter, frozen=True, tag=311):
    """To the group that opened the connection."""


class FirstAck(Message, frozen=True, tag=312):
    """A primary acknowledges what it has received, for want of a message of its own that would."""

    head: Head


class SecondAck(Message, frozen=True, tag=313):
    """A member of the source group has itself produced the messages that a `FirstAck` acknowledges."""

    link: Link
    role: Role
    """The end that sends this, and has sent the messages."""
    index: Natural


class Nack(Message, frozen=True, tag=314):
    """Messages are missing. A primary asks the remote group, a backup its own."""

    link: Link
    role: Role
    """The end whose messages are missing."""
    missing: Missing


class KeepAlive(Message, frozen=True, tag=315):
    """The connection is idle and alive."""

    head: Head


class Copy(Message, frozen=True, tag=316):
    """A member answers the `Nack` of another member of its group with a message that it has received."""

    link: Link
    role: Role
    index: Natural
    timestamp: Natural
    more: bool
    payload: Payload


class Reset(Message, frozen=True, tag=317):
    """The connection does not exist any more, or never did."""

    link: Link
    role: Role
    """The end that sends this."""


Watermarks: TypeAlias = Annotated[tuple[tuple[Link, Role, Natural], ...], msgspec.Meta(max_length=LINKS_MAX)]
"""For each connection and sending end: a timestamp up to which all messages were received."""


class Heartbeat(Message, frozen=True, tag=318):
    """Primary to the group: it is alive, who is a member, what it has ordered, and what all have received."""

    view: ViewId
    change: Natural
    """How many changes of its members the view had."""
    members: Members
    orders: Slice
    watermarks: Watermarks


class Progress(Message, frozen=True, tag=319):
    """Backup to primary: it is alive, and how far it is (the heartbeat of a backup)."""

    view: ViewId
    precedence: Precedence
    change: Natural
    ordered: Natural
    """It has the ordering information up to this place."""
    performed: Natural
    """It has performed the operations up to this place."""
    watermarks: Watermarks


class ProposePrimary(Message, frozen=True, tag=320):
    """A backup denounces the primary of its view, and appoints itself (Figure 9)."""

    view: ViewId
    """The proposed view."""
    members: Members
    ordered: Natural
    """The proposer has the ordering information up to this place; with `require_majority`, it has performed
    the operations up to it."""
    lineage: Views


class Accept(Message, frozen=True, tag=321):
    """A member acknowledges a `ProposePrimary`, and hands over what it has beyond the proposer."""

    view: ViewId
    precedence: Precedence
    orders: Slice


class Superseded(Message, frozen=True, tag=322):
    """The receiver belongs to a view, or proposes one, that another has overtaken."""

    view: ViewId
    """The view that overtook it."""
    ahead: bool = False
    """Another replica has done more than the receiver could learn."""


class NewPrimaryView(Message, frozen=True, tag=323):
    """A new primary reports its view to a remote group, and asks what that knows of the old primary."""

    party: Party
    lineage: Views
    """The last one is the new view; its place is that before it begins, as far as the primary knows yet."""
    final: bool
    """Whether the view has begun, so that its place is certain."""


class LinkState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a remote primary knows of a connection."""

    link: Link
    received: Natural
    """The index of the last message that it received without a gap."""
    sent: Natural
    """The index of the last message that it sent."""


class ViewAck(Message, frozen=True, tag=324):
    """A remote primary answers a `NewPrimaryView`: where it stands, and the ordering information that it
    holds."""

    party: Party
    """The group that answers."""
    view: ViewId
    links: Annotated[tuple[LinkState, ...], msgspec.Meta(max_length=LINKS_MAX)]
    orders: Slice | None


class ProposeBackup(Message, frozen=True, tag=325):
    """A process wants to join its group (Figure 10)."""

    birth: Natural
    """With the node, the birth id: when this process began to ask."""
    known: ViewId
    """The last view that it knows of."""


class AcceptBackup(Message, frozen=True, tag=326):
    """The primary adds a member."""

    view: ViewId
    change: Natural
    members: Members
    birth: Natural
    precedence: Precedence
    """The new member's, whose node follows from it."""


class RemoveBackup(Message, frozen=True, tag=327):
    """The primary removes members."""

    view: ViewId
    change: Natural
    members: Members


class MembersAck(Message, frozen=True, tag=328):
    """A member knows of a change of the members."""

    view: ViewId
    precedence: Precedence
    change: Natural


class StateOffer(Message, frozen=True, tag=329):
    """The primary has a checkpoint for a member: how large it is, and the place at which it was taken."""

    view: ViewId
    place: Natural
    size: Natural
    check: Natural


class StateAsk(Message, frozen=True, tag=330):
    """A member asks for parts of a checkpoint."""

    view: ViewId
    place: Natural
    parts: Annotated[tuple[Natural, ...], msgspec.Meta(max_length=ASKED_MAX)]


class State(Message, frozen=True, tag=331):
    """A part of a checkpoint."""

    view: ViewId
    place: Natural
    part: Natural
    data: Annotated[bytes, msgspec.Meta(max_length=PART_BYTES)]


class SeatAsk(Message, frozen=True, tag=332):
    """A replica wants to take a seat in the group, or to give it up. So does one that is in no group, but
    learns that it has a seat or is a member."""

    view: ViewId
    place: Natural
    """The sender wants this although it knows the order up to this place."""
    joins: bool


MESSAGES = message_types(
    Request,
    Reply,
    FirstAck,
    SecondAck,
    Nack,
    KeepAlive,
    Copy,
    Reset,
    Heartbeat,
    Progress,
    ProposePrimary,
    Accept,
    Superseded,
    NewPrimaryView,
    ViewAck,
    ProposeBackup,
    AcceptBackup,
    RemoveBackup,
    MembersAck,
    StateOffer,
    StateAsk,
    State,
    SeatAsk,
)
