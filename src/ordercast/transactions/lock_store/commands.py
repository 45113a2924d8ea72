"""The commands in the log of a shard, and what a shard tells about a transaction."""

from enum import IntEnum

import msgspec

from ordercast.components.execution.messages import Name, Place
from ordercast.components.logged_service.messages import Node
from ordercast.components.logged_shards.entries import Attempt, Done, Shards
from ordercast.core import MALFORMED, Message, MessageId, Payload, RemoteError, Stamp, message_types


class Verb(IntEnum):
    """What a command does."""

    LOCK = 0
    """A client asks for the locks of a call: the first phase."""
    COMMIT = 1
    """It has the locks in all shards: the second phase."""
    ABORT = 2
    """It found a lock taken in another shard."""
    FREEZE = 3
    """A shard thinks that the client died. Nothing that the client sends counts from now on."""
    APPLY = 4
    """The shards have found that the call was committed somewhere."""
    CANCEL = 5
    """The shards have found that it was not."""
    FORGET = 6
    """All shards have committed it."""
    HALT = 7
    """A shard thinks that the client of a general transaction died. It cannot be concluded from now on."""
    END = 8
    """The shards have found that nobody has concluded it."""


BY_CLIENTS = frozenset({Verb.LOCK, Verb.COMMIT, Verb.ABORT})


class Command(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An entry of a log."""

    verb: Verb
    first: Name
    """The name of a call, or a general transaction."""
    attempt: Attempt
    """Which attempt of its client; each asks for all locks anew."""
    groups: Shards
    """All shards of the call."""
    call: bytes = b""
    """To lock: the call itself."""
    done: Done = ()
    """To lock: calls of the same client that all shards have committed."""

    @property
    def name(self) -> tuple[Verb, MessageId, int]:
        """What tells it from others."""
        return self.verb, self.first, self.attempt


class State(IntEnum):
    """What a shard says of a call, or of a general transaction."""

    LOCKED = 0
    BUSY = 1
    """A lock is taken; nothing was locked."""
    FROZEN = 2
    """It is locked, and waits for what all shards find."""
    ABSENT = 6
    """It is frozen, and holds no lock here."""
    COMMITTED = 3
    ABORTED = 4
    """This attempt and earlier ones have no effect, and never will."""
    UNSETTLED = 5
    """Of a general transaction: a call that is about it has not ended."""


class Order(Message, frozen=True, tag=160):
    """A client, or a replica of another shard, to a replica: put a command into the log."""

    command: Payload


class Relay(Message, frozen=True, tag=161):
    """A replica to its leader: the command of a node that may not reach the leader."""

    command: Payload
    asker: Node


class Told(Message, frozen=True, tag=162):
    """A replica to who sent a command: what has become of the transaction in its shard."""

    verb: Verb
    first: Name
    attempt: Attempt
    """The attempt that the state is about."""
    state: State
    results: Payload
    """Of a call that is committed, if they are known."""
    place: Place | None

    @property
    def stamp(self) -> Stamp | None:
        """Where the call was executed."""
        return None if self.place is None else Stamp(*self.place)


MESSAGES = message_types(Order, Relay, Told)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Command)


def pack_command(command: Command) -> bytes:
    """A command as bytes."""
    return _encoder.encode(command)


def unpack_command(packed: bytes) -> Command:
    """The command in some bytes, or `RemoteError`."""
    try:
        return _decoder.decode(packed)
    except MALFORMED as error:
        raise RemoteError(f"malformed command: {error}") from error
