"""How far an event spreads, and how likely a hole is: the balls and bins of section 4.1, as numbers.

All of it speaks of rounds in step (section 4): in each round every process that received the event in the
round before throws `fanout` balls, at as many different processes. A ball arrives with the probability
(1 - loss) (1 - churn), as Lemma 7 counts. The broadcaster throws once, and again only if the event comes back
to it. A receiver ignores an event whose ttl has reached TTL (Algorithm 1, line 13), so of the TTL throws the
last is in vain: TTL - 1 rounds count.

Three answers, from the surest to the roughest:

- `hole_bound` takes the balls that did arrive. With `b` fixed beforehand, the probability that at least `b`
  balls arrive and a given process is hit by none is at most `hole_bound(n, b)`, however the number of balls
  depends on where the earlier ones fell: as long as a process does not know the event it throws none, so each
  ball that arrives hits it with probability 1/(n - 1) or more. This one needs no rounds in step.
- `proved_holes` takes only fanout and rounds. The first throw it takes as it is: how many of its balls arrive
  is binomial. From then on it bounds the number of processes that throw from below, round by round: hits are
  negatively associated, so Chernoff's bound holds for the number of processes hit. What each round may fall
  short by is added up. So it holds the chance that an event dies out, which averages do not see.
- `expected_balls` and `reached` are the mean-field recursion. The number of processes hit is a concave
  function of the number that throw (but for a fanout of nearly all), so both estimate from above what happens
  on average. They are close where several balls of each throw arrive. With one or two, or where an event may
  die out in its first rounds, they flatter. They are no bounds: read no probability of holes off them.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from ordercast.core import LocalError

PROCESSES_MAX = 1 << 40
HITS_MAX = 64
"""Up to how many hits of the first throw `proved_holes` tells apart: it may be slow, but not for more."""
RISKS = tuple(
    10.0**-exponent
    for exponent in (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 64, 80, 100, 150, 200)
)
"""What a round may fall short by: `proved_holes` takes the best for each number of rounds."""


class Holes(NamedTuple):
    """The probability that an event is missing, at most."""

    at_process: float
    """At a given process (Figure 3a)."""
    anywhere: float
    """At one process or more (Figure 3b)."""


def hole_bound(n: int, balls: float) -> float:
    """The probability that a given process is hit by none of so many balls: (1 - 1/n) ** balls."""
    if not 1 <= n <= PROCESSES_MAX or math.isnan(balls) or balls < 0:
        raise LocalError(f"epto: need at least 1 process and 0 balls, not {n} and {balls}")
    if n == 1:
        return 0.0  # its one process is the broadcaster
    return math.exp(balls * math.log1p(-1 / n))


def figure_3(n: int, c: float) -> Holes:
    """Figure 3: the bounds for an event that arrives c n log2(n) times.

    "Anywhere" is the sum over the processes. The product form 1 - (1 - q) ** n would be too small: bins
    compete for balls, so that all are hit is less likely than if they were independent.
    """
    at_process = hole_bound(n, c * n * math.log2(n)) if n > 1 else 0.0
    return Holes(at_process, min(1.0, n * at_process))


def check_processes(n: int) -> None:
    """Refuse a number of processes that makes no sense."""
    if not 1 <= n <= PROCESSES_MAX:
        raise LocalError(f"epto: the number of processes must be 1 to 2**40, not {n}")


def delivery_rate(loss: float, churn: float) -> float:
    """The probability that a ball arrives at a process that stays for its next round (Lemma 7)."""
    for name, share in (("loss", loss), ("churn", churn)):
        if not 0 <= share < 1:
            raise LocalError(f"epto: {name} must be at least 0 and below 1, not {share}; 0.05 means 5 %")
    return (1 - loss) * (1 - churn)


def expected_balls(n: int, fanout: int, ttl: int, *, loss: float = 0.0, churn: float = 0.0) -> float:
    """About how many balls with an event arrive in time to teach somebody, from above (mean field).

    These are the balls of `hole_bound`: lost ones do not count, nor does the throw of round `ttl`.
    """
    delivery = _checked(n, fanout, ttl, loss, churn)
    return fanout * delivery * sum(_throwers(n, fanout, ttl - 1, delivery))


def reached(n: int, fanout: int, rounds: int, *, loss: float = 0.0, churn: float = 0.0) -> float:
    """About which share of the processes knows an event after so many throws, from above (mean field)."""
    delivery = _checked(n, fanout, rounds, loss, churn)
    if n == 1:
        return 1.0
    missed = _miss(n, fanout, delivery) ** sum(_throwers(n, fanout, rounds, delivery))
    return (1 + (n - 1) * (1 - missed)) / n


def proved_holes(
    n: int, fanout: int, rounds: int, *, loss: float = 0.0, churn: float = 0.0
) -> tuple[Holes, ...]:
    """What the probability of a hole is at most after 0, 1, ... `rounds` throws, dying out included.

    It holds for every fanout and number of rounds; for those that are too small it is 1. With churn, it
    speaks of processes that are there all the time.
    """
    delivery = _checked(n, fanout, rounds, loss, churn)
    if n == 1:
        return (Holes(0.0, 0.0),) * (rounds + 1)
    spread = _Spread(n, fanout, delivery)
    at_process, anywhere = [0.0] * rounds, [0.0] * rounds
    for hit, probability in _first_throw(fanout, delivery):
        for index, holes in enumerate(spread.holes(hit, rounds)):
            at_process[index] += probability * holes.at_process
            anywhere[index] += probability * holes.anywhere
    return tuple(_falling([Holes(1.0, 1.0), *map(Holes, at_process, anywhere)]))


def _checked(n: int, fanout: int, rounds: int, loss: float, churn: float) -> float:
    check_processes(n)
    if not min(1, n - 1) <= fanout < n:
        raise LocalError(
            f"epto: fanout must be 1 to {n - 1} for {n} processes, not {fanout}; each peer gets a ball once"
        )
    if rounds < 0:
        raise LocalError(f"epto: the number of rounds must not be negative, but it is {rounds}")
    return delivery_rate(loss, churn)


def _miss(n: int, fanout: int, delivery: float) -> float:
    """The probability that one process that throws does not hit a given other one."""
    return max(0.0, 1 - fanout * delivery / (n - 1))


def _hits(n: int, throwers: float, miss: float) -> float:
    """How many processes are hit on average; a process that throws is hit by the others only."""
    if throwers < 1:  # between none and one, where the mean is linear
        return throwers * (n - 1) * (1 - miss)
    by_others = math.pow(miss, throwers - 1)
    return (n - throwers) * (1 - by_others * miss) + throwers * (1 - by_others)


def _throwers(n: int, fanout: int, rounds: int, delivery: float) -> Iterator[float]:
    """How many processes throw in round 1, 2, ...: those that were hit in the round before."""
    miss = _miss(n, fanout, delivery)
    throwers = 1.0 if n > 1 else 0.0
    for _ in range(rounds):
        yield throwers
        throwers = _hits(n, throwers, miss)


def _first_throw(fanout: int, delivery: float) -> Iterator[tuple[int, float]]:
    """How many processes the broadcaster hits, with which probability; the last is so many or more."""
    if delivery == 1:
        yield fanout, 1.0
        return
    last = min(fanout, HITS_MAX)
    below = [_binomial(fanout, delivery, hits) for hits in range(last)]
    yield from enumerate(below)
    yield last, max(0.0, 1 - math.fsum(below))


def _binomial(trials: int, share: float, count: int) -> float:
    ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return math.exp(ways + count * math.log(share) + (trials - count) * math.log1p(-share))


class _Spread:
    """Bounds on holes once so many processes were hit."""

    def __init__(self, n: int, fanout: int, delivery: float) -> None:
        self._n = n
        self._fanout = fanout
        self._delivery = delivery
        self._miss = _miss(n, fanout, delivery)
        self._floors: dict[tuple[int, float], tuple[int, float]] = {}

    def holes(self, hit: int, rounds: int) -> list[Holes]:
        """The bounds after 1, 2, ... throws if the first one hit so many: for each, that of the best risk."""
        found = [Holes(1.0, 1.0)] * rounds
        for risk in RISKS:
            for index, holes in enumerate(self._holes(hit, rounds, risk)):
                found[index] = _least(found[index], holes)
        return _falling(found)

    def _holes(self, hit: int, rounds: int, risk: float) -> Iterator[Holes]:
        """The same, if each round may fall short of its floor with probability `risk` at most."""
        throwers, missed, fell_short = hit, 1.0, 0.0
        share, others = 1 - hit / (self._n - 1), self._n - 1 - hit
        for _ in range(rounds):
            yield Holes(share * min(1.0, missed + fell_short), min(1.0, others * missed + fell_short))
            if not throwers or missed < fell_short / 1000 / self._n:  # no more throws make it better
                return
            missed *= math.pow(self._miss, throwers)
            throwers, short = self._floor(throwers, risk)
            fell_short += short

    def _floor(self, throwers: int, risk: float) -> tuple[int, float]:
        """How many processes are hit by so many, but for a probability of `risk` at most, and that one."""
        if not throwers:
            return 0, 0.0
        if (throwers, risk) not in self._floors:
            share = _hits(self._n, throwers, self._miss) / self._n
            # One that throws hits as many as its balls arrive, and the others do not make it fewer.
            floors = _chernoff(self._fanout, self._delivery, risk), _chernoff(self._n, share, risk)
            self._floors[throwers, risk] = max(floors, key=lambda floor: (floor[0], -floor[1]))
        return self._floors[throwers, risk]


def _least(one: Holes, other: Holes) -> Holes:
    return Holes(min(one.at_process, other.at_process), min(one.anywhere, other.anywhere))


def _falling(bounds: Iterable[Holes]) -> list[Holes]:
    """The least so far: what has come is not lost by more throws, though more of them may fall short."""
    return list(accumulate(bounds, _least))


def _chernoff(trials: int, share: float, risk: float) -> tuple[int, float]:
    """The largest count that negatively associated trials of this mean share fall short of so rarely."""
    low, high = 0, math.ceil(trials * share)
    if share >= 1:
        return trials, 0.0
    while low < high:  # falling short of `middle` is having at most `middle` - 1
        middle = (low + high + 1) // 2
        if _short_of(trials, share, middle) <= risk:
            low = middle
        else:
            high = middle - 1
    return low, _short_of(trials, share, low) if low else 0.0


def _short_of(trials: int, share: float, count: int) -> float:
    """At most how probable it is that fewer than `count` trials of this mean share succeed."""
    seen = (count - 1) / trials
    if seen >= share:
        return 1.0
    divergence = (1 - seen) * (math.log1p(-seen) - math.log1p(-share))
    if seen > 0:
        divergence += seen * math.log(seen / share)
    return math.exp(-trials * divergence)
