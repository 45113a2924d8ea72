"""Converts spool files to the segments of a run: during the run, after a host was killed, and at the end.

The folder of a live run has a folder `spool` beside its segments. For each host it has the spool files that
are not converted yet, a state (how far its trace has come) and a lock, which the process that writes or
converts them holds. A spool file is converted in three steps: the segment is written under another name and
renamed, then the state is written the same way, then the spool file is removed. If this is interrupted, the
file is converted again, to the same segment.

A host that is killed may have written down a turn whose state it did not save. Nobody saw anything of that
turn, and the next life does not know of it. So the next life says how many commits it found, and what
depended on the next one is left out.
"""

import fcntl
import logging
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.core import HostId, LocalError, Plan, RemoteError
from ordercast.net.host.recording.segments import TraceState, crash_table, tables_of
from ordercast.net.host.recording.spool_file import CUT, END, SUFFIX, Spool, read_spool, spool_path
from ordercast.net.host.store import HostTaken
from ordercast.trace import SCHEMA, describe
from ordercast.trace.store import DESCRIPTION, EVENTS

SPOOL = "spool"

_log = logging.getLogger("ordercast")

_DELTAS = ("step", "position", "time_ns", "clock_ns", "message", "submitted_ns", "stamp_clock")
"""Columns that grow along the rows: storing differences saves most of the space and time."""
_NUMBERS = "numbers.list.element"
_WORDS = ("run", "node", "kind", "groups.list.element", "stamp_issuer", "config", "peer", "size", "label")
"""Columns with few different values."""


def spool_folder(run_folder: Path) -> Path:
    """Where the spool files of a run are."""
    return run_folder / SPOOL


def spools_of(folder: Path, host: HostId) -> list[Path]:
    """The spool files of a host, in order."""
    return sorted(folder.glob(f"host-{host:04d}-*{SUFFIX}"))


@contextmanager
def locked(folder: Path, host: HostId) -> Iterator[None]:
    """Lock the spool files of a host; `LocalError` if another process has locked them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / f"host-{host:04d}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LocalError(f"cannot write the trace to {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise HostTaken(f"{folder}: host {host} is still running and writes its trace") from None
    finally:
        os.close(lock)


def load_state(folder: Path, host: HostId) -> TraceState:
    """How far the trace of a host has come."""
    path = _state_path(folder, host)
    try:
        return msgspec.json.decode(path.read_bytes(), type=TraceState)
    except FileNotFoundError:
        return TraceState()
    except (OSError, msgspec.MsgspecError) as error:
        raise RemoteError(f"{path}: not a state file of a trace: {error}") from error


def turn(path: Path, state: TraceState) -> None:
    """Convert a closed spool file, the host's next, to a segment."""
    folder = path.parent
    spool = read_spool(path)
    if spool is None or spool.header.number <= state.number:
        path.unlink()  # the host died before it wrote anything, or it was turned and not removed yet
        return
    host = spool.header.host
    following = spool_path(folder, host, spool.header.number + 1)
    after = read_spool(following) if following.exists() else None
    if spool.torn:
        _screen_torn(path, spool, after)
    if after is not None and after.header.life != spool.header.life and after.header.commits is not None:
        spool = spool.known_to(after.header.commits)
    _write_segment(folder.parent / segment_name(host, spool.header.number), tables_of(spool, state))
    _replace(_state_path(folder, host), msgspec.json.encode(state))
    path.unlink()


def turn_all(folder: Path, host: HostId) -> TraceState:
    """Convert all closed spool files of a host to segments."""
    state = load_state(folder, host)
    for path in spools_of(folder, host):
        turn(path, state)
    return state


def ended_well(run_folder: Path, host: HostId) -> bool:
    """Whether the last life of a host in a run that is not finished came to its end in good order."""
    folder = spool_folder(run_folder)
    for path in reversed(spools_of(folder, host)):
        spool = read_spool(path)
        if spool is not None:
            last = spool.starts[-1:].tolist()
            return bool(last) and spool.content[last[0]] == END
    return load_state(folder, host).ended


def hosts_of(run_folder: Path) -> list[HostId]:
    """The hosts that have taken part in a run that is not finished."""
    return sorted(
        int(path.stem.removeprefix("host-")) for path in spool_folder(run_folder).glob("host-*.lock")
    )


