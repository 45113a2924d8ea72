"""How many messages a host had taken from applications and not sent when it ended.

A host that ends in good order notes the number in the file ``run/<host>.left``. A host that starts removes
the note, so a missing note means that the last life of the host did not end in good order.
"""

from pathlib import Path

from ordercast.core import HostId


def _note(folder: Path, host: HostId) -> Path:
    return folder / "run" / f"{host}.left"


def forget_left(folder: Path, host: HostId) -> None:
    """Remove the note of an earlier life."""
    _note(folder, host).unlink(missing_ok=True)


def note_left(folder: Path, host: HostId, messages: int) -> None:
    """Note how many messages were left."""
    _note(folder, host).write_text(str(messages), encoding="ascii")


def read_left(folder: Path, host: HostId) -> int | None:
    """How many messages a host left behind; None if it did not say."""
    try:
        return int(_note(folder, host).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
