"""Writes a file of JSON that is either whole or not there."""

from pathlib import Path

import msgspec

from ordercast.core import LocalError


def write_json(content: object, target: Path) -> Path:
    """Write it, for people to read too; returns where it is."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    try:
        partial = target.with_name(f".{target.name}")
        partial.write_bytes(text + b"\n")
        partial.replace(target)
    except OSError as error:
        raise LocalError(f"cannot write {target}: {error.strerror or error}") from error
    return target
