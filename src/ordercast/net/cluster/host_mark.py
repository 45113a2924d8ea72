"""The mark of a host that outlives its supervisor: the file ``run/<host>.pid``, locked while the host lives.

A process id alone proves nothing, because the system gives it to another process when its owner has ended.
The lock proves it: it ends with its owner in any case, so a mark whose lock is free is stale. The file is
written and locked before it gets its name, so nobody reads a mark that another process holds.
"""

import fcntl
import os
import signal
from pathlib import Path

import msgspec

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.socket_file import make_private


class Mark(msgspec.Struct, frozen=True):
    """What a host says about itself."""

    pid: int
    run: str
    """The name of its run in traces."""
    began: float
    """The wall clock at its start, in seconds."""


def mark_path(folder: Path, host: HostId) -> Path:
    """The mark of a host in the folder of a cluster."""
    return folder / "run" / f"{host}.pid"


def leave_mark(path: Path, mark: Mark) -> int:
    """Mark this process as the host; the mark lasts as long as the returned file stays open."""
    make_private(path.parent)
    if (found := find_marked(path)) is not None and found.running:
        raise LocalError(f"{path}: process {found.mark.pid} already runs this host")
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(handle, msgspec.json.encode(mark))
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    draft.replace(path)
    return handle


class MarkedProcess:
    """A process that is known by its mark, and is no child of this one."""

    def __init__(self, handle: int, mark: Mark) -> None:
        self.mark = mark
        self._handle = handle
        self._process = _open_process(mark.pid)

    def __del__(self) -> None:
        """Close what is open."""
        os.close(self._handle)
        if self._process >= 0:
            os.close(self._process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.mark.pid

    @property
    def began(self) -> float:
        """The wall clock at its start, in seconds."""
        return self.mark.began

    @property
    def running(self) -> bool:
        """Whether it lives: only then its lock is held."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        return False

    @property
    def ended(self) -> str:
        """How it ended, which nobody saw."""
        return "" if self.running else "nobody saw how"

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and never to another process that has its number now."""
        if not self.running:
            return
        if self._process >= 0:
            # The handle names one process for ever; it was opened while the one that holds the lock lived.
            signal.pidfd_send_signal(self._process, number)
        else:
            os.kill(self.pid, number)


def find_marked(path: Path) -> MarkedProcess | None:
    """The process that left a mark, living or not; None if there is no readable mark."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        mark = msgspec.json.decode(os.pread(handle, 65_536, 0), type=Mark)
    except (OSError, msgspec.MsgspecError):
        os.close(handle)
        return None
    return MarkedProcess(handle, mark)


def _open_process(pid: int) -> int:
    """A handle that names this process and no later one; -1 if there is none, or the system has no such."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
