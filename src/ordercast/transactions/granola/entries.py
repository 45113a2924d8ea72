"""The entries in the log of a shard."""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

import msgspec

from ordercast.components.execution.messages import Name, Number
from ordercast.components.logged_shards.entries import Attempt, Done, Shards
from ordercast.core import MALFORMED, RemoteError


class Subject(NamedTuple):
    """What shards vote on."""

    first: Name
    """The name of a call; or a general transaction, whose end it is."""
    ends: bool = False
    """Whether shards end a general transaction, because its client seems to have died."""


class Verdict(IntEnum):
    """What a shard votes. The highest vote of all shards decides."""

    COMMIT = 0
    CONFLICT = 1
    """In locking mode: another transaction has a key that this one needs."""
    ABORT = 2
    """The client has given the call up."""


class Propose(msgspec.Struct, frozen=True, array_like=True, tag=0, forbid_unknown_fields=True):
    """The shard takes part in a transaction, and votes: the timestamp that it proposes is at least `time`,
    and above all that it knows."""

    subject: Subject
    attempt: Attempt
    groups: Shards
    """All shards of the transaction."""
    time: Number
    call: bytes = b""
    """The call; empty if shards end a general transaction."""
    done: Done = ()
    """Calls of the same client that all of their shards have executed."""


class Settle(msgspec.Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """The votes of all shards are known."""

    subject: Subject
    attempt: Attempt
    verdict: Verdict
    timestamp: Number
    """The highest that was proposed."""


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """All shards have settled it."""

    subject: Subject


Entry: TypeAlias = Propose | Settle | Forget

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Propose | Settle | Forget)


def pack_entry(entry: Entry) -> bytes:
    """An entry as bytes."""
    return _encoder.encode(entry)


def unpack_entry(packed: bytes) -> Entry:
    """The entry in some bytes, or `RemoteError`."""
    try:
        return _decoder.decode(packed)
    except MALFORMED as error:
        raise RemoteError(f"malformed entry of a log: {error}") from error
