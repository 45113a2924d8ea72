"""What a protocol hands to the application: messages, drop notifications, views.

Every kind names the configuration it was delivered in, so that an application which spans a
reconfiguration can tell what is certain (Hydra section 4.4).
"""

from typing import Literal, TypeAlias

import msgspec

from ordercast.core.ids import GroupId, Groups, NodeId


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """A message's place in its protocol's own order.

    Messages compare by ``(clock, issuer)``: Hydra's clock and sequencer, EpTO's timestamp and source,
    a ticket number and its issuer. ``numbers`` is the multi-stamp: one number for each destination
    group, in the order of the message's groups, counted by the issuer without gaps; empty where a
    protocol does not number.
    """

    clock: int
    issuer: int
    numbers: tuple[int, ...] = ()


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A message, in its place in the order."""

    payload: bytes
    groups: Groups
    sender: NodeId
    stamp: Stamp | None = None
    config: int = 0


class OutOfOrder(msgspec.Struct, frozen=True, gc=False):
    """A message whose place in the order had already passed, tagged as such (EpTO section 8.2)."""

    payload: bytes
    groups: Groups
    sender: NodeId
    stamp: Stamp | None = None
    config: int = 0


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A drop notification: the number of an issuer, for a group, that will not be delivered here."""

    group: GroupId
    issuer: int
    number: int
    config: int = 0


class View(msgspec.Struct, frozen=True, gc=False):
    """A view or configuration took effect for a group: its number and its members.

    Where it adds or removes an issuer (Hydra section 4.4), ``change`` says which and ``stamp`` says where:
    the clock of the boundary, the issuer, and one number. Of a removed issuer that is the last number which
    the group settles: each number up to it came before the view, and none comes after. Of an added one it
    is the number after which its messages count.
    """

    group: GroupId
    config: int
    members: tuple[NodeId, ...]
    note: str = ""
    change: Literal["", "added", "removed"] = ""
    stamp: Stamp | None = None


Delivery: TypeAlias = Delivered | OutOfOrder | Dropped | View
