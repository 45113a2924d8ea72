"""What consensus replicas send each other.

A protocol that embeds a replica puts `MESSAGES` into its codec beside its own.
"""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Message, message_types

VALUE_BYTES_MAX = 2 << 20
"""Longest value of a slot: a full payload with a generous head, and well within a packet."""

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Value: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=VALUE_BYTES_MAX)]
Record: TypeAlias = tuple[Natural, Natural, Value]
"""One accepted slot as a promise reports it: slot, ballot, value."""


class Prepare(Message, frozen=True, tag=200):
    """Phase 1a: the candidate asks for a promise and for what was accepted from slot `start` on."""

    ballot: Natural
    start: Natural
    committed: Natural


class Promise(Message, frozen=True, tag=201):
    """Phase 1b: a chunk of what was accepted; `following` starts the next one, 0 at the end."""

    ballot: Natural
    start: Natural
    entries: tuple[Record, ...]
    following: Natural


class Accept(Message, frozen=True, tag=202):
    """Phase 2a, and a commit notice for all slots below `committed`."""

    ballot: Natural
    slot: Natural
    value: Value
    committed: Natural


class Accepted(Message, frozen=True, tag=203):
    """Phase 2b."""

    ballot: Natural
    slot: Natural


class Commit(Message, frozen=True, tag=204):
    """Heartbeat and commit notice; slots below `floor` are in the snapshots of all replicas."""

    ballot: Natural
    committed: Natural
    floor: Natural
    asks: bool = False
    """A heartbeat: the leader wants to know who hears it."""


class Reject(Message, frozen=True, tag=205):
    """The receiver of this is outdated: somebody promised `ballot`."""

    ballot: Natural


class Fetch(Message, frozen=True, tag=206):
    """A replica that is behind asks for committed slots from `start` on."""

    start: Natural


class Learn(Message, frozen=True, tag=207):
    """Committed values of consecutive slots from `start`, and how far the sender has committed."""

    start: Natural
    values: tuple[Value, ...]
    committed: Natural


class Heard(Message, frozen=True, tag=208):
    """The answer to a heartbeat; the follower's durable snapshot covers the slots below `stable`."""

    ballot: Natural
    stable: Natural


class Canvass(Message, frozen=True, tag=209):
    """Before phase 1: who hears no leader asks whether the others hear one. `ballot` names the question."""

    ballot: Natural
    committed: Natural


class Support(Message, frozen=True, tag=210):
    """The answer to a canvass: no leader is heard here either; `promised` is the highest ballot promised."""

    ballot: Natural
    promised: Natural


MESSAGES = message_types(
    Prepare, Promise, Accept, Accepted, Commit, Reject, Fetch, Learn, Heard, Canvass, Support
)
