"""The layout of a spool file: what a host writes while it runs, before it becomes Parquet.

A spool file is a header and records, little-endian. Each is a multiple of 8 bytes long, so that arrays can
be laid over the whole file. A record begins with its length and the CRC-32 of the rest. So a record that was
only half written when its host was killed is recognised, and ends the file.

There are four kinds of records. A *bundle* stands for consecutive messages of one sender, submitted together
or delivered together, or the answers to them: a head of nine words, the numbers of the stamp, the times of
submission (unless all are the same), the groups, the lengths (unless all are the same), the CRC-32 of each
message, and of answers the outcomes (unless all are plain answers). A *row* is any other event, as
MessagePack; it may stand for several events, whose number grows by one. A *proviso* names a commit of the
host's store: what follows took place only if that commit did. An *end* says that the life of the
host came to its end in good order.
"""

from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from ordercast.core import HostId, LocalError, Nanos, NodeId, RemoteError
from ordercast.trace import CARRYING, Kind

MAGIC = b"ordspool"
FORMAT = 1
SUFFIX = ".spool"
CUT = ".cut"

SUBMITTED, ROW, END, PROVISO = 1, 4, 5, 255
"""The kinds of records that are not deliveries of messages."""
REPLIED = 254
"""The kind of record that has the answers to a client."""
CARRIED: dict[Kind, int] = dict(zip(CARRYING, (2, 3, *range(6, REPLIED)), strict=False))
"""The kinds of records that are deliveries of a bundle, by the kind of their rows."""
STAMPED, OWN_LENGTHS, OWN_TIMES, READS, OUTCOMES = 1, 2, 4, 8, 16
"""Flags of a bundle: it has a stamp, a table of lengths, a table of times; it consists of reads of a service,
or of answers with a table of outcomes."""

PREFIX = Struct("<II")
"""Length of the whole record, and the check over what follows."""
HEAD = "<BBHIiiqqIIqqqq"
"""Kind, flags, how many groups, how many numbers; node, peer; time; first message; how many messages, the
length of each; clock and issuer of the stamp; configuration; time of submission."""
HEAD_BYTES = Struct(HEAD).size
PLAIN = Struct("<BBHI")
"""How a row, a proviso or an end begins: its kind, nothing, how many further rows it stands for, and the
length of what follows. The number of each further row is one higher."""
FURTHER_MAX = 0xFFFF

_OPENING = Struct("<8sII")
_COMMIT = Struct("<Q")


class SpoolHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a spool file."""

    format: int = FORMAT
    run: str
    host: HostId
    life: int
    """The number of the host's life in this run, from 0."""
    number: int
    """The number of the host's spool file in this run, from 0."""
    nodes: tuple[NodeId, ...]
    started_ns: Nanos = 0
    """The host's clock when this life began."""
    saved: bool = False
    """Whether this life had the state that earlier lives saved."""
    late: bool = False
    """Whether the host came to the cluster later, and this is its first life."""
    past: bool = False
    """Whether there were earlier lives, remembered or not."""
    commits: int | None = None
    """How many commits of earlier lives the store had when it was opened; None if it was another store."""


class Spool(NamedTuple):
    """The content of a spool file."""

    header: SpoolHeader
    content: bytes
    starts: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """Where each whole record begins, behind its prefix."""
    torn: int
    """Number of bytes at the end that are not a whole record."""

    def known_to(self, commits: int) -> "Spool":
        """Without what depends on the next commit, for a store that had so many when the host was dead.

        Only the last commit can be missing: a host waits for each, and the store has a mark of the others.
        """
        for index, start in reversed([*enumerate(self.starts.tolist())]):
            if self.content[start] == PROVISO:
                (commit,) = _COMMIT.unpack_from(self.content, start + PLAIN.size)
                return self._replace(starts=self.starts[:index]) if commit == commits + 1 else self
        return self

    @property
    def damaged(self) -> bool:
        """Whether a whole record follows on bytes that are not one: they are damaged, and not torn."""
        end = len(self.content)
        return any(_is_record(self.content, at, end) for at in range(end - self.torn + 8, end, 8))


def spool_path(folder: Path, host: HostId, number: int) -> Path:
    """The path of a spool file; names sort by host, then by number."""
    return folder / f"host-{host:04d}-{number:06d}{SUFFIX}"


def cut_path(folder: Path, host: HostId) -> Path:
    """The file that marks a host that could not write any more and went on without a trace."""
    return folder / f"host-{host:04d}{CUT}"


def encode_header(header: SpoolHeader) -> bytes:
    """The bytes that a spool file begins with."""
    content = msgspec.msgpack.encode(header)
    return _OPENING.pack(MAGIC, len(content), crc32(content)) + padded(content)


def padded(content: bytes) -> bytes:
    """The content, padded with zeros to a multiple of 8 bytes."""
    return content + bytes(-len(content) % 8)


def plain_record(kind: int, content: bytes = b"", further: int = 0) -> bytes:
    """A row, which may stand for further rows, a proviso or an end."""
    body = PLAIN.pack(kind, 0, further, len(content)) + padded(content)
    return PREFIX.pack(PREFIX.size + len(body), crc32(body)) + body


def proviso(commit: int) -> bytes:
    """A record that makes what follows depend on a commit of the store."""
    return plain_record(PROVISO, _COMMIT.pack(commit))


def read_spool(path: Path) -> Spool | None:
    """A spool file and where its whole records are; None if not even its header was written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LocalError(f"{path}: cannot read the spool file: {error.strerror or error}") from error
    if len(content) < _OPENING.size:
        return None
    magic, length, check = _OPENING.unpack_from(content)
    if magic != MAGIC:
        raise RemoteError(f"{path}: not a spool file")
    start = _OPENING.size + length + -length % 8
    if len(content) < start:
        return None
    written = content[_OPENING.size : _OPENING.size + length]
    try:
        header = msgspec.msgpack.decode(written, type=SpoolHeader)
    except msgspec.MsgspecError as error:
        raise RemoteError(f"{path}: the header is damaged: {error}") from error
    if crc32(written) != check:
        raise RemoteError(f"{path}: the header is damaged")
    if header.format != FORMAT:
        raise RemoteError(f"{path}: format {header.format}, this version reads {FORMAT}")
    starts, end = _scan(content, start)
    return Spool(header, content, np.array(starts, np.int64), len(content) - end)


def _scan(content: bytes, start: int) -> tuple[list[int], int]:
    """Where the bodies of whole records begin, and where the last of them ends."""
    starts, view, size, prefix = [], memoryview(content), len(content), PREFIX.size
    read = PREFIX.unpack_from
    while start + prefix <= size:
        length, check = read(content, start)
        if length <= prefix or length % 8 or start + length > size:
            break
        if crc32(view[start + prefix : start + length]) != check:
            break
        starts.append(start + prefix)
        start += length
    return starts, start


def _is_record(content: bytes, start: int, end: int) -> bool:
    """Whether a whole record begins here."""
    if start + PREFIX.size > end:
        return False
    length, check = PREFIX.unpack_from(content, start)
    if length <= PREFIX.size or length % 8 or start + length > end:
        return False
    return bool(crc32(memoryview(content)[start + PREFIX.size : start + length]) == check)
