"""How sure it is that others know an event, from its age alone (section 8.4).

An event's age is its ttl: the number of rounds since its broadcast, as far as a process can tell. With rounds
in step that is the number of throws, of which the last is still under way: at age `a`, `a - 1` have landed.
Ages only grow: by one in each round of waiting, and to the age of an older copy when one arrives.

So, out of step, an age is the number of relays on the fastest path that led here. Where rounds of others are
shorter (drift), or the latency is so far below a round that an event is relayed by several processes within
one, ages run ahead of the spreading. `pace` says by how much: the ages that may pass while all who know the
event relay it once. For drift alone it is delta_max/delta_min (Lemma 5). A relay takes the latency at least,
a round and the latency at most: with latencies of L_min to L_max the pace is (delta_max + L_max)/L_min.
"""

import math

from ordercast.core import LocalError
from ordercast.protocols.epto.bounds import Holes, proved_holes


class Stability:
    """What the age of an event says about others, looked up in a table.

    Probabilities are lower bounds where ages run ahead of the throws by no more than `pace`.

    They are those of `proved_holes`, given also that whoever asks knows the event: if a process lacks it with
    probability u, then it does with at most u / (1 - u) among the runs in which another one has it.
    """

    __slots__ = ("_known", "_pace", "_stable")

    def __init__(
        self,
        n: int,
        fanout: int,
        ttl: int,
        *,
        loss: float = 0.0,
        churn: float = 0.0,
        pace: float = 1.0,
    ) -> None:
        if not 1 <= pace < math.inf:
            raise LocalError(f"epto: pace must be at least 1 (age per relay), not {pace}")
        if ttl < 1:
            raise LocalError(
                f"epto: ttl must be at least 1, because an event is relayed at least once; it is {ttl}"
            )
        holes = proved_holes(n, min(fanout, n - 1), ttl - 1, loss=loss, churn=churn)
        landed = [int(max(0, age - 1) / pace) for age in range(ttl + 1)]
        sure = [_given_one_knows(holes[throws]) for throws in landed]
        self._pace = pace
        self._known = tuple(1 - lacking.at_process for lacking in sure)
        self._stable = tuple(1 - lacking.anywhere for lacking in sure)

    def known(self, age: int) -> float:
        """The probability that a given other process knows an event of this age, at least."""
        return self._known[max(0, min(age, len(self._known) - 1))]

    def stable(self, age: int, rounds: int | None = None) -> float:
        """The probability that all processes know an event of this age, at least.

        With the rounds for which whoever asks has known it, for that many throws there may have been at most:
        who hears of an event throws it once, in its next round. Ages that ran ahead faster than `pace` do
        not count then. What an event lost by reaching its TTL in fewer throws than that is not seen: it is a
        bound as long as `pace` is one.
        """
        if rounds is not None:
            age = min(age, 1 + int(self._pace * rounds))
        return self._stable[max(0, min(age, len(self._stable) - 1))]


def _given_one_knows(holes: Holes) -> Holes:
    knows = 1 - holes.at_process
    if knows <= 0:
        return Holes(1.0, 1.0)
    return Holes(min(1.0, holes.at_process / knows), min(1.0, holes.anywhere / knows))
