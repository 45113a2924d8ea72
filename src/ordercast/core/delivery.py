"""What a protocol hands to the application: messages, drop notifications, views.

A delivery either *carries* a packet of messages or is a *notice*. Every kind names the configuration it was
delivered in, so that an application which spans a reconfiguration can tell what is certain.

A new kind is a class here, in `CARRIERS` if it carries messages; `trace/deliveries.py` says how it is
recorded. Whoever handles deliveries goes by that, not by the classes.
"""

from typing import Literal, TypeAlias

import msgspec

from ordercast.core.ids import GroupId, Groups, NodeId


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """A message's place in its protocol's own order.

    Messages compare by ``(clock, issuer)``: a time, real or logical, or a ticket, and the node that gave it.
    ``numbers`` is the multi-stamp: one number for each destination group, in the order of the message's
    groups, counted by the issuer without gaps; empty where a protocol does not number.
    """

    clock: int
    issuer: int
    numbers: tuple[int, ...] = ()


class Carrier(msgspec.Struct, frozen=True, gc=False):
    """A delivery that carries a packet of messages of one sender."""

    payload: bytes
    groups: Groups
    sender: NodeId
    stamp: Stamp | None = None
    config: int = 0


class Delivered(Carrier, frozen=True, gc=False):
    """Messages in their place in the order."""


class OutOfOrder(Carrier, frozen=True, gc=False):
    """Messages whose place in the order had already passed, tagged as such."""


CARRIERS: tuple[type[Carrier], ...] = (Delivered, OutOfOrder)
"""All of them, the common one first: `isinstance` is faster with these than with their base."""


class Notice(msgspec.Struct, frozen=True, gc=False):
    """A delivery that tells a group something, and carries no message."""

    group: GroupId


class Dropped(Notice, frozen=True, gc=False):
    """A drop notification: the number of an issuer, for a group, that will not be delivered here."""

    issuer: int
    number: int
    config: int = 0


class View(Notice, frozen=True, gc=False):
    """A view or configuration took effect for a group: its number and its members.

    Where it adds or removes an issuer, ``change`` says which and ``stamp`` says where:
    the clock of the boundary, the issuer, and one number. Of a removed issuer that is the last number which
    the group settles: each number up to it came before the view, and none comes after. Of an added one it
    is the number after which its messages count.
    """

    config: int
    members: tuple[NodeId, ...]
    note: str = ""
    change: Literal["", "added", "removed"] = ""
    stamp: Stamp | None = None


Delivery: TypeAlias = Carrier | Notice
