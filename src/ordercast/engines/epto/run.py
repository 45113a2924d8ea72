"""Runs the engine: the timeline, the spreading of all blocks of events, their order, and the outcome."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np

from ordercast.components.sampling.draws import stream as stream_of
from ordercast.core import LocalError
from ordercast.engines.epto.cyclon import cyclon_targets
from ordercast.engines.epto.events import Events, events_of, threshold
from ordercast.engines.epto.holes import Hole, Missing, find_holes
from ordercast.engines.epto.network import LATENCY, Latencies
from ordercast.engines.epto.order import count_unordered, list_missing, logical_times, settle
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.spread import DONE, TOO_LONG, spread
from ordercast.engines.epto.timeline import PROCESSES, Timeline, timeline
from ordercast.engines.epto.types import Bytes, Numbers, Offsets, Ticks
from ordercast.protocols.epto.views import AUTHORS_VIEW, cyclon_options

BLOCK_BYTES = 192 << 20
"""Memory of one block under way, about."""
BLOCK_EVENTS = 1024
BLOCK_LEAST = 64
"""Fewer would take as long: a row of them is a line of the cache."""
BLOCK_ROUNDS = 32
"""The births of a block lie within so many rounds, for its turns are kept in bytes."""
WARMUP_ROUNDS = 100
"""After which Cyclon's views are well mixed, up to ten thousand processes at least."""
CONTACTS = 3
TICKS_MAX = 1 << 28
"""How long a run may last: where the turns of each tick begin is kept, in 8 bytes."""
MISSING_MAX = 1 << 20
"""Up to this many undelivered events are listed one by one."""

Progress = Callable[[int, int], None]
"""A function that is called with the number of steps done and of all steps."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    setup: Setup
    line: Timeline
    events: Events
    stamps: Offsets
    """The timestamp of each event."""
    order: Numbers
    """The events by timestamp and source: the order in which all deliver them."""
    delays: Offsets
    """[ticks] How many deliveries took so long, from broadcast to ordered delivery."""
    arrivals: Offsets
    """[ticks] The same to the arrival of the first ball, if that was asked for."""
    unordered: Offsets
    """[ticks] The same to the round in which a process first relays it, if that was asked for: then Algorithm
    1 alone delivers it. A source delivers its own event in the round in which it broadcasts it."""
    deliveries: int
    violations: int
    """Deliveries out of order."""
    missing: Missing
    """What was not delivered at which process, without events from before the process joined."""
    last_tick: Ticks
    """[event] When the last process delivered it."""
    balls: Offsets
    """[event] How many balls with it arrived that could still tell somebody, if that was asked for."""
    rounds_run: int
    """Rounds of processes that were simulated, those of all blocks together."""
    memory_bytes: int
    """Of the largest arrays together, at their peak."""
    delivered: Numbers = field(default_factory=lambda: np.empty((0, 0), np.int32))
    """[process, event] The slot's turn in which it was delivered, -1 for never, if that was asked for."""

    def holes(self) -> list[Hole]:
        """What was not delivered, and why; without what processes lack because they left before."""
        return find_holes(self.line, self.events, self.missing, self.last_tick)


@dataclass
class _Spread:
    """What is known about the spreading of all events."""

    known: Bytes
    stable: Bytes
    base: Numbers
    block: Numbers
    arrived: Ticks
    balls: Offsets
    only_heard: list[Numbers]
    rounds: int = 0
    memory: int = 0


def run(
    setup: Setup,
    latencies: Latencies,
    *,
    arrivals: bool = False,
    unordered: bool = False,
    balls: bool = False,
    keep: bool = False,
    cores: int = 0,
    progress: Progress | None = None,
) -> Outcome:
    """Run the engine. `arrivals`, `unordered`, `balls` and `keep` ask for results that cost more."""
    if cores < 0:
        raise LocalError(f"cores must be 1 or more, or 0 for all cores, not {cores}")
    latencies.check(setup.processes)
    cores = cores or os.cpu_count() or 1
    lives = 3 if setup.leavers or balls else 1  # balls fly for long after all is delivered
    rounds = setup.rounds + lives * setup.ttl + latencies.longest // setup.round_ticks + 8
    for _ in range(6):
        ticks = rounds * (setup.round_ticks + setup.drift_ticks)
        if ticks > TICKS_MAX:
            raise LocalError(
                f"the run would last {ticks:,} ticks; the limit is {TICKS_MAX:,}: choose fewer rounds, or "
                "longer ticks (smaller round_ticks and latencies)"
            )
        line = timeline(setup, ticks)
        views = _views(setup, latencies, line)
        events = events_of(setup, line, views)
        found = _spread_all(setup, latencies, line, events, views, arrivals, balls, cores, progress)
        if found is not None:
            return _settle_all(setup, line, events, found, arrivals, unordered, keep, cores)
        rounds *= 2
    raise LocalError("events still spread long after the end of their life")


