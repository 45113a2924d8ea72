"""Seeds: how users write them, and the streams of random numbers that they give."""

from random import Random

from ordercast.core import LocalError, NodeId

SEED_MAX = 1 << 62


def parse_seeds(text: str) -> range:
    """The seeds from A up to B, without B, for the text ``A:B``; or the one seed that the text names."""
    first, colon, last = text.partition(":")
    try:
        start = int(first)
        seeds = range(start, int(last) if colon else start + 1)
    except ValueError:
        raise LocalError(f"seeds must be A:B or one number, not '{text}'") from None
    if not 0 <= start < seeds.stop <= SEED_MAX:
        raise LocalError(
            f"there is no seed in {text}: A:B means from A up to B, without B; both must be from 0 to 2^62"
        )
    return seeds


def workload_stream(seed: int, sender: NodeId) -> Random:
    """The random stream that decides when a sender submits, and where; the same for every driver."""
    return Random(f"{seed}/workload/{sender}")