def finish_run(
    folder: Path,
    plan: Plan,
    run: str,
    *,
    complete: bool,
    settled: bool = False,
    gone: Collection[HostId] = (),
    removed: Collection[HostId] = (),
    one_clock: tuple[tuple[HostId, ...], ...] = (),
    scenario: dict[str, object] | None = None,
) -> Path:
    """Finish the trace of a live run whose hosts have all stopped; returns its folder.

    A host that did not stop in good order gets a crash at its end, and so does a host that could not write
    its trace any more. `complete` says that every fault had healed and that everything that should be
    delivered could be; `settled` says the latter of the remaining hosts (see `RunDescription`). A run with a
    part that is not on record is neither. Hosts that were `gone` before the end, or `removed`, count as
    crashed in any case. `one_clock` are hosts on one machine.
    """
    target = folder / run
    if (target / DESCRIPTION).exists():
        return target
    spools = spool_folder(target)
    resumed: set[HostId] = set()
    for host in sorted({node.host for node in plan.nodes}):
        with locked(spools, host):
            state = turn_all(spools, host)
            resumed |= {host} if state.resumed else set()
            if state.life >= 0 and (host in gone or host in removed or not state.ended):
                _bury(target, run, host, state)
    if not any(target.glob("*.parquet")):
        _write_segment(target / EVENTS, iter([SCHEMA.empty_table()]))
    cut = sorted(path.stem for path in spools.glob(f"host-*{CUT}"))
    if cut:
        _log.warning(
            "the trace of %s ends before they stopped, because they could not write it", ", ".join(cut)
        )
    files = _rows_of_files(target)
    whole = complete and not cut and any(files.values())  # of a run without events nothing can be said
    described = describe(plan, run=run, source="live", seed=None, complete=whole)
    described = msgspec.structs.replace(
        described,
        settled=settled and not cut,
        files=files,
        resumed=tuple(node.id for node in plan.nodes if node.host in resumed),
        removed=tuple(node.id for node in plan.nodes if node.host in removed),
        one_clock=one_clock,
        scenario=scenario or {},
    )
    _replace(target / DESCRIPTION, msgspec.json.format(msgspec.json.encode(described), indent=2))
    for path in spools.iterdir():
        path.unlink()
    spools.rmdir()
    return target


def _rows_of_files(target: Path) -> dict[str, int]:
    """The number of rows in each segment, so that a segment that is lost later is missed."""
    return {path.name: pq.read_metadata(path).num_rows for path in sorted(target.glob("*.parquet"))}


def segment_name(host: HostId, number: int) -> str:
    """The name of the segment that a spool file becomes."""
    return f"host-{host:04d}-{number:06d}.parquet"


def _bury(target: Path, run: str, host: HostId, state: TraceState) -> None:
    """Record the crash of a host that was killed and did not come back."""
    state.number += 1
    table = crash_table(run, state)
    if table is not None:
        _write_segment(target / segment_name(host, state.number), iter([table]))
    state.ended = True
    _replace(_state_path(spool_folder(target), host), msgspec.json.encode(state))


def _screen_torn(path: Path, spool: Spool, after: Spool | None) -> None:
    """Only the last file of a life may end within a record; in another file a part of the trace is lost.

    The same is true of any file that goes on after the bytes that are not a record.
    """
    if spool.damaged or (after is not None and after.header.life == spool.header.life):
        at = len(spool.content) - spool.torn
        raise RemoteError(f"{path}: damaged at byte {at} of {len(spool.content)}")


def _write_segment(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables to a Parquet file, one row group each; it gets its name when it is whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        first = next(tables, None)
        if first is None:
            return
        with pq.ParquetWriter(
            partial,
            SCHEMA,
            compression="zstd",
            use_dictionary=list(_WORDS),
            column_encoding=dict.fromkeys((*_DELTAS, _NUMBERS), "DELTA_BINARY_PACKED"),
        ) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise LocalError(f"cannot write the trace to {path}: {error.strerror or error}") from error


def _state_path(folder: Path, host: HostId) -> Path:
    return folder / f"host-{host:04d}.json"


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise LocalError(f"cannot write the trace to {path}: {error.strerror or error}") from error
