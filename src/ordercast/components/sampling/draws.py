"""Random numbers that are a function of what they are for.

A node has one seed; a draw is named by a stream (what it decides), a step (a round, a shuffle) and an index
within the step. Whoever knows the seed can make any draw, in any order, without making the others: so the
array engine (`ordercast.engines.epto`) and a process make the very same choices, and so does a process that
skipped rounds in which it had nothing to do.

The mixing function is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
"""

from typing import Final

MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
_STEP: Final = 0xD1342543DE82EF95
_INDEX: Final = 0xAF251AF3B0F025B5


def mix(value: int) -> int:
    """Scramble 64 bits; each bit of the value flips each bit of the answer half of the time."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def stream(seed: int, tag: int) -> int:
    """The seed of one of a node's streams."""
    return mix((seed + tag * GOLDEN) & MASK)


def draw(seed: int, step: int, index: int) -> int:
    """64 even bits, of one stream."""
    return mix((mix((seed + step * _STEP) & MASK) + index * _INDEX) & MASK)


def below(bits: int, limit: int) -> int:
    """A number from 0 to `limit` - 1 out of 64 bits, for limits up to 2 to the power of 32."""
    return (bits >> 32) * limit >> 32


def choose(seed: int, step: int, count: int, limit: int) -> list[int]:
    """`count` different numbers from 0 to `limit` - 1, each set equally likely; all of them if there are
    fewer.

    Floyd's way: one draw a number, whatever `limit` is (Bentley and Floyd, CACM 1987).
    """
    chosen: list[int] = []
    for index, top in enumerate(range(max(0, limit - count), limit)):
        pick = below(draw(seed, step, index), top + 1)
        chosen.append(top if pick in chosen else pick)
    return chosen
