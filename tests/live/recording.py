"""Simulated runs, written down once more as live hosts would: each by its own clock, in spool files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby
from pathlib import Path
from zlib import crc32

from ordercast.core import (
    Codec,
    Delivered,
    Dropped,
    Env,
    Joined,
    Left,
    Message,
    MessageId,
    Nanos,
    Node,
    NodeId,
    OutOfOrder,
    Plan,
    Process,
    RoleChange,
    Stamp,
    View,
)
from ordercast.core.bundle import Bundle
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.recording.spool_to_parquet import finish_run
from ordercast.sim.run import Run
from ordercast.trace import ADDED, CHANGING, REMOVED, REQUESTS, SAVED, SETTLING, Event, Kind


def payload_of(event: Event) -> bytes:
    """Some bytes for a message of which only the length is known."""
    seed = f"{event.message}/".encode()
    return (seed * (1 + (event.size or 0) // len(seed)))[: event.size or 0]


def lived(run: Run) -> list[Event]:
    """The events of a run with the times and digests that live hosts would have written."""
    host = {node.id: node.host for node in run.description.nodes}
    submitted = {event.message: event.clock_ns for event in run.events() if event.kind is Kind.SUBMIT}
    last: dict[int, Nanos] = dict.fromkeys(host.values(), 0)
    events = []
    for event in run.events():
        # A host that is killed leaves no trace of the time: its last event stands for it.
        now = last[host[event.node]] if event.kind is Kind.CRASH else event.clock_ns
        event = event._replace(time_ns=now, clock_ns=now)
        if event.submitted_ns is not None:
            event = event._replace(submitted_ns=submitted.get(event.message, event.submitted_ns))
        if event.kind in (Kind.SUBMIT, *SETTLING):
            event = event._replace(label=None)  # only the simulator knows probes and the fate of packets
        if event.digest is not None:
            event = event._replace(digest=crc32(payload_of(event)))
        last[host[event.node]] = now
        events.append(event)
    return events


def plan_of(run: Run) -> Plan:
    """A plan with the nodes of a run, for a protocol that is not one of the product's."""
    described = run.description

    def nobody(env: Env) -> Process:
        raise AssertionError("nobody runs this plan")

    nodes = tuple(Node(node.id, node.role, node.host, nobody) for node in described.nodes)
    return Plan(described.protocol, described.guarantees, nodes, described.groups, (), Codec([Nothing]))


class Nothing(Message, frozen=True, tag=1):
    """What nobody sends."""


def kill(recorder: TraceRecorder) -> None:
    """End a recorder as the death of its process would: what is buffered is gone, and so is its lock."""
    recorder._turner.stop()
    recorder._held.close()
    os.close(recorder._file)


def record(run: Run, plan: Plan, folder: Path, *, bytes_max: int = 2000, turns: int = 3) -> Path:
    """Write a run down, host by host, and finish it; spool files are small, so that there are several."""
    events = lived(run)
    for host in sorted({node.host for node in plan.nodes}):
        nodes = [node.id for node in plan.nodes if node.host == host]
        mine = [event for event in events if event.node in nodes]
        _record_host(mine, folder, run.description.run, host, nodes, bytes_max, turns)
    return finish_run(folder, plan, run.description.run, complete=run.description.complete)


def _record_host(
    events: list[Event],
    folder: Path,
    name: str,
    host: int,
    nodes: Sequence[NodeId],
    bytes_max: int,
    turns: int,
) -> None:
    recorder: TraceRecorder | None = TraceRecorder(folder, name, host, nodes, bytes_max=bytes_max)
    assert recorder is not None
    recorder.begin(0, saved=False)
    for turn, (kind, rows) in zip(count(), bundled(events), strict=False):
        first = rows[0]
        if kind is Kind.CRASH:
            if recorder is not None:
                recorder.flush()
                kill(recorder)
                recorder = None
        elif kind is Kind.RECOVER:
            if recorder is None:
                recorder = TraceRecorder(folder, name, host, nodes, bytes_max=bytes_max)
                recorder.begin(first.clock_ns, saved=first.label == SAVED)
        else:
            assert recorder is not None
            tell(recorder, rows)
            if turn % turns == 0:
                recorder.flush()
    if recorder is not None:
        recorder.close()


