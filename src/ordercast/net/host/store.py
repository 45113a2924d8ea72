"""The state that the processes of a host keep over restarts: one small SQLite file per host.

`env.save` promises that a state is durable before any later send or delivery takes effect. So saves are
collected while handlers run, and the host gives them to `commit` before any effect leaves it: one
transaction and one wait for the disk for all of them. The file is in WAL mode with `synchronous=FULL`: after
a power cut a committed transaction is still there as a whole, and nothing of an uncommitted one is.

The file also has the number of lives of the host, and a recent reading of its clock. So if the clock is set
back, a later life does not begin in the past of an earlier one.

Disks lie. So the file has a check sum over all that it holds (`check_sum.py`), and a mark beside it says how
many commits were acknowledged (`commit_mark.py`). Both are verified before anything is read. A commit that
was never acknowledged may be missing: nothing depended on it. Anything else that is wrong is `StateDamaged`,
and the host does not start.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import error as StructError
from typing import Any, TypeAlias

from ordercast.core import SECOND, LocalError, Nanos, NodeId
from ordercast.net.host.check_sum import (
    Key,
    RowSums,
    StoreHead,
    decode_head,
    digests_of,
)
from ordercast.net.host.commit_mark import CommitMark, read_mark
from ordercast.net.links.acquaintance import STORAGE_BYTES

APPLICATION_ID = 0x6F726463
"""Marks an SQLite file as one of ordercast."""
FORMAT = 3
LARGE_BYTES = 16_384
"""Larger values are kept apart."""
CLOCK_KEPT_NS: Nanos = 10 * SECOND
"""A life that saves nothing and is killed loses at most this much of its clock."""
WAIT_S = 2.0
"""Seconds to wait for an earlier life of the host to release the file."""
ADVICE = "to set this state aside and come back as a new member, start the host with --as-new"

_TABLES = """
create table state (node integer not null, name text not null, value blob not null, primary key (node, name))
    without rowid;
