"""When processes run their rounds, leave and join: known in advance, for nothing else changes it.

A *slot* is a place for a process. With churn, the process in a slot leaves and another takes its place at
once. Processes are numbered: first those that begin, one in each slot, then those that join, in order. The
rounds of a slot's processes, one after another, are its *turns*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ordercast.components.sampling.draws import stream as stream_of
from ordercast.engines.epto.draws import below, choose, draw, stream
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.types import Numbers, Offsets, Ticks

PERIODS = 2
"""As in `protocols.epto.rounds`: the stream of a process's seed that says how long its rounds last."""
CHURN = 13
PROCESSES = 14
"""Streams of the run's seed: who leaves, and the seeds of processes."""


@njit(cache=True, nogil=True, inline="always")
def process_seed(seed: np.uint64, process: int) -> np.uint64:
    """The seed of a process; `seed` is the PROCESSES stream of the run's seed."""
    return draw(seed, process, 0)


@dataclass(frozen=True)
class Timeline:
    """The rounds of all processes, by slot and by tick."""

    ticks: int
    """How long it is."""
    slot: Numbers
    """[process] Where it lives."""
    joined: Ticks
    """[process] When it began; 0 for the first ones."""
    left: Ticks
    """[process] When it was replaced; `ticks` for those that stay."""
    first_turn: Numbers
    """[process] The slot's turn that is the process's first round, number 1."""
    turns: Numbers
    """[process] How many turns it has."""
    turn_tick: Ticks
    """[slot, turn] When each turn is; `ticks` beyond the last."""
    by_tick: Offsets
    """[tick] Where the turns of a tick begin in `slots`; one more at the end."""
    slots: Numbers
    """Slots in the order of their turns; those of one tick in ascending order."""
    leavers: Numbers
    """[step, place] The slots that get a new process at tick (step + 1) * round_ticks, before all else there.
    Its number is processes + step * leavers a step + place."""


def timeline(setup: Setup, ticks: int) -> Timeline:
    """The timeline of a run that lasts so many ticks."""
    processes, period = setup.processes, setup.round_ticks
    steps = (ticks - 1) // period if setup.leavers else 0
    leavers = np.empty((steps, setup.leavers), np.int32)
    churn = np.uint64(stream_of(setup.seed, CHURN))
    for step in range(steps):
        choose(churn, step, setup.leavers, processes, leavers[step])
    slot = np.concatenate((np.arange(processes, dtype=np.int32), leavers.ravel()))
    joined = np.zeros(len(slot), np.int32)
    joined[processes:] = np.repeat(np.arange(1, steps + 1) * period, setup.leavers)
    left = _left(slot, joined, processes, ticks)
    seed = np.uint64(stream_of(setup.seed, PROCESSES))
    turns = _count(joined, left, period, setup.drift_ticks, setup.in_step, seed)
    first_turn, longest = _first_turns(slot, turns, processes)
    turn_tick = np.full((processes, longest), ticks, np.int32)
    _write(slot, joined, first_turn, turns, turn_tick, period, setup.drift_ticks, setup.in_step, seed)
    by_tick, slots = _by_tick(turn_tick, ticks)
    return Timeline(ticks, slot, joined, left, first_turn, turns, turn_tick, by_tick, slots, leavers)


@njit(cache=True, nogil=True)
def _left(slot: Numbers, joined: Ticks, processes: int, ticks: int) -> Ticks:
    left = np.full(slot.shape, ticks, np.int32)
    current = np.arange(processes)
    for process in range(processes, slot.shape[0]):
        left[current[slot[process]]] = joined[process]
        current[slot[process]] = process
    return left


@njit(cache=True, nogil=True, inline="always")
def _begin(periods: np.uint64, joined: int, period: int, in_step: bool) -> int:
    """When the first round of a process is: at a random phase, or at once."""
    return joined if in_step else joined + below(draw(periods, 0, 0), period)


@njit(cache=True, nogil=True, inline="always")
def _following(
    periods: np.uint64, begin: int, at: int, number: int, period: int, width: int, in_step: bool
) -> int:
    """When the round after round `number` is, which is `at`; in step, by its number alone."""
    nominal = begin + number * period if in_step else at + period
    return nominal - width + below(draw(periods, number, 1), 2 * width + 1)


@njit(cache=True, nogil=True)
def _count(joined: Ticks, left: Ticks, period: int, width: int, in_step: bool, seed: np.uint64) -> Numbers:
    """How many rounds each process has."""
    turns = np.zeros(joined.shape, np.int32)
    for process in range(joined.shape[0]):
        periods = stream(process_seed(seed, process), PERIODS)
        at = begin = _begin(periods, joined[process], period, in_step)
        number = 0
        while at < left[process]:
            number += 1
            at = _following(periods, begin, at, number, period, width, in_step)
        turns[process] = number
    return turns


@njit(cache=True, nogil=True)
def _first_turns(slot: Numbers, turns: Numbers, processes: int) -> tuple[Numbers, int]:
    first = np.zeros(slot.shape, np.int32)
    used = np.zeros(processes, np.int32)
    for process in range(slot.shape[0]):
        first[process] = used[slot[process]]
        used[slot[process]] += turns[process]
    return first, max(1, used.max())


@njit(cache=True, nogil=True)
def _write(
    slot: Numbers,
    joined: Ticks,
    first_turn: Numbers,
    turns: Numbers,
    turn_tick: Ticks,
    period: int,
    width: int,
    in_step: bool,
    seed: np.uint64,
) -> None:
    """The ticks of all rounds."""
    for process in range(slot.shape[0]):
        periods = stream(process_seed(seed, process), PERIODS)
        at = begin = _begin(periods, joined[process], period, in_step)
        for number in range(turns[process]):
            turn_tick[slot[process], first_turn[process] + number] = at
            at = _following(periods, begin, at, number + 1, period, width, in_step)


@njit(cache=True, nogil=True)
def _by_tick(turn_tick: Ticks, ticks: int) -> tuple[Offsets, Numbers]:
    """Sort all turns by tick, then slot."""
    by_tick = np.zeros(ticks + 2, np.int64)
    for slot in range(turn_tick.shape[0]):
        for turn in range(turn_tick.shape[1]):
            if turn_tick[slot, turn] < ticks:
                by_tick[turn_tick[slot, turn] + 2] += 1
    for tick in range(2, ticks + 2):
        by_tick[tick] += by_tick[tick - 1]
    slots = np.empty(by_tick[ticks + 1], np.int32)
    for slot in range(turn_tick.shape[0]):
        for turn in range(turn_tick.shape[1]):
            if turn_tick[slot, turn] < ticks:
                place = turn_tick[slot, turn] + 1
                slots[by_tick[place]] = slot
                by_tick[place] += 1
    return by_tick[: ticks + 1], slots
