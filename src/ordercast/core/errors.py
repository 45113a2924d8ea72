"""Errors by whose fault they are: the local caller's or a remote peer's."""

import traceback
from pathlib import Path

import msgspec

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises if bytes are not what they should be; the last if they are nested too deeply."""


class OrdercastError(Exception):
    """Base of every error that ordercast raises on purpose."""


class LocalError(OrdercastError, ValueError):
    """The caller on this machine asked for something that cannot be done."""


class OptionError(LocalError):
    """A protocol cannot run with the value of one of its options."""

    def __init__(self, option: str, what: str) -> None:
        super().__init__(what)
        self.option = option


class RemoteError(OrdercastError):
    """Bytes from a peer were not what the contract allows."""


def exception_text(error: Exception) -> str:
    """An unexpected exception in one line: its type, its text, and where it was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno}, {where.name})"