def _views(setup: Setup, latencies: Latencies, line: Timeline) -> Numbers:
    """Whom each turn's ball goes to, where that is not drawn from all.

    Our Cyclon has mixed its views before, from few contacts; that of the authors begins with mixed ones.
    """
    if setup.sampling == "uniform":
        return np.empty((0, 0), np.int32)
    options = cyclon_options(setup.sampling, setup.fanout, setup.round_ticks, setup.drift_ticks)
    drawn = setup.sampling == "cyclon-authors"
    return cyclon_targets(
        setup,
        latencies,
        line,
        options,
        contacts=min(AUTHORS_VIEW if drawn else CONTACTS, setup.processes),
        drawn=drawn,
        warmup_ticks=0 if drawn else WARMUP_ROUNDS * setup.round_ticks,
    )


def _blocks(setup: Setup, latencies: Latencies, events: Events, cores: int) -> list[tuple[int, int]]:
    """Cut the events into blocks, each small enough in memory and in time."""
    ring = _ring(setup, latencies)
    most = min(BLOCK_EVENTS, BLOCK_BYTES // (setup.processes * (ring + 1)), -(-len(events) // cores))
    most = max(most, BLOCK_LEAST)
    span = BLOCK_ROUNDS * setup.round_ticks
    edges = [0]
    while edges[-1] < len(events):
        first = edges[-1]
        by_time = int(np.searchsorted(events.born, events.born[first] + span))
        edges.append(min(first + most, by_time, len(events)))
    return list(pairwise(edges))


def _ring(setup: Setup, latencies: Latencies) -> int:
    """How many turns there may be while a ball is under way, and one more."""
    # In step, a round may be late and the next one early.
    shortest = setup.round_ticks - setup.drift_ticks * (2 if setup.in_step else 1)
    return latencies.longest // shortest + 2


def _spread_all(
    setup: Setup,
    latencies: Latencies,
    line: Timeline,
    events: Events,
    views: Numbers,
    arrivals: bool,
    balls: bool,
    cores: int,
    progress: Progress | None,
) -> _Spread | None:
    """Spread all events, block by block; None if the timeline is too short for it."""
    blocks = _blocks(setup, latencies, events, cores)
    rows, count, ring = len(line.slot), len(events), _ring(setup, latencies)
    found = _Spread(
        known=np.zeros((rows, count), np.uint8),
        stable=np.zeros((rows, count), np.uint8),
        base=np.zeros((max(1, len(blocks)), rows), np.int32),
        block=np.zeros(count, np.int32),
        arrived=np.full((rows, count) if arrivals else (0, 0), -1, np.int32),
        balls=np.zeros(count if balls else 0, np.int64),
        only_heard=[np.empty((0, 3), np.int32) for _ in blocks],
    )
    largest = max((last - first for first, last in blocks), default=0)
    found.memory = (
        found.known.nbytes * 2
        + found.arrived.nbytes
        + line.turn_tick.nbytes
        + line.slots.nbytes
        + views.nbytes
        + min(cores, len(blocks)) * setup.processes * (ring + 1) * largest
    )
    churns = setup.leavers > 0
    latency_seed = np.uint64(stream_of(setup.seed, LATENCY))
    seed = np.uint64(stream_of(setup.seed, PROCESSES))

    def one(number: int) -> tuple[int, int]:
        first, last = blocks[number]
        part = slice(first, last)
        found.block[part] = number
        room = 1024
        while True:
            only_heard = np.empty((room, 3), np.int32)
            state, heard, until = spread(
                setup.fanout, setup.ttl, ring, setup.round_ticks, latencies.matrix, latencies.values,
                latency_seed, seed, threshold(setup.loss), line.slot, line.first_turn, line.turns, line.left,
                line.turn_tick, line.by_tick, line.slots, line.leavers, views, events.source[part],
                events.turn[part], events.born[part], found.base[number], found.known[:, part],
                found.stable[:, part], only_heard, found.arrived[:, part] if arrivals else found.arrived,
                found.balls[part] if balls else found.balls, churns or balls,
            )  # fmt: skip
            if state != DONE or heard <= room:
                break
            room = heard
            for array in (found.known, found.stable):
                array[:, part] = 0
            if arrivals:
                found.arrived[:, part] = -1
            if balls:
                found.balls[part] = 0
        only_heard = only_heard[:heard]
        only_heard[:, 1] += first
        found.only_heard[number] = only_heard
        return state, setup.processes * (until - int(events.born[first])) // setup.round_ticks

    states = []
    for done, (state, rounds) in enumerate(_in_threads(cores, one, range(len(blocks))), 1):
        if state == TOO_LONG:
            raise LocalError(f"ttl {setup.ttl} with these latencies needs more rounds than a block can count")
        states.append(state)
        found.rounds += rounds
        if progress:
            progress(done, len(blocks))
    return found if all(state == DONE for state in states) else None


def _settle_all(
    setup: Setup,
    line: Timeline,
    events: Events,
    found: _Spread,
    arrivals: bool,
    unordered: bool,
    keep: bool,
    cores: int,
) -> Outcome:
    """Stamp the events, and put them in order at every process."""
    stamps = events.born.astype(np.int64)
    if setup.clock == "logical":
        stamps = _logical(line, events, found)
    order = np.lexsort((events.source, stamps)).astype(np.int32)
    rows, count = len(line.slot), len(events)
    delivered = np.empty((rows, count) if keep else (0, 0), np.int32)
    parts = [part for part in np.array_split(np.arange(rows, dtype=np.int32), max(1, cores * 4)) if len(part)]
    histogram = line.ticks + 1

    lacks = np.zeros(rows, np.int64)

    def one(part: Numbers) -> tuple[tuple[int, int], Offsets, Ticks]:
        delays, last = np.zeros(histogram, np.int64), np.full(count, -1, np.int32)
        counts = settle(
            part, order, found.block, found.base, found.known, found.stable, line.slot, line.first_turn,
            line.turns, line.turn_tick, line.joined, events.born, delays, last, lacks, delivered,
        )  # fmt: skip
        return counts, delays, last

    answers = list(_in_threads(cores, one, parts))
    last_tick = np.max([last for _, _, last in answers], axis=0, initial=-1)
    return Outcome(
        setup=setup,
        line=line,
        events=events,
        stamps=stamps,
        order=order,
        delays=_trim(np.sum([delays for _, delays, _ in answers], axis=0)),
        arrivals=_arrival_delays(found.arrived, events) if arrivals else np.zeros(1, np.int64),
        unordered=_unordered_delays(line, events, found) if unordered else np.zeros(1, np.int64),
        deliveries=sum(counts[0] for counts, *_ in answers),
        violations=sum(counts[1] for counts, *_ in answers),
        missing=_missing(setup, line, events, found, order, last_tick, lacks),
        last_tick=last_tick,
        balls=found.balls,
        rounds_run=found.rounds,
        memory_bytes=found.memory + delivered.nbytes,
        delivered=delivered,
    )


def _missing(
    setup: Setup,
    line: Timeline,
    events: Events,
    found: _Spread,
    order: Numbers,
    last_tick: Ticks,
    lacks: Offsets,
) -> Missing:
    """What is missing, once it is known when each event was delivered by the last who did."""
    chosen = np.flatnonzero(lacks).astype(np.int32)
    rows = np.empty((min(MISSING_MAX, int(lacks.sum())), 4), np.int32)
    left_before, others = list_missing(
        chosen, order, found.block, found.base, found.known, found.stable, line.first_turn, line.turns,
        line.joined, line.left, events.born, last_tick, line.ticks, setup.round_ticks, rows,
    )  # fmt: skip
    return Missing(int(lacks.sum()), left_before, rows[:others].copy())


def _logical(line: Timeline, events: Events, found: _Spread) -> Offsets:
    """The timestamps that logical clocks give."""
    only_heard = np.concatenate([*found.only_heard, np.empty((0, 3), np.int32)])
    only_heard = only_heard[np.argsort(only_heard[:, 0], kind="stable")]
    starts = np.searchsorted(only_heard[:, 0], np.arange(len(line.slot) + 1))
    born_before = np.searchsorted(events.born, line.joined)
    return logical_times(
        events.source, events.turn, found.block, found.base, found.known, born_before, only_heard, starts
    )


def _arrival_delays(arrived: Ticks, events: Events) -> Offsets:
    """How long first balls took; an event's own source does not count."""
    took = arrived - events.born
    took[events.source, np.arange(len(events))] = -1
    return np.bincount(took[(arrived >= 0) & (took >= 0)]).astype(np.int64)


def _unordered_delays(line: Timeline, events: Events, found: _Spread) -> Offsets:
    """How long it took until a process first relayed an event."""
    histogram = np.zeros(line.ticks + 1, np.int64)
    count_unordered(
        found.block, found.base, found.known, line.slot, line.turn_tick, line.joined, events.born, histogram
    )
    return _trim(histogram)


def _trim(histogram: Offsets) -> Offsets:
    """Without the zeros at the end."""
    used = np.flatnonzero(histogram)
    return histogram[: used[-1] + 1 if len(used) else 1]


def _in_threads(cores: int, work: Callable[[Item], Answer], items: Iterable[Item]) -> Iterable[Answer]:
    """Do some work on several cores; the compiled functions let go of the interpreter's lock."""
    with ThreadPoolExecutor(max_workers=cores) as pool:
        yield from pool.map(work, items)
