"""The mark beside a store: how many commits were acknowledged, in a small file of its own.

A file of saved state that was cut, or whose last records are damaged, may look like one whose last commit was
never finished. So the number of commits is kept in a second file, and is written after each commit. A store
that has fewer commits than its mark says has lost what others depend on.

The mark is given to the kernel, and to the disk only now and then: a wait for the disk would double the cost
of a commit. So the mark is exact if the host was killed. After a power cut it may be some seconds old, and
what was lost after it cannot be told from what was never written.
"""

import os
from contextlib import suppress
from pathlib import Path
from struct import Struct, error
from typing import NamedTuple
from zlib import crc32

from ordercast.core import LocalError
from ordercast.net.links.acquaintance import STORAGE_BYTES

MAGIC = b"ordmark1"
_CONTENT = Struct(f"<8s{STORAGE_BYTES}sQ")
_CHECK = Struct("<I")


class MarkContent(NamedTuple):
    """What a mark says."""

    storage: bytes
    """The storage that it belongs to."""
    commits: int


def read_mark(path: Path) -> MarkContent | None:
    """What a mark says; None if there is no mark."""
    try:
        content = path.read_bytes()
        magic, storage, commits = _CONTENT.unpack_from(content)
        (check,) = _CHECK.unpack(content[_CONTENT.size :])
    except FileNotFoundError:
        return None
    except (OSError, error) as failure:
        raise LocalError(f"{path}: the mark of the saved state cannot be read: {failure}") from failure
    if magic != MAGIC or check != crc32(content[: _CONTENT.size]):
        raise LocalError(f"{path}: the mark of the saved state is damaged")
    return MarkContent(storage, commits)


class CommitMark:
    """The mark of a store that is open."""

    def __init__(self, path: Path, storage: bytes, commits: int) -> None:
        """Open or create the mark, and write it durably."""
        self._path = path
        self._storage = storage
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            raise self._unwritable(failure) from failure
        self.write(commits)
        self.sync()

    def write(self, commits: int) -> None:
        """Note that so many commits are durable."""
        content = _CONTENT.pack(MAGIC, self._storage, commits)
        try:
            os.pwrite(self._file, content + crc32(content).to_bytes(_CHECK.size, "little"), 0)
        except OSError as failure:
            raise self._unwritable(failure) from failure

    def sync(self) -> None:
        """Make the mark durable as far as the disk allows; an older one does no harm."""
        with suppress(OSError):
            os.fsync(self._file)

    def close(self) -> None:
        """Make the mark durable, and release the file."""
        self.sync()
        os.close(self._file)

    def _unwritable(self, failure: OSError) -> LocalError:
        return LocalError(f"{self._path}: cannot save state there: {failure.strerror or failure}")
