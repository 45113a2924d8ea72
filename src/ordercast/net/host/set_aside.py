"""Sets the saved state of a host aside, so that the host can come back as new. Nothing is deleted."""

from itertools import count
from pathlib import Path

from ordercast.core import LocalError
from ordercast.net.host.store import WAIT_S, HostTaken, Store, mark_path


def set_aside(path: Path, wait_s: float = WAIT_S) -> Path | None:
    """Move the files of a saved state to a folder beside it; returns the folder, None if there are no files.

    `HostTaken` if another process has the state open. Whether the state is good does not matter.
    """
    files = [file for file in state_files(path) if file.exists()]
    if not files:
        return None
    _screen_taken(path, wait_s)
    try:
        folder = _new_folder(path)
        for file in files:
            if file.exists():  # SQLite removes the log of a state that it could read
                file.rename(folder / file.name)
    except OSError as error:
        raise LocalError(f"{path}: cannot set this state aside: {error.strerror or error}") from error
    return folder


def state_files(path: Path) -> list[Path]:
    """The files of a saved state. The mark comes last: without it, what is left may be taken for new."""
    return [*(path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal")), mark_path(path)]


def _screen_taken(path: Path, wait_s: float) -> None:
    try:
        Store(path, wait_s).close()
    except HostTaken:
        raise
    except LocalError:
        return  # what is wrong with it does not matter any more


def _new_folder(path: Path) -> Path:
    for number in count(1):
        folder = path.with_name(f"{path.stem}.aside-{number}")
        if not folder.exists():
            break
    folder.mkdir(mode=0o700)
    return folder
