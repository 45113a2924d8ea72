"""Latencies of pairs of processes, without a matrix of all pairs.

Measured pairs have their own; those beyond the measured matrix have one of its values, chosen by a draw that
depends on the pair alone, so it is the same for every message. (EpTO's authors fill the rows of further
processes with draws from the measured values as well.) A pair that the matrix lacks never hears each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ordercast.core import LocalError
from ordercast.engines.epto.draws import below, draw
from ordercast.engines.epto.types import Ticks

ABSENT = -1
LATENCY = 11
"""The stream of the run's seed that draws latencies."""
LOSS = 12
"""The stream of a process's seed that draws what is lost of its balls."""


@dataclass(frozen=True)
class Latencies:
    """Latencies in ticks, each at least one: what is sent in a tick arrives in a later one."""

    matrix: NDArray[np.int16]
    """Of the first processes, row = source; ABSENT where there is none."""
    values: Ticks
    """Of all others, every value equally likely."""

    def __post_init__(self) -> None:
        matrix = self.matrix
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise LocalError(f"latencies: the matrix must be square, not {matrix.shape}")
        if np.any((matrix < 1) & (matrix != ABSENT)) or np.any(self.values < 1):
            raise LocalError(
                f"each latency must be a tick or more, or {ABSENT} if a pair of the matrix has none"
            )

    def check(self, processes: int) -> None:
        """Refuse to leave processes without latencies."""
        if not len(self.values) and processes > len(self.matrix):
            raise LocalError(
                f"only {len(self.matrix)} of {processes} processes have latencies; give values for others"
            )

    @property
    def longest(self) -> int:
        """The longest there is."""
        return int(max(self.values.max(initial=1), self.matrix.max(initial=1)))

    def later(self) -> Latencies:
        """The same, each a tick longer: as if what arrives in the tick of a round came after that round."""
        matrix = np.where(self.matrix == ABSENT, ABSENT, self.matrix + 1).astype(np.int16)
        return Latencies(matrix, self.values + 1)

    @staticmethod
    def constant(ticks: int) -> Latencies:
        """The same for all."""
        return Latencies(np.empty((0, 0), np.int16), np.array([ticks], np.int32))


@njit(cache=True, nogil=True, inline="always")
def latency_of(matrix: NDArray[np.int16], values: Ticks, seed: np.uint64, source: int, target: int) -> int:
    """How long a message takes; ABSENT if it never arrives. `seed` is the run's LATENCY stream."""
    if source < matrix.shape[0] and target < matrix.shape[0]:
        return int(matrix[source, target])
    return int(values[below(draw(seed, source, target), values.shape[0])])
