"""Where the control socket of a host is. Only its owner may use it.

It is the file ``run/<host>.sock`` in the folder of a cluster. The system limits such a path to about 100
bytes. If the path is longer, the socket goes to a private temporary folder, named by a hash of the path, and
the file ``run/<host>.at`` says where it is, so that every client finds it.
"""

import hashlib
import os
import socket
import stat
import tempfile
from pathlib import Path

from ordercast.core import LocalError

PATH_BYTES_MAX = 100
"""The system's limit is 104 to 108 bytes, with the zero at the end."""
_PRIVATE = 0o700


def find_socket(path: Path) -> Path:
    """Where the server of this path really listens."""
    if _fits(path):
        return path
    try:
        return Path(_pointer(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return _short(path)


def open_socket(path: Path) -> tuple[socket.socket, Path]:
    """A listening socket for this path, and its file; a socket that nobody serves is replaced."""
    make_private(path.parent)
    place = path
    if not _fits(path):
        place = _short(path)
        make_private(place.parent)
        _pointer(path).write_text(str(place), encoding="utf-8")
    if is_served(place):
        raise LocalError(f"{path}: another process already serves this host")
    place.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(place))
        place.chmod(0o600)
        listening.listen(16)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise LocalError(f"cannot listen on {place}: {error.strerror or error}") from error
    return listening, place


def close_socket(path: Path, place: Path, inode: int) -> None:
    """Remove the files of a server, unless a later server has replaced them."""
    try:
        if place.lstat().st_ino != inode:
            return
    except OSError:
        return
    place.unlink(missing_ok=True)
    if place != path:
        _pointer(path).unlink(missing_ok=True)
        place.parent.rmdir()


def is_served(place: Path) -> bool:
    """Whether a process listens there; `LocalError` if it is not a socket."""
    try:
        if not stat.S_ISSOCK(place.lstat().st_mode):
            raise LocalError(f"{place} is not a socket: remove it, or choose another folder")
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(place))
        except TimeoutError:
            return True  # somebody is there, and busy
        except OSError:
            return False
        return True


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter; `LocalError` if it belongs to somebody else."""
    folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LocalError(f"{folder} must be a folder that belongs to the user who runs this")
    if stat.S_IMODE(found.st_mode) != _PRIVATE:
        folder.chmod(_PRIVATE)


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """The identity of a folder, whatever its name; None if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= PATH_BYTES_MAX


def _pointer(path: Path) -> Path:
    return path.with_suffix(".at")


def _short(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"ordercast-{name}" / "control.sock"
