"""`ordercast.components.sampling.draws` once more, compiled: the same numbers from the same seeds."""

from typing import Final

import numpy as np
from numba import njit

from ordercast.engines.epto.types import Numbers

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_STEP: Final = np.uint64(0xD1342543DE82EF95)
_INDEX: Final = np.uint64(0xAF251AF3B0F025B5)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = (np.uint64(bits) for bits in (27, 30, 31, 32))


@njit(cache=True, nogil=True, inline="always")
def mix(value: np.uint64) -> np.uint64:
    """Scramble 64 bits."""
    value = (value ^ value >> _S30) * _FIRST
    value = (value ^ value >> _S27) * _SECOND
    return value ^ value >> _S31


@njit(cache=True, nogil=True, inline="always")
def stream(seed: np.uint64, tag: int) -> np.uint64:
    """The seed of one of a node's streams."""
    return mix(seed + np.uint64(tag) * _GOLDEN)


@njit(cache=True, nogil=True, inline="always")
def draw(seed: np.uint64, step: int, index: int) -> np.uint64:
    """64 even bits, of one stream."""
    return mix(mix(seed + np.uint64(step) * _STEP) + np.uint64(index) * _INDEX)


@njit(cache=True, nogil=True, inline="always")
def below(bits: np.uint64, limit: int) -> int:
    """A number from 0 to `limit` - 1."""
    return np.int64((bits >> _S32) * np.uint64(limit) >> _S32)  # type: ignore[return-value]  # numba: an int


@njit(cache=True, nogil=True)
def choose(seed: np.uint64, step: int, count: int, limit: int, chosen: Numbers) -> int:
    """Different numbers from 0 to `limit` - 1, put into `chosen`; how many."""
    found = 0
    for top in range(max(0, limit - count), limit):
        pick = below(draw(seed, step, found), top + 1)
        for place in range(found):
            if chosen[place] == pick:
                pick = top
                break
        chosen[found] = pick
        found += 1
    return found
