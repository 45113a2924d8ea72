"""A run of the engine as a trace like any other, so that the same checks judge it.

Node numbers are those of processes. A process that joins is down until then and comes back without memory,
which is what the schema has for somebody new; one that leaves crashes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np

from ordercast.core import MILLISECOND, Deployment, LocalError, MessageId, message_id
from ordercast.engines.epto.run import Outcome
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.protocol import deploy
from ordercast.trace import LOST, Event, Kind, RunDescription, build_table, describe, trace_hash, write_run

TICK = MILLISECOND
ROWS_MAX = 5_000_000
_GROUPS = (0,)


def trace_of(outcome: Outcome) -> tuple[RunDescription, list[Event]]:
    """The description and the events of a run that kept its deliveries."""
    setup, line = outcome.setup, outcome.line
    count = len(line.slot)
    if outcome.delivered.shape != (count, len(outcome.events)):
        raise LocalError("a trace needs a run that keeps its deliveries: run(..., keep=True)")
    if np.count_nonzero(outcome.delivered >= 0) > ROWS_MAX:
        raise LocalError(
            f"a trace has room for {ROWS_MAX:,} deliveries: run fewer processes or rounds, or follow only "
            "the first events (tracked)"
        )
    options = EptoOptions(
        clock=setup.clock,
        fanout=setup.fanout,
        ttl=setup.ttl,
        sampling=setup.sampling,
        rounds="together" if setup.in_step else "apart",
    )
    plan = deploy(Deployment((tuple(range(count)),), count, colocated=True), options)
    name = f"epto-scale-{setup.seed}-{crc32(msgspec.json.encode(setup)):08x}"
    description = describe(plan, run=name, source="scale engine", seed=setup.seed, complete=True)
    events = [*_lives(outcome), *_submissions(outcome), *_deliveries(outcome)]
    order = {Kind.CRASH: 0, Kind.RECOVER: 1, Kind.SUBMIT: 2, Kind.DELIVER: 3}
    events.sort(key=lambda event: (event.time_ns, order[event.kind]))  # stable: deliveries stay in order
    return description, events


def write_trace(outcome: Outcome, folder: Path) -> Path:
    """Put the trace of a run on disk, in a folder of its own below this one."""
    description, events = trace_of(outcome)
    table = build_table(description.run, events)
    described = msgspec.structs.replace(
        description, trace_hash=trace_hash(table), scenario={"scale": msgspec.to_builtins(outcome.setup)}
    )
    target = folder / description.run
    write_run(target, described, table)
    return target


def _lives(outcome: Outcome) -> list[Event]:
    line, events = outcome.line, []
    for process, (joined, left) in enumerate(zip(line.joined.tolist(), line.left.tolist(), strict=True)):
        if joined > 0:
            events.append(_event(0, process, Kind.CRASH))
            events.append(_event(joined, process, Kind.RECOVER)._replace(label=LOST))
        if left < line.ticks:
            events.append(_event(left, process, Kind.CRASH))
    return events


def _event(tick: int, process: int, kind: Kind) -> Event:
    return Event(tick * TICK, tick * TICK, process, kind)


def _messages(outcome: Outcome) -> list[MessageId]:
    """The identity of each event: its source, and how many that had broadcast before."""
    numbers: Counter[int] = Counter()
    messages = []
    for source in outcome.events.source.tolist():
        messages.append(message_id(source, numbers[source]))
        numbers[source] += 1
    return messages


def _submissions(outcome: Outcome) -> list[Event]:
    events = outcome.events
    rows = zip(_messages(outcome), events.source.tolist(), events.born.tolist(), strict=True)
    return [
        _event(born, source, Kind.SUBMIT)._replace(
            message=message, groups=_GROUPS, submitted_ns=born * TICK, size=0, digest=0
        )
        for message, source, born in rows
    ]


def _deliveries(outcome: Outcome) -> list[Event]:
    line, events, found = outcome.line, outcome.events, []
    messages = _messages(outcome)
    for process in range(len(line.slot)):
        ticks = line.turn_tick[line.slot[process]]
        for event in outcome.order.tolist():
            turn = int(outcome.delivered[process, event])
            if turn < 0:
                continue
            source = int(events.source[event])
            found.append(
                _event(int(ticks[turn]), process, Kind.DELIVER)._replace(
                    message=messages[event],
                    groups=_GROUPS,
                    submitted_ns=int(events.born[event]) * TICK,
                    stamp_clock=int(outcome.stamps[event]),
                    stamp_issuer=source,
                    config=0,
                    peer=source,
                    size=0,
                    digest=0,
                )
            )
    return found
