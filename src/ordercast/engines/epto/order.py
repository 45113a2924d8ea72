"""The order of events: their timestamps, and when each process delivers what (Algorithm 2).

A process delivers events by the order of their keys (timestamp, then source), each when it is old enough and
no event before it is known that is not. Events that it learns of after it delivered a later one are lost on
it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ordercast.engines.epto.types import Bytes, Numbers, Offsets, Ticks

NEVER = -1


@njit(cache=True, nogil=True)
def logical_times(
    source: Numbers,
    turn: Numbers,
    block: Numbers,
    base: Numbers,
    known: Bytes,
    born_before: Offsets,
    only_heard: Numbers,
    only_start: Offsets,
) -> Offsets:
    """Timestamps by logical clocks: one more than the largest heard of by the source (Algorithm 4).

    `block` says which row of `base` is an event's. `born_before` is how many events there were when a process
    joined: whoever introduced it told it the time. `only_heard` has (process, event, turn) sorted by process,
    those of a process from `only_start` of it.
    """
    stamps = np.zeros(source.shape[0], np.int64)
    latest = np.zeros(source.shape[0] + 1, np.int64)
    for event in range(source.shape[0]):
        process = source[event]
        clock = latest[born_before[process]]
        for earlier in range(event):
            learnt = known[process, earlier]
            if learnt > 0 and base[block[earlier], process] + learnt - 1 <= turn[event]:
                clock = max(clock, stamps[earlier])
        for place in range(only_start[process], only_start[process + 1]):
            earlier = only_heard[place, 1]
            if earlier < event and only_heard[place, 2] <= turn[event]:
                clock = max(clock, stamps[earlier])
        stamps[event] = clock + 1
        latest[event + 1] = max(latest[event], stamps[event])
    return stamps


@njit(cache=True, nogil=True)
def deliver(
    process: int,
    order: Numbers,
    block: Numbers,
    base: Numbers,
    known: Bytes,
    stable: Bytes,
    first_turn: int,
    turns: int,
    delivered: Numbers,
) -> None:
    """Fill `delivered`: the turn in which a process delivers each event, NEVER if it does not.

    `order` lists the events by key.
    """
    count = order.shape[0]
    learnt = np.empty(count, np.int32)
    old = np.empty(count, np.int32)
    for place in range(count):
        event = order[place]
        offset = base[block[event], process] - 1
        learnt[place] = offset + known[process, event] if known[process, event] > 0 else NEVER
        old[place] = offset + stable[process, event] if stable[process, event] > 0 else NEVER
        delivered[event] = NEVER
    head = 0
    for turn in range(first_turn, first_turn + turns):
        place = head
        while place < count:
            if learnt[place] == NEVER or learnt[place] > turn:
                place += 1  # it is not known, so it does not hold up what is behind it
            elif old[place] == NEVER or old[place] > turn:
                break
            else:
                delivered[order[place]] = turn
                place += 1
                head = place


@njit(cache=True, nogil=True)
def settle(
    chosen: Numbers,
    order: Numbers,
    block: Numbers,
    base: Numbers,
    known: Bytes,
    stable: Bytes,
    slot: Numbers,
    first_turn: Numbers,
    turns: Numbers,
    turn_tick: Ticks,
    joined: Ticks,
    born: Ticks,
    histogram: Offsets,
    last_tick: Ticks,
    lacks: Offsets,
    keep: Numbers,
) -> tuple[int, int]:
    """Put the events in order at some processes.

    Adds the delays of deliveries, in ticks, to `histogram`; raises `last_tick` of an event to its last
    delivery; counts in `lacks` what a process does not deliver; and keeps all turns of delivery in `keep`, if
    that has rows. Returns how many deliveries there were, and how many out of order, which must be none. What
    a process gets of events from before it joined counts for the order alone.
    """
    count = order.shape[0]
    delivered = np.empty(count, np.int32)
    deliveries = 0
    violations = 0
    for process in chosen:
        deliver(process, order, block, base, known, stable, first_turn[process], turns[process], delivered)
        if keep.shape[0] > 0:
            keep[process] = delivered
        before = NEVER
        for place in range(count):
            event = order[place]
            turn = delivered[event]
            if turn != NEVER:
                violations += turn < before
                before = turn
            if born[event] < joined[process]:
                continue
            if turn == NEVER:
                lacks[process] += 1
                continue
            deliveries += 1
            tick = turn_tick[slot[process], turn]
            last_tick[event] = max(last_tick[event], tick)
            histogram[min(tick - born[event], histogram.shape[0] - 1)] += 1
    return deliveries, violations


@njit(cache=True, nogil=True)
def count_unordered(
    block: Numbers,
    base: Numbers,
    known: Bytes,
    slot: Numbers,
    turn_tick: Ticks,
    joined: Ticks,
    born: Ticks,
    histogram: Offsets,
) -> None:
    """Add the delays to the turns in which processes learnt of events, in ticks, to `histogram`.

    Events from before a process joined do not count.
    """
    for process in range(known.shape[0]):
        for event in range(known.shape[1]):
            learnt = known[process, event]
            if learnt > 0 and born[event] >= joined[process]:
                turn = base[block[event], process] + learnt - 1
                histogram[turn_tick[slot[process], turn] - born[event]] += 1


@njit(cache=True, nogil=True)
def list_missing(
    chosen: Numbers,
    order: Numbers,
    block: Numbers,
    base: Numbers,
    known: Bytes,
    stable: Bytes,
    first_turn: Numbers,
    turns: Numbers,
    joined: Ticks,
    left: Ticks,
    born: Ticks,
    last_tick: Ticks,
    ticks: int,
    round_ticks: int,
    missing: Numbers,
) -> tuple[int, int]:
    """List what some processes lack: (process, event, turn it was learnt of or NEVER, `passed`) in `missing`.

    It was passed if the process delivered a later event. What a process lacks because it left before is only
    counted (see `holes.py` for who owes what). Returns how many that are, and how many others there are, of
    which as many are listed as there is room.
    """
    count = order.shape[0]
    delivered = np.empty(count, np.int32)
    left_before = 0
    found = 0
    for process in chosen:
        deliver(process, order, block, base, known, stable, first_turn[process], turns[process], delivered)
        last = count - 1
        while last >= 0 and delivered[order[last]] == NEVER:
            last -= 1
        for place in range(count):
            event = order[place]
            if delivered[event] != NEVER or born[event] < joined[process]:
                continue
            learnt = known[process, event]
            still_to_come = left[process] < ticks and place > last and last_tick[event] >= 0
            if still_to_come and (learnt > 0 or left[process] <= last_tick[event] + round_ticks):
                left_before += 1
                continue
            if found < missing.shape[0]:
                missing[found, 0] = process
                missing[found, 1] = event
                missing[found, 2] = base[block[event], process] + learnt - 1 if learnt > 0 else NEVER
                missing[found, 3] = place < last
            found += 1
    return left_before, found
