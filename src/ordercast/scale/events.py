"""Which events there are: each process broadcasts in a round with a probability, at the round's beginning.

A process that has just joined waits until it knows as many peers as it throws balls, like a peer does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from ordercast.sampling.draws import stream as stream_of
from ordercast.scale.draws import draw, stream
from ordercast.scale.setup import Setup
from ordercast.scale.timeline import PROCESSES, Timeline, process_seed
from ordercast.scale.types import Numbers, Ticks

BROADCAST = 15
"""The stream of a process's seed that says in which rounds it broadcasts."""


@dataclass(frozen=True)
class Events:
    """Events in the order of their birth: by tick, then by slot."""

    born: Ticks
    source: Numbers
    """The process."""
    turn: Numbers
    """The slot's turn in which it was broadcast."""

    def __len__(self) -> int:
        return len(self.born)


def threshold(share: float) -> np.uint64:
    """Draws below this happen with that probability."""
    return np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))


def events_of(setup: Setup, line: Timeline, views: Numbers) -> Events:
    """All events of a run, or the first ones that it tracks; `views` are those of Cyclon, if it has them."""
    ready = line.first_turn
    if len(views):
        ready = _ready(line.slot, line.first_turn, line.turns, line.slots, views[:, _enough(setup)])
    seed = np.uint64(stream_of(setup.seed, PROCESSES))
    source, turn = _draw(
        line.slot,
        line.first_turn,
        ready,
        line.turns,
        line.turn_tick,
        setup.rounds * setup.round_ticks,
        seed,
        threshold(setup.rate),
    )
    slots = line.slot[source]
    born = line.turn_tick[slots, turn]
    order = np.lexsort((slots, born))
    if setup.tracked:
        order = order[: setup.tracked]
    return Events(born[order], source[order], turn[order])


def _enough(setup: Setup) -> int:
    """The place in a view that is taken if enough peers are known."""
    return max(0, min(setup.fanout, setup.processes - 1) - 1)


@njit(cache=True, nogil=True)
def _ready(
    slot: Numbers, first_turn: Numbers, turns: Numbers, slots: Numbers, last_known: Numbers
) -> Numbers:
    """[process] The first turn in which it knows enough peers; beyond its turns if there is none."""
    ready = first_turn + turns
    processes = slot.max() + 1
    cursor = np.zeros(processes, np.int32)
    enough = np.zeros((processes, 1 + (first_turn + turns).max()), np.bool_)
    for index in range(slots.shape[0]):
        at = slots[index]
        enough[at, cursor[at]] = last_known[index] >= 0
        cursor[at] += 1
    for process in range(slot.shape[0]):
        for turn in range(first_turn[process], first_turn[process] + turns[process]):
            if enough[slot[process], turn]:
                ready[process] = turn
                break
    return ready


@njit(cache=True, nogil=True)
def _draw(
    slot: Numbers,
    first_turn: Numbers,
    ready: Numbers,
    turns: Numbers,
    turn_tick: Ticks,
    until: int,
    seed: np.uint64,
    limit: np.uint64,
) -> tuple[Numbers, Numbers]:
    found = 0
    room = 1024
    source = np.empty(room, np.int32)
    turn = np.empty(room, np.int32)
    for process in range(slot.shape[0]):
        broadcasts = stream(process_seed(seed, process), BROADCAST)
        for number in range(turns[process]):
            at = first_turn[process] + number
            if turn_tick[slot[process], at] >= until:
                break
            if at >= ready[process] and draw(broadcasts, number + 1, 0) < limit:
                if found == room:
                    source = np.concatenate((source, np.empty(room, np.int32)))
                    turn = np.concatenate((turn, np.empty(room, np.int32)))
                    room *= 2
                source[found] = process
                turn[found] = at
                found += 1
    return source[:found], turn[:found]
