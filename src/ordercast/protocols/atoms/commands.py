"""Commands in the log of the store."""

from typing import TypeAlias

import msgspec

from ordercast.core import MALFORMED, RemoteError
from ordercast.protocols.atoms.records import Natural, Part, Post, Record, Serial


class Request(Record, frozen=True):
    """A subscriber comes to a group or goes from it."""

    node: Natural
    life: Natural
    number: Natural
    group: Natural
    wants: bool


class Final(Record, frozen=True):
    """How far the log of a group had come when its epoch was sealed."""

    group: Natural
    next: Natural
    """The position after the last."""
    low: Natural
    serials: tuple[tuple[Natural, Serial], ...]
    parts: tuple[Part, ...]
    gone: tuple[Natural, ...]


class Prepare(Record, frozen=True, tag=1):
    """Begin a change, or add to it."""

    change: Natural
    requests: tuple[Request, ...] = ()
    up: tuple[Post, ...] = ()
    """Sequencing nodes that came back, in these lives."""
    down: tuple[Natural, ...] = ()
    lost: tuple[tuple[Natural, Natural], ...] = ()
    """Groups, and subscribers that have missed too much of them."""


class Decide(Record, frozen=True, tag=2):
    """Say how far logs have come. When that is known of all logs, the change ends."""

    change: Natural
    finals: tuple[Final, ...]


class Greet(Record, frozen=True, tag=3):
    """A subscriber has restarted: requests of its earlier lives are void."""

    node: Natural
    life: Natural


Command: TypeAlias = Prepare | Decide | Greet

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)


def encode(command: Command) -> bytes:
    """A command as a value of the log."""
    return _encoder.encode(command)


def decode(value: bytes) -> Command:
    """A value of the log as a command, or `RemoteError`."""
    try:
        return _decoder.decode(value)
    except MALFORMED as error:
        raise RemoteError(f"not a command of the store: {error}") from error
