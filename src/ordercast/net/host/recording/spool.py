"""The recorder of a live host: writes down cheaply what its nodes do.

Recording is on the path of every message. So one small binary record stands for a whole bundle
(`spool_file.py`) and goes into a buffer, and the buffer goes to the kernel once per turn of the host's loop.
Bytes in the kernel survive the death of the process, though not that of the machine: a trace serves to judge
a run, and nothing else depends on it. So a recorder that cannot write any more (for example because the disk
is full) logs that and stops, and its host goes on. The spool file then has no end, as if the host had been
killed, and a mark beside it says that it was not: such a run is never complete.

Spool files are converted to Parquet elsewhere (`segments.py`).
"""

import contextlib
import logging
import os
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct
from struct import error as StructError
from struct import pack as pack_struct
from zlib import crc32

import msgspec

from ordercast.core import (
    Carrier,
    GroupId,
    Groups,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Replied,
    StateWanted,
    outcome_of,
)
from ordercast.core.bundle import Bundle
from ordercast.kernel.memberships import Request
from ordercast.net.host.recording import spool_file as layout
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.recording.spool_file import SpoolHeader, cut_path, spool_path
from ordercast.trace import KIND_OF, LOST, SAVED, Event, Kind, given_event, notice_event

GROUPS_KEPT_MAX = 4096

_ZEROS = (b"", bytes(4))
_RECORD_OF = {delivery: layout.CARRIED[kind] for delivery, kind in KIND_OF.items() if kind in layout.CARRIED}
"""For each kind of carrier, the kind of record of its bundle."""

_log = logging.getLogger("ordercast")


