"""Messages between clients and receivers, and the commands in the log of a group.

A message is known by its key: who submitted it, the start of that client's life (its epoch) and a
number counted from 0 in it. A stamp is (clock, group), and stamps compare as pairs.
"""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import MALFORMED, GroupId, Message, NodeId, Payload, RemoteError, message_types

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Key: TypeAlias = tuple[NodeId, int, int]
"""Origin, epoch, number."""
Mark: TypeAlias = tuple[int, GroupId]
"""A timestamp: clock and the group that gave it."""


class Request(Message, frozen=True, tag=1):
    """Give this message a timestamp and tell me: from its client, or from who takes its part."""

    origin: Natural
    epoch: Natural
    number: Natural
    floor: Natural
    """Numbers below are settled in all of their groups: nobody will ask for them again."""
    groups: Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1)]
    payload: Payload
    again: bool = False
    """Not the first time: whoever knows the answer gives it, not the leader alone."""


class Timestamp(Message, frozen=True, tag=2):
    """A group's timestamp for a message, decided by its log."""

    origin: Natural
    epoch: Natural
    number: Natural
    group: Natural
    clock: Natural
    settled: tuple[Natural, ...] = ()
    """Other messages of that client whose final number this group's log has recorded."""


class Final(Message, frozen=True, tag=3):
    """The final number of a message: the highest of its groups' timestamps."""

    origin: Natural
    epoch: Natural
    number: Natural
    clock: Natural
    group: Natural
    again: bool = False
    """Not the first time: say so when it is settled."""


class Settled(Message, frozen=True, tag=4):
    """The log of a group has recorded the final number of a message."""

    origin: Natural
    epoch: Natural
    number: Natural
    group: Natural


class Command(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One slot of a group's log."""

    hint: Natural
    """The highest final clock the leader had heard of: the group's clock passes it."""
    settles: tuple[tuple[Key, Mark], ...]
    """Final numbers to record."""
    request: Request | None
    """The message to give a timestamp to, if any."""


MESSAGES = message_types(Request, Timestamp, Final, Settled)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    """A command as a value of the log."""
    return _encoder.encode(command)


def decode_command(value: bytes) -> Command:
    """A value of the log as a command, or `RemoteError`."""
    try:
        return _decoder.decode(value)
    except MALFORMED as error:
        raise RemoteError(f"not a command: {error}") from error


def key_of(message: Request | Timestamp | Final | Settled) -> Key:
    """The message that this is about."""
    return (message.origin, message.epoch, message.number)


def key_name(key: Key) -> str:
    """A bundle as people write it, with the life of its client: ``bundle 4.17 (life 0)``."""
    return f"bundle {key[0]}.{key[2]} (life {key[1]})"
