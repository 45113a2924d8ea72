"""Latencies for the engine: from a file, from percentiles, or from what EpTO's paper prints of its own.

The last is a stand-in for the latencies that the authors measured between nodes of PlanetLab (section 6,
Figure 5): a quantile function through what the paper prints of them, and nothing else. The percentiles are
its knots, and the longest latency is the "six times the round duration" of the text. Between the knots it
rises by a power, one for the bulk and one for the last twentieth; these two numbers are solved for the
printed mean and standard deviation. It is nowhere more than 4.3 percentage points off the measured values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ordercast.core import LocalError
from ordercast.engines.epto.network import ABSENT, Latencies
from ordercast.engines.epto.types import Ticks

ARRAY = "lat_ticks"
"""What the matrix is called in its file."""
LATENCY_MAX = 1 << 14
"""In ticks."""
MEAN, DEVIATION = 157.0, 119.0
PERCENTILES = ((0.05, 15.0), (0.50, 125.0), (0.95, 366.0))
"""As printed, in ticks."""
LONGEST = 6 * 125.0
BULK, TAIL = 1.17, 6.7
"""Powers, solved for the mean and the deviation."""
VALUES = 20_000


def read_matrix(path: Path) -> NDArray[np.int16]:
    """Latencies in ticks, row = source, ABSENT where there is none."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            matrix = arrays[ARRAY]
    except FileNotFoundError as error:
        raise LocalError(f"{path}: no such file") from error
    except KeyError as error:
        raise LocalError(f"{path} has no array '{ARRAY}'") from error
    except (OSError, ValueError, EOFError, BadZipFile, TypeError) as error:
        raise LocalError(f"{path} is not a file of NumPy arrays (.npz): {error}") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise LocalError(f"{path}: '{ARRAY}' must be a square matrix, one row for each source")
    if matrix.dtype.kind not in "iu" or matrix.size == 0 or matrix.max() > LATENCY_MAX:
        raise LocalError(f"{path}: latencies must be whole ticks, at most {LATENCY_MAX}")
    if not np.any(matrix > 0) or np.any((matrix < 1) & (matrix != ABSENT)):
        raise LocalError(f"{path}: a latency must be a tick or more, or {ABSENT} if a pair has none")
    return matrix.astype(np.int16)


def of_matrix(matrix: NDArray[np.int16], *, nodes: bool) -> Latencies:
    """Each pair has one of the values; with `nodes`, the first processes are the nodes of the matrix."""
    values = np.sort(matrix[matrix != ABSENT]).astype(np.int32)
    return Latencies(matrix if nodes else _nobody(), values)


def of_percentiles(knots: Sequence[tuple[float, float]]) -> Latencies:
    """Each pair has a latency from a distribution with these (share, ticks), straight between them."""
    shares, ticks = zip(*knots, strict=True)
    rising = all(low < high for low, high in pairwise(shares)) and all(a <= b for a, b in pairwise(ticks))
    if not rising or not 0 <= shares[0] <= shares[-1] <= 1 or not 1 <= ticks[0] <= ticks[-1] <= LATENCY_MAX:
        raise LocalError(
            f"percentiles must rise within 0 to 100, and latencies with them within 1 to {LATENCY_MAX} ticks"
        )
    found = np.interp(_shares(VALUES), shares, ticks)
    return Latencies(_nobody(), np.rint(found).astype(np.int32))


def published() -> Latencies:
    """The stand-in for the authors' latencies."""
    return Latencies(_nobody(), stand_in())


def stand_in(values: int = VALUES) -> Ticks:
    """Equally likely latencies in whole ticks, ascending."""
    return np.maximum(1, np.rint(quantiles(_shares(values)))).astype(np.int32)


def quantiles(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The latency that so large a share of pairs does not exceed."""
    knots = ((0.0, 1.0), *PERCENTILES, (1.0, LONGEST))
    powers = (1.0, BULK, BULK, TAIL)
    found = np.full(shares.shape, knots[0][1])
    for (low, shortest), (high, longest), power in zip(knots, knots[1:], powers, strict=False):
        within = np.clip((shares - low) / (high - low), 0.0, 1.0)
        found += (longest - shortest) * within**power
    return found


def _shares(count: int) -> NDArray[np.float64]:
    return (np.arange(count) + 0.5) / count


def _nobody() -> NDArray[np.int16]:
    return np.empty((0, 0), np.int16)
