"""How a block of events spreads: Algorithm 1 for all processes, and the ages of Algorithm 2.

Whom a ball goes to, when, and whether it is lost depends on nothing that is in it. So events do not touch
each other until they are put in order, and the engine takes them in blocks: a row of bytes holds what one
process knows of all events of the block, and taking a ball is a byte-wise maximum, which the processor does
for many events at once. Blocks fit into the caches, and run on as many cores as there are.

What arrives is put, when it is sent, into the row of the turn in which the receiver will look at it: each
slot has a ring of such rows, as many as there may be turns during the longest latency.

A byte of such a row is 0: not heard of; 1: heard of, but relayed often enough already (it still moves logical
clocks); else the number of relays + 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ordercast.engines.epto.draws import choose, draw, stream
from ordercast.engines.epto.network import LOSS, latency_of
from ordercast.engines.epto.timeline import process_seed
from ordercast.engines.epto.types import Bytes, Numbers, Offsets, Ticks

TARGETS = 1
"""As in `sampling.sampler`: the stream of a process's seed that chooses whom it sends to."""
TURNS_MAX = 255
"""How far the turns of a block may reach: they are kept in bytes."""

DONE, TOO_SHORT, TOO_LONG = 0, 1, 2
"""The block is done; the timeline ends before it is; more turns than a byte can count."""


@njit(cache=True, nogil=True)
def _age(ages: Bytes, row: Bytes, out: Bytes, ttl: int) -> tuple[bool, bool]:
    """One round of a process: age what it knows, take what came, and say what it relays.

    Returns whether anything is relayed, and whether an event became known, stable or heard of.
    """
    limit = np.uint8(ttl)
    relayed = np.uint8(0)
    changed = np.uint8(0)
    for event in range(ages.shape[0]):
        code = row[event]
        came = np.uint8(code - 1) if code >= 2 else np.uint8(0)
        before = ages[event]
        # Beyond `limit` + 1 an age says nothing more.
        after = max(np.uint8(before + 1) if np.uint8(0) < before <= limit else before, came)
        ages[event] = after
        sent = np.uint8(0)
        if came > 0:
            sent = np.uint8(came + 2) if came < limit else np.uint8(1)
        out[event] = sent
        relayed |= sent
        news = (before == 0) & (code > 0)
        stable = (before <= limit) & (after > limit)
        changed |= np.uint8(news | stable)
    return bool(relayed), bool(changed)


@njit(cache=True, nogil=True)
def _merge(row: Bytes, out: Bytes) -> None:
    """A ball arrives: of each event, the copy that was relayed most often counts."""
    for event in range(row.shape[0]):
        row[event] = max(row[event], out[event])