class Spooler(Recorder):
    """Writes spool files, one after the other."""

    def __init__(
        self,
        folder: Path,
        header: SpoolHeader,
        *,
        bytes_max: int,
        age_max_ns: Nanos,
        closed: Callable[[], None],
    ) -> None:
        """`closed` is called whenever a file is closed."""
        super().__init__()
        self._folder = folder
        self._header = header
        self._bytes_max = bytes_max
        self._age_max_ns = age_max_ns
        self._closed = closed
        self._buffer: list[bytes] = []
        self._groups: dict[Groups, bytes] = {}
        self._heads: dict[int, Struct] = {}
        self._last_ns: Nanos = 0
        self._begun_ns: Nanos = 0
        self._size = 0
        self._kept = 0
        """The size of the file before the last flush."""
        self._file = -1
        self.failure: LocalError | None = None
        """Why nothing is recorded any more."""

    def begin(self, started_ns: Nanos, saved: bool, past: bool = False, commits: int | None = None) -> None:
        """Begin the first file of this life."""
        self._header = msgspec.structs.replace(
            self._header, started_ns=started_ns, saved=saved, past=past, commits=commits
        )
        self._last_ns = started_ns
        self._open()

    def submitted(
        self,
        node: NodeId,
        groups: Groups,
        first: MessageId,
        times: Sequence[Nanos],
        payloads: Sequence[bytes],
        *,
        read: bool = False,
    ) -> None:
        """Record a bundle without a stamp, in the time of its submission."""
        self._last_ns = times[-1]
        fields, flags = (node, -1, times[-1], first), layout.READS if read else 0
        self._bundle(layout.SUBMITTED, flags, groups, (), fields, (0, 0, 0), times, payloads)

    def delivered(self, now: Nanos, node: NodeId, delivery: Carrier, bundle: Bundle) -> None:
        """Record a bundle with its stamp, if it has one."""
        self._last_ns = now
        kind = _RECORD_OF[type(delivery)]
        first, times, payloads = bundle
        stamp = delivery.stamp
        fields = (node, delivery.sender, now, first)
        try:
            if stamp is None:
                place = (0, 0, delivery.config)
                self._bundle(kind, 0, delivery.groups, (), fields, place, times, payloads)
            else:
                place = (stamp.clock, stamp.issuer, delivery.config)
                numbers = stamp.numbers
                self._bundle(kind, layout.STAMPED, delivery.groups, numbers, fields, place, times, payloads)
        except (StructError, OverflowError):  # what a faulty peer made up may not fit
            self.unreadable(now, node, delivery, "a message with numbers beyond 64 bits")

    def replied(self, now: Nanos, node: NodeId, replied: Replied, bundle: Bundle) -> None:
        """Record a bundle of results with its place; outcomes only if one is not an answer."""
        self._last_ns = now
        first, times, results = bundle
        stamp, flags, outcomes = replied.stamp, 0, b""
        if replied.read:
            flags = layout.READS
        elif any(not result or result[0] for result in results):
            flags = layout.OUTCOMES
            outcomes = array("I", map(outcome_of, results)).tobytes()
        place = (0, 0, 0) if stamp is None else (stamp.clock, stamp.issuer, 0)
        flags |= 0 if stamp is None else layout.STAMPED
        fields, groups = (node, replied.replica, now, first), (replied.group,)
        try:
            self._bundle(layout.REPLIED, flags, groups, (), fields, place, times, results, outcomes)
        except (StructError, OverflowError):  # what a faulty peer made up may not fit
            self._row(Event(now, now, node, Kind.REPLY, label="a reply with numbers beyond 64 bits"))

    def _bundle(
        self,
        kind: int,
        flags: int,
        groups: Groups,
        numbers: tuple[int, ...],
        fields: tuple[NodeId, NodeId, Nanos, MessageId],
        place: tuple[int, int, int],
        times: Sequence[Nanos],
        payloads: Sequence[bytes],
        outcomes: bytes = b"",
    ) -> None:
        count = len(payloads)
        time, tables, odd = times[0], b"", len(groups) + count
        if times.count(time) != count:
            flags |= layout.OWN_TIMES
            tables = pack_struct(f"<{count}q", *times)
        tables += self._groups.get(groups) or self._pack_groups(groups)
        if count == 1:
            length = len(payloads[0])
            tables += crc32(payloads[0]).to_bytes(4, "little")
        else:
            lengths = list(map(len, payloads))
            length = lengths[0]
            if lengths.count(length) != count:
                flags |= layout.OWN_LENGTHS
                tables += array("I", lengths).tobytes()
                odd += count
            tables += array("I", map(crc32, payloads)).tobytes()
        if outcomes:
            tables += outcomes
            odd += count
        head = self._heads.get(len(numbers)) or self._head(len(numbers))
        body = (
            head.pack(kind, flags, len(groups), len(numbers), *fields, count, length, *place, time, *numbers)
            + tables
            + _ZEROS[odd & 1]
        )
        self._buffer.append(layout.PREFIX.pack(len(body) + 8, crc32(body)))
        self._buffer.append(body)

    def _pack_groups(self, groups: Groups) -> bytes:
        if len(self._groups) >= GROUPS_KEPT_MAX:
            self._groups.clear()
        packed = self._groups[groups] = pack_struct(f"<{len(groups)}i", *groups)
        return packed

    def _head(self, numbers: int) -> Struct:
        head = Struct(f"{layout.HEAD}{numbers}q")
        if len(self._heads) < GROUPS_KEPT_MAX:
            self._heads[numbers] = head
        return head

    def unreadable(self, now: Nanos, node: NodeId, delivery: Carrier, reason: str) -> None:
        """Record a delivery whose payload cannot be read, and the reason."""
        self._row(Event(now, now, node, KIND_OF[type(delivery)], label=reason))

    def noticed(self, now: Nanos, node: NodeId, notice: Notice) -> None:
        """Record a notice; one record stands for many rows with consecutive numbers."""
        event, step = notice_event(now, now, node, notice), layout.FURTHER_MAX + 1
        if event.message is not None:
            for single in notice.singles():
                self._noticed(notice_event(now, now, node, single), 0)
            return
        for first in range(0, notice.rows, step):
            numbers = event.numbers and tuple(number + first for number in event.numbers)
            self._noticed(event._replace(numbers=numbers), min(step, notice.rows - first) - 1)

    def _noticed(self, event: Event, further: int) -> None:
        try:
            self._pack_groups(event.groups or ())
            pack_struct(f"<{len(event.members or ())}i", *(event.members or ()))
            words = (
                *(number + further for number in event.numbers or ()),
                event.stamp_clock or 0,
                event.stamp_issuer or 0,
                event.config or 0,
            )
            pack_struct(f"<{len(words)}q", *words)
        except StructError:  # what a faulty peer made up may not fit
            reason = f"a {event.kind} with numbers beyond 64 bits"
            event, further = Event(event.time_ns, event.clock_ns, event.node, Kind.DELIVER, label=reason), 0
        self._row(event, further)

    def requested(self, now: Nanos, node: NodeId, request: Request, group: GroupId) -> None:
        """Record what an application wants."""
        self._row(Event(now, now, node, Kind(request), groups=(group,)))

    def gave_state(self, now: Nanos, node: NodeId, wanted: StateWanted, data: bytes, label: str) -> None:
        """Record the size and the digest of what it gave."""
        self._row(given_event(now, now, node, wanted, data, label))

    def completed(self, now: Nanos, node: NodeId, message: MessageId, submitted: Nanos) -> None:
        """Record what a client knows."""
        self._row(Event(now, now, node, Kind.COMPLETE, message, submitted_ns=submitted))

    def crashed(self, now: Nanos, node: NodeId) -> None:
        """Record that a node is down."""
        self._row(Event(now, now, node, Kind.CRASH))

    def recovered(self, now: Nanos, node: NodeId, saved: bool) -> None:
        """Record that it is up."""
        self._row(Event(now, now, node, Kind.RECOVER, label=SAVED if saved else LOST))

    def _row(self, event: Event, further: int = 0) -> None:
        self._last_ns = event.time_ns
        content = msgspec.msgpack.encode(tuple(event))
        self._buffer.append(layout.plain_record(layout.ROW, content, further))

    def flush(self, commit: int = 0) -> None:
        """Write the buffer to the kernel, in a new file if this one is large or old enough."""
        self._kept = self._size
        if self._buffer:
            content = b"".join(self._buffer)
            if commit:
                content = layout.proviso(commit) + content
            self._buffer.clear()
            self._unless_failed(lambda: self._append(content))

    def take_back(self) -> None:
        """Cut the file where the last `flush` began."""
        if self._file >= 0:
            self._unless_failed(lambda: os.ftruncate(self._file, self._kept))
            self._size = self._kept

    def _append(self, content: bytes) -> None:
        if self._size >= self._bytes_max or self._last_ns - self._begun_ns >= self._age_max_ns:
            self._end()
            self._header = msgspec.structs.replace(self._header, number=self._header.number + 1)
            self._open()
            self._kept = self._size
        self._write(content)

    def close(self, *, failed: bool = False) -> None:
        """Record the end of this life."""
        if self._file >= 0:
            if not failed:
                self._buffer.append(layout.plain_record(layout.END))
            content = b"".join(self._buffer)
            self._buffer.clear()
            self._unless_failed(lambda: self._write(content))
        if self._file >= 0:
            self._end()
        if self.failure is not None:
            self._mark()  # once more: there may be room for it now

    def _unless_failed(self, write: Callable[[], None]) -> None:
        """Write, unless that has failed before; a failure now ends the record."""
        if self.failure is not None:
            return
        try:
            write()
        except LocalError as error:
            self._give_up(error)

    def _give_up(self, error: LocalError) -> None:
        _log.critical("host %d goes on, but its trace ends here: %s", self._header.host, error)
        self.failure = error
        if self._file >= 0:
            os.close(self._file)  # not as one that came to its end
            self._file = -1
        self._mark()
        self.on_failure()

    def _mark(self) -> None:
        with contextlib.suppress(OSError):
            cut_path(self._folder, self._header.host).touch(mode=0o600)

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return spool_path(self._folder, self._header.host, self._header.number)

    def _open(self) -> None:
        self._size, self._begun_ns = 0, self._last_ns
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        self._write(layout.encode_header(self._header))

    def _write(self, content: bytes) -> None:
        try:
            written = os.write(self._file, content)
            while written < len(content):  # a disk that fills up takes a part first
                written += os.write(self._file, content[written:])
        except OSError as error:
            raise self._unwritable(error) from error
        self._size += len(content)

    def _end(self) -> None:
        os.close(self._file)
        self._file = -1
        self._closed()

    def _unwritable(self, error: OSError) -> LocalError:
        return LocalError(f"{self.path}: cannot write the trace: {error.strerror or error}")
