"""The roster in files: in the cluster file, for people, and beside the saved state, as running hosts know it.

In the cluster file, the table of a host that came later says which change brought it (``added = 1``), and the
table of a host that was removed says which change removed it (``removed = 2``) and stays where it is. The
commands `add-host` and `remove-host` write these lines.

Hosts on other machines hear of changes from their peers. They keep the roster in ``state/roster.json``, and
whoever reads a cluster file there takes the longer of both.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.roster import Change, Roster

_HEADER = re.compile(r"\s*\[\[\s*host\s*\]\]\s*(#.*)?$")


def saved_path(folder: Path) -> Path:
    """Where hosts keep the roster that they heard of."""
    return folder / "state" / "roster.json"


def load_saved(folder: Path) -> Roster:
    """The roster that hosts on this machine heard of; an empty one if there is none."""
    path = saved_path(folder)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Roster)
    except FileNotFoundError:
        return Roster()
    except (OSError, msgspec.MsgspecError) as error:
        raise LocalError(f"{path}: not a roster: {error}") from error


def save(folder: Path, roster: Roster) -> None:
    """Keep a roster that was heard of, unless a newer one is kept already."""
    if load_saved(folder).version < roster.version:
        path = saved_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(roster).decode())


def newer(roster: Roster, saved: Roster, file: Path, folder: Path) -> Roster:
    """The longer of two rosters: that of the file, and the one that hosts heard of."""
    longer, shorter = (saved, roster) if saved.version > roster.version else (roster, saved)
    if not longer.follows(shorter):
        raise LocalError(
            f"{file} and {saved_path(folder)} disagree on which hosts came and which were removed; copy the"
            " cluster file from the machine where hosts were added last, and remove the other file"
        )
    return longer


def edited(text: str, roster: Roster, known: int, ids: Sequence[HostId], names: Sequence[str]) -> str:
    """The text of a cluster file with the changes of a roster after the first `known` ones.

    `ids` are the hosts that have tables in the text, in their order; `names` are the names of the groups.
    """
    lines = text.splitlines()
    headers = [place for place, line in enumerate(lines) if _HEADER.match(line)]
    places = dict(zip(ids, headers, strict=True))
    for change in roster.changes[known:]:
        if change.removes and change.host in places:
            number = roster.number_of(change.host, removes=True)
            lines[places[change.host]] += f"\nremoved = {number}"
    for change in roster.changes[known:]:
        if not change.removes:
            lines += _table(change, roster, names)
    return "\n".join(lines) + "\n"


def _table(change: Change, roster: Roster, names: Sequence[str]) -> list[str]:
    """The table of a host that came later."""
    groups = ", ".join(f'"{names[group]}"' for group in change.groups)
    removed = roster.number_of(change.host, removes=True)
    lines = ["", "[[host]]", f"id = {change.host}", f'address = "{change.address}"']
    lines += [f'roles = ["{change.role}"]', f"added = {roster.number_of(change.host, removes=False)}"]
    lines += [f"removed = {removed}"] if removed else []
    lines += [f"groups = [{groups}]"] if groups else []
    return lines + ([] if change.start else ["start = false"])


def replace_file(path: Path, text: str) -> None:
    """Write under another name, then rename: nobody reads half a file, and a crash leaves the old one."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from error