@njit(cache=True, nogil=True)
def spread(
    fanout: int,
    ttl: int,
    ring: int,
    period: int,
    matrix: NDArray[np.int16],
    values: Ticks,
    latency_seed: np.uint64,
    seed: np.uint64,
    loss: np.uint64,
    slot_of: Numbers,
    first_turn: Numbers,
    turns: Numbers,
    left: Ticks,
    turn_tick: Ticks,
    by_tick: Offsets,
    slots: Numbers,
    leavers: Numbers,
    views: Numbers,
    source: Numbers,
    source_turn: Numbers,
    born: Ticks,
    base: Numbers,
    known: Bytes,
    stable: Bytes,
    only_heard: Numbers,
    arrived: Ticks,
    balls: Offsets,
    to_the_end: bool,
) -> tuple[int, int, int]:
    """Spread the events of a block, in the order of their birth.

    It ends when no ball is under way; or, unless all of it `to_the_end` is wanted, when every event is stable
    everywhere. Balls fly on for long after that, for what was relayed over slow links still counts few
    relays, but they tell nobody anything new. Where one that counts would land beyond the timeline, the
    timeline is too short: that ball is not lost.

    Fills, by process and event: `known`, the turn in which it entered the process's order, and `stable`, the
    turn in which it is old enough there, both less `base` of the process plus 1, 0 for never; `arrived`, if
    it has rows, the tick of the first ball; by event `balls`, if there is room, those that arrived; and
    `only_heard` with (process, event, turn) where a ball told of an event that was relayed often enough
    before one did that was not. Returns what became of it, how many of those there were (more than fit: try
    again), and when the last ball arrived.
    """
    processes = turn_tick.shape[0]
    count = source.shape[0]
    ticks = by_tick.shape[0] - 1
    tick = born[0]
    pending = np.zeros((processes, ring, count), np.uint8)
    dirty = np.zeros((processes, ring), np.bool_)
    ages = np.zeros((processes, count), np.uint8)
    out = np.zeros(count, np.uint8)
    peers = np.empty(max(fanout, 1), np.int32)
    current = np.arange(processes).astype(np.int32)
    step = 0
    while step < leavers.shape[0] and (step + 1) * period <= tick:
        for place in range(leavers.shape[1]):
            current[leavers[step, place]] = processes + step * leavers.shape[1] + place
        step += 1
    cursor = np.zeros(processes, np.int32)
    for slot in range(processes):
        cursor[slot] = np.searchsorted(turn_tick[slot], tick)
    for process in range(slot_of.shape[0]):
        base[process] = max(first_turn[process], cursor[slot_of[process]])
    waiting = 0
    missing = np.int64(processes) * count
    following = 0
    heard = 0
    quiet = tick
    beyond = False
    while tick < ticks and (following < count or (waiting > 0 and (to_the_end or missing > 0))):
        if step < leavers.shape[0] and tick == (step + 1) * period:
            for place in range(leavers.shape[1]):
                slot = leavers[step, place]
                current[slot] = processes + step * leavers.shape[1] + place
                ages[slot] = 0
                for place_in_ring in range(ring):
                    if dirty[slot, place_in_ring]:
                        dirty[slot, place_in_ring] = False
                        waiting -= 1
                        pending[slot, place_in_ring] = 0
            step += 1
        for index in range(by_tick[tick], by_tick[tick + 1]):
            slot = slots[index]
            turn = cursor[slot]
            cursor[slot] = turn + 1
            process = current[slot]
            row = pending[slot, turn % ring]
            if following < count and source[following] == process and source_turn[following] == turn:
                row[following] = 2
                if arrived.shape[0] > 0:
                    arrived[process, following] = tick
                if not dirty[slot, turn % ring]:
                    dirty[slot, turn % ring] = True
                    waiting += 1
                following += 1
            if dirty[slot, turn % ring]:
                dirty[slot, turn % ring] = False
                waiting -= 1
                quiet = tick
            relayed, changed = _age(ages[slot], row, out, ttl)
            if changed:
                turn_now = turn - base[process] + 1
                if turn_now > TURNS_MAX:
                    return TOO_LONG, heard, quiet
                for event in range(count):
                    if known[process, event] == 0 and ages[slot, event] > 0:
                        known[process, event] = turn_now
                    if stable[process, event] == 0 and ages[slot, event] > ttl:
                        stable[process, event] = turn_now
                        missing -= 1
                    if row[event] == 1 and ages[slot, event] == 0:
                        if heard < only_heard.shape[0]:
                            only_heard[heard, 0] = process
                            only_heard[heard, 1] = event
                            only_heard[heard, 2] = turn
                        heard += 1
            row[:] = 0
            if not relayed:
                continue
            mine = process_seed(seed, process)
            if views.shape[0] > 0:
                chosen = 0
                while chosen < fanout and views[index, chosen] >= 0:
                    peers[chosen] = views[index, chosen]
                    chosen += 1
            else:
                number = turn - first_turn[process] + 1
                chosen = choose(stream(mine, TARGETS), number, fanout, processes - 1, peers)
                for place in range(chosen):
                    peers[place] = current[peers[place] + (peers[place] >= slot)]
            losses = stream(mine, LOSS)
            got = 0
            for place in range(chosen):
                peer = peers[place]
                target = slot_of[peer]
                if current[target] != peer:
                    continue
                if loss > 0 and draw(losses, turn - first_turn[process] + 1, place) < loss:
                    continue
                takes = latency_of(matrix, values, latency_seed, slot, target)
                if takes < 0:
                    continue
                if tick + takes >= left[peer]:
                    beyond |= left[peer] == ticks
                    continue
                got += 1
                at = cursor[target]
                while at < turn_tick.shape[1] and turn_tick[target, at] < tick + takes:
                    at += 1
                if arrived.shape[0] > 0:
                    for event in range(count):
                        first = arrived[peer, event]
                        if out[event] >= 2 and (first < 0 or tick + takes < first):
                            arrived[peer, event] = tick + takes
                place_in_ring = at % ring
                if not dirty[target, place_in_ring]:
                    dirty[target, place_in_ring] = True
                    waiting += 1
                _merge(pending[target, place_in_ring], out)
            if balls.shape[0] > 0:
                for event in range(count):
                    if out[event] >= 2:
                        balls[event] += got
        tick += 1
    if following < count or ((waiting > 0 or beyond) and (to_the_end or missing > 0)):
        return TOO_SHORT, heard, quiet
    # From here on ages grow by one a turn, which needs no simulation.
    for slot in range(processes):
        process = current[slot]
        end = first_turn[process] + turns[process]
        for event in range(count):
            if ages[slot, event] > 0 and stable[process, event] == 0:
                turn = cursor[slot] + ttl - ages[slot, event]
                if turn >= end:
                    if left[process] == ticks:
                        return TOO_SHORT, heard, quiet
                elif turn - base[process] + 1 > TURNS_MAX:
                    return TOO_LONG, heard, quiet
                else:
                    stable[process, event] = turn - base[process] + 1
    return DONE, heard, quiet
