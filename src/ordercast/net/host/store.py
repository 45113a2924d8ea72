"""The state that the processes of a host keep over restarts: one small SQLite file per host.

`env.save` promises that a state is durable before any later send or delivery takes effect. So saves are
collected while handlers run, and the host gives them to `commit` before any effect leaves it: one
transaction and one wait for the disk for all of them. The file is in WAL mode with `synchronous=FULL`: after
a power cut a committed transaction is still there as a whole, and nothing of an uncommitted one is.

The file also has the number of lives of the host, and a recent reading of its clock. So if the clock is set
back, a later life does not begin in the past of an earlier one.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ordercast.core import SECOND, LocalError, Nanos, NodeId

APPLICATION_ID = 0x6F726463
"""Marks an SQLite file as one of ordercast."""
FORMAT = 1
CLOCK_KEPT_NS: Nanos = 10 * SECOND
"""A life that saves nothing and is killed loses at most this much of its clock."""
WAIT_S = 2.0
"""Seconds to wait for an earlier life of the host to release the file."""

_TABLES = """
create table state (node integer not null, name text not null, value blob not null, primary key (node, name))
    without rowid;
create table life (count integer not null, clock_ns integer not null);
insert into life values (0, -1);
"""
_PUT = "insert into state values (?, ?, ?) on conflict do update set value = excluded.value"
_REMOVE = "delete from state where node = ? and name = ?"


class HostTaken(LocalError):
    """Another process runs this host."""


class Store:
    """The saved state of a host's nodes. Calls must not overlap, whichever thread they come from."""

    def __init__(self, path: Path | None, wait_s: float = WAIT_S) -> None:
        """Open or create the file; without a file, the state lasts as long as this object."""
        self.path = path
        self._clock_ns: Nanos | None = None
        self._kept_ns: Nanos = 0
        """The reading of the clock that the file has."""
        self._database = _connect(path, wait_s)
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def load(self, node: NodeId) -> dict[str, bytes]:
        """All that a node has saved, by name."""
        rows = self._execute("select name, value from state where node = ? order by name", (node,))
        return dict(rows)

    def note_time(self, now: Nanos) -> None:
        """Note the clock of the host; it goes to disk with the next `commit`, or now if that was long ago."""
        self._clock_ns = now
        if now - self._kept_ns >= CLOCK_KEPT_NS:
            with contextlib.suppress(sqlite3.Error):  # on a full disk: it is not worth stopping for
                self._keep_clock(now)
                self._clock_ns = None

    def commit(self, saves: Mapping[tuple[NodeId, str], bytes | None]) -> None:
        """Save values of nodes by name, and remove those that are None: all of them or nothing."""
        put = [(*key, state) for key, state in saves.items() if state is not None]
        removed = [key for key, state in saves.items() if state is None]
        with self._naming_file():
            self._database.execute("begin immediate")
            try:
                self._database.executemany(_PUT, put)
                self._database.executemany(_REMOVE, removed)
                if self._clock_ns is not None:
                    self._keep_clock(self._clock_ns)
                self._database.execute("commit")
            except BaseException:
                self._roll_back()
                raise
        self._clock_ns = None

    @property
    def lives(self) -> int:
        """How many lives have begun with this file; the first one finds nothing saved."""
        count: int = self._execute("select count from life")[0][0]
        return count

    def begin_life(self, now: Nanos) -> Nanos:
        """A reading of the clock, `now` or later, after all readings of earlier lives; it is made durable."""
        last: Nanos = self._execute("select clock_ns from life")[0][0]
        first = max(now, last + 1)
        self._execute("update life set count = count + 1, clock_ns = ?", (first,))
        self._kept_ns = first
        return first

    def close(self) -> None:
        """Save the time, and release the file."""
        with contextlib.suppress(sqlite3.Error):  # on a full disk the next life has to do with an earlier one
            if self._clock_ns is not None:
                self._keep_clock(self._clock_ns)
        self._database.close()

    def _prepare(self) -> None:
        with self._naming_file():
            # No other process may have the file open: two hosts with one identity would be worse than none.
            self._database.execute("pragma locking_mode = exclusive")
            mark = self._database.execute("pragma application_id").fetchone()[0]
            empty = not self._database.execute("select count(*) from sqlite_master").fetchone()[0]
            if mark != APPLICATION_ID and not (empty and mark == 0):
                raise LocalError(f"{self.path}: an SQLite file, but not one with ordercast's state")
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = full")
            self._database.execute("begin immediate")  # takes the lock, and keeps it until the file is closed
            try:
                if empty:
                    self._create()
                self._database.execute("commit")
            except BaseException:
                self._roll_back()
                raise
            self._screen()

    def _create(self) -> None:
        for statement in filter(str.strip, _TABLES.split(";")):
            self._database.execute(statement)
        self._database.execute(f"pragma application_id = {APPLICATION_ID}")
        self._database.execute(f"pragma user_version = {FORMAT}")

    def _screen(self) -> None:
        version = self._database.execute("pragma user_version").fetchone()[0]
        if version != FORMAT:
            raise LocalError(f"{self.path}: format {version}, this version reads {FORMAT}")
        faults = self._database.execute("pragma quick_check(1)").fetchone()[0]
        lives = self._database.execute("select count(*) from life").fetchone()[0]
        if faults != "ok" or lives != 1:
            raise LocalError(f"{self.path}: the saved state is damaged: {str(faults).splitlines()[-1]}")

    def _keep_clock(self, now: Nanos) -> None:
        self._database.execute("update life set clock_ns = max(clock_ns, ?)", (now,))
        self._kept_ns = now

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._naming_file():
            rows: list[tuple[Any, ...]] = self._database.execute(statement, values).fetchall()
        return rows

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
            self._database.execute("rollback")

    @contextlib.contextmanager
    def _naming_file(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise HostTaken(f"{self.path}: another process has this state open") from error
            raise LocalError(f"{self.path}: cannot use the saved state: {error}") from error
        except sqlite3.DatabaseError as error:
            raise LocalError(f"{self.path}: not a saved state, or damaged: {error}") from error


def _connect(path: Path | None, wait_s: float) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Saved state may hold messages: it is for the owner alone.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        return sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise LocalError(f"{path}: cannot save state there: {error}") from error
