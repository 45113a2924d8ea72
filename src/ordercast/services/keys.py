"""Keys that workloads draw: each alike, or some more often than others."""

from bisect import bisect_left
from itertools import accumulate
from random import Random


class DrawnKeys:
    """So many keys; the one of rank r is drawn in proportion to 1 / r ** skew (Zipf). Skew 0: all alike."""

    def __init__(self, count: int, skew: float = 0.0, name: str = "key") -> None:
        self._names = [f"{name}-{number}" for number in range(count)]
        shares = accumulate((number + 1) ** -skew for number in range(count)) if skew else ()
        self._shares = list(shares)

    def draw(self, rng: Random) -> str:
        """One key."""
        if not self._shares:
            return self._names[int(rng.random() * len(self._names))]
        return self._names[bisect_left(self._shares, rng.random() * self._shares[-1])]

    def draw_some(self, rng: Random, count: int) -> list[str]:
        """So many different keys, or all if there are fewer."""
        drawn: dict[str, None] = {}
        while len(drawn) < min(count, len(self._names)):
            drawn[self.draw(rng)] = None
        return list(drawn)
