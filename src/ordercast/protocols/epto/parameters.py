"""Which fanout, TTL and round to choose for a probability of holes that one accepts (Lemmas 3 to 7).

The lemmas are combined as their proofs allow:

    rounds  =  ceil((c + 1) log2 n), c > 1                                           Lemma 3
    TTL     =  ceil(rounds [2 with logical clocks] delta_max/delta_min)              Lemmas 4 and 5
               + 1 if the latency counts                                             Lemma 6
    round   >  L_max, also the shortest                                              Lemma 6
    K       =  ceil(2e ln n / ln ln n  n/(n - alpha)  1/(1 - loss)), n - 1 at most   Lemma 7

`c` comes from the accepted probability: an event that arrives c n log2(n) times is missing somewhere with the
probability of Figure 3b at most. The lemmas promise that it arrives so often on average. An average does not
see that all balls of the first throw may be lost, so `parameters` raises K above Lemma 7 until `proved_holes`
keeps within the target too.

Lemma 6 counts on relays that take about a round each. Where rounds are out of step and last a hundred times
the latency or more, an event can be relayed many times within a round; it is then as old as its TTL after few
throws, and arrives less often than c n log2(n) times. So a round should be above the latency, not far above.

Up to 16 processes, everybody throws at all others: there 2e ln n / ln ln n is n - 1 or more, or, for n < 3,
no fanout at all. The broadcaster's throw is then nearly the whole story, and no TTL makes up for its loss.
"""

import math
from fractions import Fraction
from typing import get_args

import msgspec

from ordercast.core import LocalError, Nanos
from ordercast.protocols.epto.bounds import (
    Holes,
    check_processes,
    delivery_rate,
    expected_balls,
    figure_3,
    hole_bound,
    proved_holes,
    reached,
)
from ordercast.protocols.epto.clocks import Clock
from ordercast.protocols.epto.messages import TTL_MAX

__all__ = [
    "Conditions",
    "Parameters",
    "expected_balls",
    "hole_bound",
    "lemma_parameters",
    "parameters",
    "reached",
]

C_MIN = 1 + 1e-9
"""Theorem 2 asks for more than 1. It shows where log2 n is whole: 2 log2 n rounds are not enough."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What is assumed of the processes and of the network between them."""

    n: int
    loss: float = 0.0
    """The share of balls that are lost, each independently of the others."""
    churn: float = 0.0
    """The share of processes that leave in a round, as many joining: alpha / n of Lemma 7."""
    drift: float = 0.0
    """By which share a round may be longer or shorter than it should."""
    latency_ns: Nanos = 0
    """L_max, or the percentile up to which processes count as behaving well (section 5.3); 0: not said."""
    clock: Clock = "logical"

    def __post_init__(self) -> None:
        check_processes(self.n)
        delivery_rate(self.loss, self.churn)
        if not 0 <= self.drift < 1:
            raise LocalError(f"epto: drift must be at least 0 and below 1, not {self.drift}; 0.01 means 1 %")
        if self.latency_ns < 0:
            raise LocalError(f"epto: the latency must not be negative, but it is {self.latency_ns} ns")
        if self.clock not in get_args(Clock):
            raise LocalError(f"epto: the clock must be 'logical' or 'global', not '{self.clock}'")

    def delivery(self) -> float:
        """The probability that a ball arrives."""
        return delivery_rate(self.loss, self.churn)

    def lemma_fanout(self) -> int:
        """K of Lemma 7."""
        if self.n < 3:  # ln ln n is not positive
            return self.n - 1
        fanout = 2 * math.e * math.log(self.n) / math.log(math.log(self.n))
        return min(self.n - 1, math.ceil(fanout / self.delivery()))

    def ttl(self, rounds: int) -> int:
        """How old an event must grow so that it is relayed for so many rounds (Lemmas 4 to 6)."""
        drift = Fraction(str(self.drift))  # the decimal that was written: 0.2 makes rounds differ by 3/2
        ratio = (1 + drift) / (1 - drift)
        return math.ceil((2 if self.clock == "logical" else 1) * rounds * ratio) + (self.latency_ns > 0)

    def round_ns(self) -> Nanos | None:
        """The shortest nominal round with which even a round cut short by drift exceeds the latency."""
        if not self.latency_ns:
            return None
        return math.floor(self.latency_ns / (1 - Fraction(str(self.drift)))) + 1

    def proved(self, fanout: int, rounds: int) -> tuple[Holes, ...]:
        """The bounds for TTLs of 1, 2, ... `rounds`, in step: the throw at age TTL is ignored."""
        return proved_holes(self.n, fanout, rounds - 1, loss=self.loss, churn=self.churn)


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """What to choose, what it achieves, and for which conditions.

    The probabilities are those of one event. With logical clocks they hold for either half of the TTL: an
    event is known everywhere, so that later ones are stamped above it, within the first, and what was
    broadcast until then is known everywhere within the second (Lemma 4).
    """

    fanout: int
    """K: to how many processes a ball is thrown in a round."""
    ttl: int
    """TTL: the age above which events are delivered."""
    round_ns: Nanos | None
    """How long a round must last at least; None if no latency was given. Rounds out of step that last much
    longer than the latency make ages run ahead of the spreading: see `Stability`."""
    rounds: int
    """Of the TTL, those for which an event must be relayed: ceil((c + 1) log2 n)."""
    c: float
    hole_at_process: float
    """Figure 3a: that a given process misses an event which arrives c n log2(n) times."""
    hole_anywhere: float
    """Figure 3b: that one process or more misses it; n times the former."""
    proved_at_process: float
    """The same, whatever number of balls arrives, for rounds in step; 1 if nothing could be proved."""
    proved_anywhere: float
    first_throw_lost: float
    """That no ball of the broadcaster's own throw arrives: no TTL makes the probability smaller than this."""
    ttl_proved: int | None
    """With rounds in step, the TTL that already keeps within the target, or within `hole_anywhere` if there
    is none (section 8.1); None if no TTL is proved to."""
    target: float | None
    """The probability of a hole anywhere that is accepted; None if `c` was given instead."""
    conditions: Conditions

    @property
    def within_target(self) -> bool:
        """Whether both bounds keep within the target, if there is one."""
        return self.target is None or max(self.hole_anywhere, self.proved_anywhere) <= self.target


