"""Kinds of delivery: how each is recorded, and what judges and drivers need to know about it.

To add a kind, declare it here once, add its class to `core/delivery.py` and its word to `Kind`. Drivers,
recorders, judges and reports use this table, so that they need not name the kind.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

from ordercast.core import (
    Carrier,
    Checkpoint,
    Delivered,
    Delivery,
    Dropped,
    Joined,
    Left,
    Locked,
    Nanos,
    NodeId,
    Notice,
    Outcome,
    OutOfOrder,
    Released,
    Replied,
    RoleChange,
    Stamp,
    State,
    StateWanted,
    Unconfirmed,
    Undone,
    View,
    outcome_of,
)
from ordercast.core.bundle import unpack
from ordercast.trace.event import ABORTED, COMMITTED, READ, RESTORED, Event, Kind


class DeliveryKind(NamedTuple):
    """One kind of delivery in a trace."""

    delivery: type[Delivery]
    kind: Kind
    ordered: bool = False
    """Its messages have a place in the order."""
    promise: str = ""
    """The field of `Guarantees` that must be set for this kind to occur; empty if it always may."""
    settles: bool = False
    """It says that a message will not come, so nobody should wait for the message any longer."""
    configures: bool = False
    """It says that a configuration took effect."""
    returns: bool = False
    """It tells a sender that nobody may have its messages; nobody owes them any more."""
    enters: bool = False
    """It says that its node receives a group from a place in its order on."""
    leaves: bool = False
    """It says that its node receives a group no longer."""
    answers: bool = False
    """It answers an operation of a client."""
    undoes: bool = False
    """It takes back what its node delivered, or what it was answered."""
    columns: Callable[[Any], dict[str, object]] | None = None
    """For a notice: makes the columns of its row. All carriers have the same columns."""


def _dropped(notice: Dropped) -> dict[str, object]:
    return {
        "groups": (notice.group,),
        "numbers": (notice.number,),
        "stamp_issuer": notice.issuer,
        "config": notice.config,
    }


def _view(notice: View) -> dict[str, object]:
    columns: dict[str, object] = {
        "groups": (notice.group,),
        "config": notice.config,
        "members": notice.members,
        "label": notice.change or notice.note or None,
    }
    stamp = notice.stamp
    if stamp is not None:
        columns |= {
            "numbers": stamp.numbers or None,
            "stamp_clock": stamp.clock,
            "stamp_issuer": stamp.issuer,
        }
    return columns


def _unconfirmed(notice: Unconfirmed) -> dict[str, object]:
    first = unpack(notice.payload)[0]
    return {"message": first.message, "groups": notice.groups, "submitted_ns": first.submitted_ns}


def _membership(notice: Joined | Left) -> dict[str, object]:
    columns: dict[str, object] = {
        "groups": (notice.group,),
        "config": notice.config,
        "label": notice.note or None,
    }
    if notice.stamp is not None:
        columns |= {"stamp_clock": notice.stamp.clock, "stamp_issuer": notice.stamp.issuer}
    return columns


def _role(notice: RoleChange) -> dict[str, object]:
    return {
        "groups": (notice.group,),
        "config": notice.config,
        "peer": notice.sequencer,
        "label": ": ".join(filter(None, (notice.role, notice.note))),
    }


def _state_wanted(notice: StateWanted) -> dict[str, object]:
    return {"groups": (notice.group,), "config": notice.config, "members": notice.newcomers}


def _state(notice: State) -> dict[str, object]:
    return {
        "groups": (notice.group,),
        "config": notice.config,
        "peer": notice.donor,
        "size": len(notice.data),
        "digest": crc32(notice.data),
    }


def _replied(notice: Replied) -> dict[str, object]:
    message, submitted, result = unpack(notice.payload)[0]
    outcome = outcome_of(result)
    columns: dict[str, object] = {
        "message": message,
        "groups": (notice.group,),
        "submitted_ns": submitted,
        "peer": notice.replica,
        "size": len(result),
        "digest": crc32(result),
        "label": READ if notice.read else None if outcome is Outcome.ANSWERED else outcome.name.lower(),
    }
    return columns | _place(notice.stamp)


def _checkpoint(notice: Checkpoint) -> dict[str, object]:
    columns: dict[str, object] = {
        "groups": (notice.group,),
        "size": notice.size,
        "digest": notice.digest,
        "label": RESTORED if notice.restored else None,
    }
    return columns | _place(notice.stamp)


def _undone(notice: Undone) -> dict[str, object]:
    numbers = notice.stamp.numbers or None
    return {"groups": (notice.group,), "numbers": numbers, **_place(notice.stamp)}


def _locked(notice: Locked) -> dict[str, object]:
    return {"message": notice.transaction, "groups": (notice.group,), **_place(notice.stamp)}


def _released(notice: Released) -> dict[str, object]:
    label = COMMITTED if notice.committed else ABORTED
    place = _place(notice.stamp)
    return {"message": notice.transaction, "groups": (notice.group,), "label": label, **place}


def _place(stamp: Stamp | None) -> dict[str, object]:
    return {} if stamp is None else {"stamp_clock": stamp.clock, "stamp_issuer": stamp.issuer}


DELIVERY_KINDS = (
    DeliveryKind(Delivered, Kind.DELIVER, ordered=True),
    DeliveryKind(OutOfOrder, Kind.OUT_OF_ORDER, promise="out_of_order"),
    DeliveryKind(Dropped, Kind.DROP, settles=True, columns=_dropped),
    DeliveryKind(View, Kind.VIEW, configures=True, columns=_view),
    DeliveryKind(Unconfirmed, Kind.UNCONFIRMED, returns=True, columns=_unconfirmed),
    DeliveryKind(Joined, Kind.JOINED, enters=True, columns=_membership),
    DeliveryKind(Left, Kind.LEFT, leaves=True, columns=_membership),
    DeliveryKind(RoleChange, Kind.ROLE, columns=_role),
    DeliveryKind(StateWanted, Kind.STATE_WANTED, columns=_state_wanted),
    DeliveryKind(State, Kind.STATE, columns=_state),
    DeliveryKind(Replied, Kind.REPLY, answers=True, columns=_replied),
    DeliveryKind(Checkpoint, Kind.CHECKPOINT, columns=_checkpoint),
    DeliveryKind(Undone, Kind.UNDONE, undoes=True, columns=_undone),
    DeliveryKind(Locked, Kind.LOCKED, columns=_locked),
    DeliveryKind(Released, Kind.RELEASED, columns=_released),
)
"""All kinds. Add new ones at the end: spool files number the carriers in this order."""

KIND_OF: dict[type[Delivery], Kind] = {one.delivery: one.kind for one in DELIVERY_KINDS}
DELIVERED: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS)
"""The kinds of rows of all deliveries."""
CARRYING: tuple[Kind, ...] = tuple(o.kind for o in DELIVERY_KINDS if issubclass(o.delivery, Carrier))
"""The kinds of rows for one delivered message."""
ORDERED: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.ordered)
"""The kinds among them whose messages have a place in the order."""
SETTLING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.settles)
"""The kinds of rows which say that a message will not come."""
CONFIGURING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.configures)
"""The kinds of rows which say that a configuration took effect."""
RETURNING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.returns)
"""The kinds of rows which tell a sender that nobody may have a message."""
ENTERING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.enters)
"""The kinds of rows which say that their node receives a group from now on."""
LEAVING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.leaves)
"""The kinds of rows which say that their node receives a group no longer."""
ANSWERING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.answers)
"""The kinds of rows which answer an operation of a client."""
UNDOING: tuple[Kind, ...] = tuple(one.kind for one in DELIVERY_KINDS if one.undoes)
"""The kinds of rows which take back what their node delivered or was answered."""
CHANGING: tuple[Kind, ...] = (*ENTERING, *LEAVING)
"""The kinds of rows which say that their node joined or left a group."""
PROMISED: dict[Kind, str] = {one.kind: one.promise for one in DELIVERY_KINDS if one.promise}
"""For each kind that may occur only if it is promised: the field of `Guarantees`."""
REQUESTS: tuple[Kind, ...] = (Kind.JOIN, Kind.LEAVE)
"""The kinds of rows in which an application asks to join or to leave a group."""
ACTIONS: tuple[Kind, ...] = (Kind.SUBMIT, *REQUESTS, Kind.GIVE_STATE, *DELIVERED)
"""The kinds of rows in which a node submits, asks, gives its state or delivers."""

_COLUMNS = {one.delivery: one.columns for one in DELIVERY_KINDS if one.columns is not None}


def notice_event(time_ns: Nanos, clock_ns: Nanos, node: NodeId, notice: Notice) -> Event:
    """The row of a notice."""
    columns: Any = _COLUMNS[type(notice)](notice)
    return Event(time_ns, clock_ns, node, KIND_OF[type(notice)], **columns)


def given_event(
    time_ns: Nanos, clock_ns: Nanos, node: NodeId, wanted: StateWanted, data: bytes, label: str
) -> Event:
    """The row of a state that an application gives."""
    place: Any = {"groups": (wanted.group,), "config": wanted.config, "label": label or None}
    return Event(time_ns, clock_ns, node, Kind.GIVE_STATE, size=len(data), digest=crc32(data), **place)
