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
Lives: TypeAlias = tuple[Natural, ...]
"""For each replica, the latest life of it that is known; empty while none has ever lost its memory."""
Digest: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


class Prepare(Message, frozen=True, tag=200):
    """Phase 1a: the candidate asks for a promise and for what was accepted from slot `start` on."""

    ballot: Natural
    start: Natural
    committed: Natural

    def known_lives(self) -> Lives:
        """The lives that the candidate knows of."""
        return ()


class Promise(Message, frozen=True, tag=201):
    """Phase 1b: a chunk of what was accepted; `following` starts the next one, 0 at the end."""

    ballot: Natural
    start: Natural
    entries: tuple[Record, ...]
    following: Natural

    def known_lives(self) -> Lives:
        """The lives that the voter knows of."""
        return ()


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
    """Heartbeat and commit notice; slots below `floor` are in snapshots, and need not be kept."""

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


class Want(Message, frozen=True, tag=211):
    """A replica asks for a snapshot, from `offset` on; any replica that has it may answer."""

    index: Natural
    digest: Digest
    offset: Natural


class Chunk(Message, frozen=True, tag=212):
    """A part of a snapshot of the owner's state after all slots below `index`; the digest is of the whole."""

    index: Natural
    digest: Digest
    size: Natural
    offset: Natural
    data: Value


class Recover(Message, frozen=True, tag=213):
    """A replica that lost its memory asks what it may have promised and accepted, from slot `start` on."""

    life: Natural
    start: Natural


class Recovered(Message, frozen=True, tag=214):
    """The answer to Recover: the ballot promised here, and from its leader all that was proposed in it.

    Only a leader sets `leads`, `end` and what follows: the slots below `end` are proposed or committed.
    """

    life: Natural
    ballot: Natural
    lives: Lives
    leads: bool = False
    end: Natural = 0
    start: Natural = 0
    entries: tuple[Record, ...] = ()
    following: Natural = 0


class PrepareAmongLives(Prepare, frozen=True, tag=215):
    """A Prepare in a group in which a replica has lost its memory."""

    lives: Lives

    def known_lives(self) -> Lives:
        """The lives that the candidate knows of."""
        return self.lives


class PromiseAmongLives(Promise, frozen=True, tag=216):
    """A Promise in a group in which a replica has lost its memory."""

    lives: Lives

    def known_lives(self) -> Lives:
        """The lives that the voter knows of."""
        return self.lives


class Confirm(Message, frozen=True, tag=217):
    """A leader wants to know whether it still leads, for reads that came before this round."""

    ballot: Natural
    round: Natural


class Confirmed(Message, frozen=True, tag=218):
    """No higher ballot was promised here when the round came."""

    ballot: Natural
    round: Natural


MESSAGES = message_types(
    Prepare,
    Promise,
    Accept,
    Accepted,
    Commit,
    Reject,
    Fetch,
    Learn,
    Heard,
    Canvass,
    Support,
    Want,
    Chunk,
    Recover,
    Recovered,
    PrepareAmongLives,
    PromiseAmongLives,
    Confirm,
    Confirmed,
)