def parameters(
    n: int,
    loss: float = 0.0,
    churn: float = 0.0,
    drift: float = 0.0,
    latency: Nanos = 0,
    clock: Clock = "logical",
    target: float = 1e-9,
    *,
    strict: bool = False,
) -> Parameters:
    """The smallest parameters of the lemmas with which an event is missing anywhere at most so probably.

    The latency is the longest between peers that behave well, in nanoseconds; 0 if it does not count. With
    few processes and losses no fanout may do. Then the largest comes back, `within_target` is false and
    `proved_anywhere` says what can be promised; with `strict` that is an error.
    """
    if not 0 < target < 1:
        raise LocalError(
            f"epto: the target must be a probability between 0 and 1, not {target}; 1e-9 is usual"
        )
    conditions = Conditions(n=n, loss=loss, churn=churn, drift=drift, latency_ns=latency, clock=clock)
    rounds, c = _rounds(n, target)
    _check_ttl(conditions, rounds, f"for a target of {target:g}; choose a larger target, or less drift")
    fanout = _fanout(conditions, rounds, target)
    found = _choice(conditions, fanout, rounds, c, target)
    if strict and not found.within_target:
        raise LocalError(
            f"epto: with {n} processes not even a fanout of {fanout} is proved to keep holes within "
            f"{target:g}: the bound is {found.proved_anywhere:.2g}, and the broadcaster's throw alone is "
            f"lost with probability {found.first_throw_lost:.2g}; choose a larger target, or less loss"
        )
    return found


def lemma_parameters(
    n: int,
    c: float,
    *,
    loss: float = 0.0,
    churn: float = 0.0,
    drift: float = 0.0,
    latency: Nanos = 0,
    clock: Clock = "logical",
) -> Parameters:
    """What the lemmas give for a constant c > 1, as they are printed; the paper's runs have c = 1.25."""
    conditions = Conditions(n=n, loss=loss, churn=churn, drift=drift, latency_ns=latency, clock=clock)
    if not 1 < c < math.inf:
        raise LocalError(f"epto: c must be above 1 for Lemma 3, not {c}")
    rounds = max(1, math.ceil((max(c, C_MIN) + 1) * math.log2(n)))
    _check_ttl(conditions, rounds, f"for c = {c:g}; choose a smaller c, or less drift")
    return _choice(conditions, conditions.lemma_fanout(), rounds, c, None)


def _rounds(n: int, target: float) -> tuple[int, float]:
    """The fewest rounds of Lemma 3 that Figure 3b says are enough, and the c that they amount to."""
    if n == 1:
        return 1, C_MIN
    log2_n = math.log2(n)
    needed = (math.log(n) - math.log(target)) / (-n * math.log1p(-1 / n) * log2_n)
    rounds = math.ceil((max(needed, C_MIN) + 1) * log2_n)
    while figure_3(n, rounds / log2_n - 1).anywhere > target:  # the last bit of a logarithm
        rounds += 1
    return rounds, rounds / log2_n - 1


def _fanout(conditions: Conditions, rounds: int, target: float) -> int:
    """The smallest fanout, from Lemma 7's on, that is proved to keep within the target; else the largest."""
    low = high = conditions.lemma_fanout()
    while high < conditions.n - 1 and conditions.proved(high, rounds)[-1].anywhere > target:
        low, high = high + 1, min(conditions.n - 1, 2 * high)
    while low < high:
        middle = (low + high) // 2
        if conditions.proved(middle, rounds)[-1].anywhere <= target:
            high = middle
        else:
            low = middle + 1
    return high


def _check_ttl(conditions: Conditions, rounds: int, advice: str) -> None:
    ttl = conditions.ttl(rounds)
    if ttl > TTL_MAX:
        raise LocalError(f"epto: a TTL of {ttl} is needed {advice}; the largest TTL is {TTL_MAX}")


def _choice(conditions: Conditions, fanout: int, rounds: int, c: float, target: float | None) -> Parameters:
    figure = figure_3(conditions.n, c)
    proved = conditions.proved(fanout, rounds)
    accepted = figure.anywhere if target is None else target
    enough = next((ttl for ttl, holes in enumerate(proved, 1) if holes.anywhere <= accepted), None)
    return Parameters(
        fanout=fanout,
        ttl=conditions.ttl(rounds),
        round_ns=conditions.round_ns(),
        rounds=rounds,
        c=c,
        hole_at_process=figure.at_process,
        hole_anywhere=figure.anywhere,
        proved_at_process=proved[-1].at_process,
        proved_anywhere=proved[-1].anywhere,
        first_throw_lost=(1 - conditions.delivery()) ** fanout if fanout else 0.0,
        ttl_proved=None if enough is None else conditions.ttl(enough),
        target=target,
        conditions=conditions,
    )