def bundled(events: Iterable[Event]) -> Iterator[tuple[Kind, list[Event]]]:
    """Events in a row of which a live host makes one record, or several that are not messages."""
    number = count()

    def key(event: Event) -> object:
        if event.kind not in (Kind.SUBMIT, Kind.DELIVER, Kind.OUT_OF_ORDER) or event.message is None:
            return next(number)
        alike = (event.kind, event.node, event.groups, event.numbers, event.stamp_clock, event.stamp_issuer)
        time = None if event.kind is Kind.SUBMIT else event.time_ns
        return (*alike, event.config, event.peer, event.message - _place(event), time)

    places: dict[tuple[NodeId, Kind], tuple[MessageId, int]] = {}

    def _place(event: Event) -> int:
        """How many in a row up to this one have consecutive identities."""
        message = event.message or 0
        before, length = places.get((event.node, event.kind), (-1, 0))
        length = length + 1 if message == before + 1 else 0
        places[event.node, event.kind] = (message, length)
        return length

    for _, rows in groupby(events, key):
        found = list(rows)
        yield found[0].kind, found


def tell(recorder: TraceRecorder, rows: list[Event]) -> None:
    """Have a recorder write a record."""
    first = rows[0]
    now, node, groups = first.clock_ns, first.node, first.groups or ()
    if first.kind is Kind.SUBMIT:
        assert first.message is not None
        times = [event.clock_ns for event in rows]
        recorder.submitted(node, groups, first.message, times, [payload_of(event) for event in rows])
    elif first.kind in (Kind.DELIVER, Kind.OUT_OF_ORDER):
        make = Delivered if first.kind is Kind.DELIVER else OutOfOrder
        delivery = make(b"", groups, first.peer or 0, _stamp(first), first.config or 0)
        if first.message is None:
            recorder.unreadable(now, node, delivery, first.label or "")
            return
        times = [event.submitted_ns or 0 for event in rows]
        recorder.delivered(now, node, delivery, Bundle(first.message, times, [payload_of(e) for e in rows]))
    elif first.kind is Kind.DROP:
        assert first.numbers and first.stamp_issuer is not None
        drop = Dropped(groups[0], first.stamp_issuer, first.numbers[0], first.config or 0)
        recorder.noticed(now, node, drop)
    elif first.kind is Kind.VIEW:
        recorder.noticed(now, node, _view(first))
    elif first.kind in REQUESTS:
        recorder.requested(now, node, "join" if first.kind is Kind.JOIN else "leave", groups[0])
    elif first.kind in CHANGING:
        recorder.noticed(now, node, _change(first))
    elif first.kind is Kind.ROLE:
        role, _, note = (first.label or "").partition(": ")
        recorder.noticed(now, node, RoleChange(groups[0], role, first.peer or 0, first.config or 0, note))
    elif first.kind is Kind.COMPLETE:
        assert first.message is not None and first.submitted_ns is not None
        recorder.completed(now, node, first.message, first.submitted_ns)
    else:
        raise AssertionError(f"no live host writes down {first}")


def _stamp(event: Event) -> Stamp | None:
    if event.stamp_clock is None or event.stamp_issuer is None:
        return None
    return Stamp(event.stamp_clock, event.stamp_issuer, event.numbers or ())


def _change(event: Event) -> Joined | Left:
    make = Joined if event.kind is Kind.JOINED else Left
    return make((event.groups or (0,))[0], event.config, _stamp(event), event.label or "")


def _view(event: Event) -> View:
    stamp = _stamp(event)
    label = event.label or ""
    group, config, members = (event.groups or (0,))[0], event.config or 0, event.members or ()
    if label in (ADDED, REMOVED):
        return View(group, config, members, change="added" if label == ADDED else "removed", stamp=stamp)
    return View(group, config, members, note=label, stamp=stamp)
