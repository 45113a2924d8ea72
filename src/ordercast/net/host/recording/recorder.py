"""The trace of a live host: the host writes spool files, and a thread converts closed ones to Parquet.

The thread has a low priority, so that the host's own work comes first. If it falls behind, spool files wait
on disk, and `finish_run` converts the rest.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from ordercast.core import SECOND, HostId, Nanos, NodeId, OrdercastError
from ordercast.net.host.recording.spool import Spooler
from ordercast.net.host.recording.spool_file import SpoolHeader, read_spool, spool_path
from ordercast.net.host.recording.spool_to_parquet import load_state, locked, spool_folder, spools_of, turn

BYTES_MAX = 16 << 20
AGE_MAX_NS: Nanos = 30 * SECOND
"""When a spool file is closed and converted: sooner means a shorter end, and more, smaller segments."""
NICENESS = 10

log = logging.getLogger(__name__)


class TraceRecorder(Spooler):
    """Records the nodes of one host for one life, and converts what it and earlier lives wrote."""

    def __init__(
        self,
        folder: Path,
        run: str,
        host: HostId,
        nodes: Sequence[NodeId],
        *,
        late: bool = False,
        bytes_max: int = BYTES_MAX,
        age_max_ns: Nanos = AGE_MAX_NS,
    ) -> None:
        """The next life of a host in the run of this name, below a folder of traces.

        A host is `late` if it came to the cluster later, and this is its first life.
        """
        spools = spool_folder(folder / run)
        with contextlib.ExitStack() as held:
            held.enter_context(locked(spools, host))
            self._turner = _Turner(spools, host)
            number, life = self._turner.following()
            self._held = held.pop_all()
        header = SpoolHeader(run=run, host=host, life=life, number=number, nodes=tuple(nodes), late=late)
        super().__init__(
            spools, header, bytes_max=bytes_max, age_max_ns=age_max_ns, closed=self._turner.closed
        )

    def begin(self, started_ns: Nanos, saved: bool, past: bool = False, commits: int | None = None) -> None:
        """Begin to write, and to convert what earlier lives left."""
        super().begin(started_ns, saved, past, commits)
        self._turner.start(self._header.number)

    @property
    def error(self) -> str:
        """Why spool files are no longer converted; empty as long as they are."""
        return self._turner.error

    def close(self, *, failed: bool = False) -> None:
        """End this life. The last spool file is left to `finish_run`, so that a host stops at once."""
        try:
            super().close(failed=failed)
        finally:
            self._turner.stop()
            self._held.close()


class _Turner:
    """Converts the spool files of a host, one after the other, in a thread."""

    def __init__(self, folder: Path, host: HostId) -> None:
        self._folder = folder
        self._host = host
        self._state = load_state(folder, host)
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name=f"trace of host {host}", daemon=True)
        self._end = 0
        """The number of the first spool file that is not closed yet."""
        self.error = ""

    def following(self) -> tuple[int, int]:
        """The number of the next spool file, and of the next life."""
        number, life = self._state.number + 1, self._state.life + 1
        for path in spools_of(self._folder, self._host):
            spool = read_spool(path)
            if spool is None:
                path.unlink()  # its life ended before it had begun
                continue
            number, life = max(number, spool.header.number + 1), max(life, spool.header.life + 1)
        return number, life

    def start(self, number: int) -> None:
        """Begin with what earlier lives left; the file of this number is being written."""
        self._end = number
        self._wake.set()
        self._thread.start()

    def closed(self) -> None:
        """Note that one more spool file is closed."""
        self._end += 1
        self._wake.set()

    def stop(self) -> None:
        """Finish the current file, and begin no other."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        with contextlib.suppress(OSError):  # a thread may lower its own priority where the system has that
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            try:
                self._turn_closed()
            except (OrdercastError, OSError) as error:
                # The host goes on; the spool files stay, and `finish_run` will say the same.
                self.error = str(error)
                log.error("cannot convert the spool files to a trace, so they stay: %s", error)
                return

    def _turn_closed(self) -> None:
        end = spool_path(self._folder, self._host, self._end)
        for path in spools_of(self._folder, self._host):
            if self._stopping or path >= end:
                return
            turn(path, self._state)
