"""Which events there are: each process broadcasts in a round with a probability, at the round's beginning.

The first event of a process waits until it knows as many peers as it throws balls, like a peer's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ordercast.components.sampling.draws import stream as stream_of
from ordercast.engines.epto.draws import draw, stream
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import PROCESSES, Timeline, process_seed
from ordercast.engines.epto.types import Numbers, Ticks

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
    enough = np.empty((0, 0), np.bool_)
    if len(views) and setup.processes > 1:  # who is alone waits for nobody
        enough = _enough(line.turn_tick.shape, line.slots, views[:, _last_wanted(setup)])
    seed = np.uint64(stream_of(setup.seed, PROCESSES))
    source, turn = _draw(
        line.slot,
        line.first_turn,
        enough,
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


def _last_wanted(setup: Setup) -> int:
    """The place in a view that is taken if enough peers are known."""
    return max(0, min(setup.fanout, setup.processes - 1) - 1)


@njit(cache=True, nogil=True)
def _enough(shape: tuple[int, int], slots: Numbers, last_wanted: Numbers) -> NDArray[np.bool_]:
    """[slot, turn] Whether enough peers are known then."""
    cursor = np.zeros(shape[0], np.int32)
    enough = np.zeros(shape, np.bool_)
    for index in range(slots.shape[0]):
        slot = slots[index]
        enough[slot, cursor[slot]] = last_wanted[index] >= 0
        cursor[slot] += 1
    return enough


@njit(cache=True, nogil=True)
def _draw(
    slot: Numbers,
    first_turn: Numbers,
    enough: NDArray[np.bool_],
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
        waits = enough.shape[0] > 0
        for number in range(turns[process]):
            at = first_turn[process] + number
            if turn_tick[slot[process], at] >= until:
                break
            if draw(broadcasts, number + 1, 0) < limit:
                if waits and not enough[slot[process], at]:
                    continue
                waits = False
                if found == room:
                    source = np.concatenate((source, np.empty(room, np.int32)))
                    turn = np.concatenate((turn, np.empty(room, np.int32)))
                    room *= 2
                source[found] = process
                turn[found] = at
                found += 1
    return source[:found], turn[:found]