"""
# The rows of `state` are the keys of its tree: to find one, SQLite reads others from beginning to end. Beside
# a snapshot of 100 MB, every commit would take 30 ms. This table has a tree of small keys.
_LARGE_TABLE = """
create table large (node integer not null, name text not null, value blob not null, primary key (node, name))
"""
_PUT = "insert into state values (?, ?, ?) on conflict do update set value = excluded.value"
_REMOVE = "delete from state where node = ? and name = ?"
_PUT_LARGE = "insert into large values (?, ?, ?) on conflict do update set value = excluded.value"
_REMOVE_LARGE = "delete from large where node = ? and name = ?"
_ALL = "select node, name, value from state union all select node, name, value from large"
_HEAD: Key = (-2, "head")
"""The row in which the store keeps what it knows about itself; no node has this number. It is a row like the
others, so that a small state is one page, and a commit writes one page."""

Row: TypeAlias = tuple[NodeId, str, bytes]


class HostTaken(LocalError):
    """Another process runs this host."""


class StateDamaged(LocalError):
    """The saved state is not what was saved; the host must not go on with it."""


class Store:
    """The saved state of a host's nodes. Calls must not overlap, whichever thread they come from."""

    def __init__(self, path: Path | None, wait_s: float = WAIT_S, *, as_new: bool = False) -> None:
        """Open or create the file; without a file, the state lasts as long as this object.

        A file that is created with `as_new` says so for ever: its host is not the member that it was before.
        """
        self.path = path
        self._clock_ns: Nanos | None = None
        self._kept_ns: Nanos = 0
        """The reading of the clock that the file has."""
        self._sums = RowSums()
        self._large: frozenset[Key] = frozenset()
        """What is kept apart."""
        self._mark: CommitMark | None = None
        self._head = StoreHead(0, -1, secrets.token_bytes(STORAGE_BYTES), as_new, 0)
        self._found = 0
        if path is not None and not path.exists() and mark_path(path).exists():
            raise self._damaged("the file is missing")
        self._database = _connect(path, wait_s)
        try:
            self._prepare()
        except HostTaken:
            self._database.close()
            raise
        except LocalError as error:
            self._database.close()
            raise StateDamaged(f"{error}; {ADVICE}") from error
        except BaseException:
            self._database.close()
            raise

    def load(self, node: NodeId) -> dict[str, bytes]:
        """All that a node has saved, by name."""
        rows = self._execute(f"select name, value from ({_ALL}) where node = ? order by name", (node,))
        return dict(rows)

    def note_time(self, now: Nanos) -> None:
        """Note the clock of the host; it goes to disk with the next `commit`, or now if that was long ago."""
        self._clock_ns = now
        if now - self._kept_ns >= CLOCK_KEPT_NS:
            self._keep_clock()

    def commit(self, saves: Mapping[Key, bytes | None]) -> None:
        """Save values of nodes by name, and remove those that are None: all of them or nothing."""
        head, now = self._head, self._clock_ns
        self._commit(saves, head.lives, head.clock_ns if now is None else max(head.clock_ns, now))
        if now is not None:
            self._kept_ns, self._clock_ns = now, None

    @property
    def lives(self) -> int:
        """How many lives have begun with this file; the first one finds nothing saved."""
        return self._head.lives

    @property
    def commits(self) -> int:
        """How many commits the file has."""
        return self._head.commits

    @property
    def found(self) -> int:
        """How many commits the file had when it was opened."""
        return self._found

    @property
    def storage(self) -> bytes:
        """The random name of this storage; another disk has another one."""
        return self._head.storage

    @property
    def as_new(self) -> bool:
        """Whether the host was told to come back as a new member when this storage was made."""
        return self._head.as_new

    def begin_life(self, now: Nanos) -> Nanos:
        """A reading of the clock, `now` or later, after all readings of earlier lives; it is made durable."""
        first = max(now, self._head.clock_ns + 1)
        self._commit({}, self._head.lives + 1, first)
        self._kept_ns = first
        return first

    def close(self) -> None:
        """Save the time, and release the file."""
        if self._clock_ns is not None:
            self._keep_clock()
        self._database.close()
        if self._mark is not None:
            self._mark.close()
            self._mark = None

    def _commit(self, saves: Mapping[Key, bytes | None], lives: int, clock_ns: Nanos) -> None:
        # Little is called here, because this is on the way of every delivery that a node remembers.
        put = [(*key, state) for key, state in saves.items() if state is not None]
        removed = [key for key, state in saves.items() if state is None]
        before = self._head
        head = StoreHead(lives, clock_ns, before.storage, before.as_new, before.commits + 1)
        database = self._database
        try:
            digests = digests_of(saves)
            total = self._sums.total_after(digests)
            put.append((*_HEAD, head.encode(total)))
            database.execute("begin immediate")
            large = self._large
            if large or any(len(row[2]) > LARGE_BYTES for row in put):
                put, removed, large = self._keep_apart(put, removed)
            database.executemany(_PUT, put)
            if removed:
                database.executemany(_REMOVE, removed)
            database.execute("commit")
        except BaseException as error:
            self._roll_back()
            if isinstance(error, Exception):
                raise self._told(error) from error
            raise
        self._sums.change(digests, total)
        self._large = large
        self._head = head
        if self._mark is not None:
            self._mark.write(head.commits)

    def _keep_apart(self, put: list[Row], removed: list[Key]) -> tuple[list[Row], list[Key], frozenset[Key]]:
        """Save the large values of a transaction; returns what is left to save and to remove, and what is
        kept apart then."""
        rows = [row for row in put if len(row[2]) > LARGE_BYTES]
        small = [row for row in put if len(row[2]) <= LARGE_BYTES]
        keys = frozenset(row[:2] for row in rows)
        gone = self._large.intersection([*removed, *(row[:2] for row in small)])
        self._database.executemany(_REMOVE_LARGE, sorted(gone))
        self._database.executemany(_PUT_LARGE, rows)
        return small, [*removed, *sorted(keys)], (self._large - gone) | keys

    def _keep_clock(self) -> None:
        with contextlib.suppress(LocalError):  # on a full disk: it is not worth stopping for
            self.commit({})
            if self._mark is not None:
                self._mark.sync()

    # Opening

    def _prepare(self) -> None:
        with self._naming_file():
            # No other process may have the file open: two hosts with one identity would be worse than none.
            self._database.execute("pragma locking_mode = exclusive")
            mark = self._database.execute("pragma application_id").fetchone()[0]
            empty = not self._database.execute("select count(*) from sqlite_master").fetchone()[0]
            if mark != APPLICATION_ID and not (empty and mark == 0):
                raise LocalError(f"{self.path}: an SQLite file, but not one with ordercast's state")
            if empty and self.path is not None and mark_path(self.path).exists():
                raise self._damaged("the file is empty")
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = full")
            self._database.execute("begin immediate")  # takes the lock, and keeps it until the file is closed
            try:
                if empty:
                    self._create()
                elif self._version() == FORMAT - 1:  # it had no table of large values
                    self._set_format()
                self._database.execute("commit")
            except BaseException:
                self._roll_back()
                raise
            self._screen()
            self._compare_mark()

    def _create(self) -> None:
        for statement in filter(str.strip, _TABLES.split(";")):
            self._database.execute(statement)
        self._database.execute(_PUT, (*_HEAD, self._head.encode(0)))
        self._database.execute(f"pragma application_id = {APPLICATION_ID}")
        self._set_format()

    def _set_format(self) -> None:
        self._database.execute(_LARGE_TABLE)
        self._database.execute(f"pragma user_version = {FORMAT}")

    def _version(self) -> int:
        version: int = self._database.execute("pragma user_version").fetchone()[0]
        return version

    def _screen(self) -> None:
        version = self._version()
        if version != FORMAT:
            raise LocalError(f"{self.path}: format {version}, this version reads {FORMAT}")
        faults = self._database.execute("pragma quick_check(1)").fetchone()[0]
        if faults != "ok":
            raise self._damaged(str(faults).splitlines()[-1])
        self._verify()

    def _verify(self) -> None:
        """Check the sum over everything that the file holds."""
        written = b""
        for node, name, value in self._database.execute(_ALL):
            if (node, name) == _HEAD:
                written = value
            else:
                self._sums.add((node, name), value)
        self._large = frozenset(self._database.execute("select node, name from large"))
        head = decode_head(written, self._sums.total)
        if head is None:
            raise self._damaged("its check sum is wrong")
        self._head, self._kept_ns = head, head.clock_ns
        self._found = head.commits

    def _compare_mark(self) -> None:
        """Check that no acknowledged commit is missing, and go on with the mark."""
        if self.path is None:
            return
        mark, head = read_mark(mark_path(self.path)), self._head
        if mark is None and head.commits:
            raise self._damaged(f"its mark {mark_path(self.path)} is missing")
        if mark is not None and mark.storage != head.storage:
            raise self._damaged(f"{mark_path(self.path)} is the mark of another file")
        if mark is not None and mark.commits > head.commits:
            raise self._damaged(f"the last {mark.commits - head.commits} of {mark.commits} commits are lost")
        self._mark = CommitMark(mark_path(self.path), head.storage, head.commits)

    def _damaged(self, what: str) -> StateDamaged:
        return StateDamaged(f"{self.path}: the saved state is damaged: {what}")

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
        except LocalError:
            raise
        except Exception as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> Exception:
        """What to tell of an error of SQLite, or of a value that is not what it must be."""
        if isinstance(error, sqlite3.OperationalError):
            # Text that cannot be decoded has no code of SQLite.
            if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return HostTaken(f"{self.path}: another process has this state open")
            return LocalError(f"{self.path}: cannot use the saved state: {error}")
        if isinstance(error, sqlite3.DatabaseError):
            return LocalError(f"{self.path}: not a saved state, or damaged: {error}")
        if isinstance(error, TypeError | AttributeError | ValueError | OverflowError | StructError):
            return LocalError(f"{self.path}: a value of the wrong type: {error}")
        return error


def mark_path(path: Path) -> Path:
    """The file with the mark of a saved state."""
    return path.with_suffix(".mark")


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
