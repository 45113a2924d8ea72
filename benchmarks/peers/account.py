"""What came of a measurement, from the numbers that each receiver kept: rate, loss, disagreement.

Messages of a run are numbered from 0 by their one publisher. An *order* is the array of numbers as a receiver
got them; *marks* are rows of (time in ns, messages received until then).
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def check_known(order: Numbers, sent: int) -> None:
    """Refuse an order with numbers that nobody sent: the run is broken, not merely slow."""
    if len(order) and (order.min() < 0 or order.max() >= sent):
        raise ValueError(f"a receiver got a message that was never sent; {sent} were sent")


def count_lost(orders: Sequence[Numbers], sent: int) -> int:
    """How many messages are missing, over all receivers."""
    return sum(sent - _distinct(order) for order in orders)


def count_repeated(orders: Sequence[Numbers]) -> int:
    """How many deliveries were of a message that the receiver already had."""
    return sum(len(order) - _distinct(order) for order in orders)


def count_violations(orders: Sequence[Numbers]) -> int:
    """In how many places two receivers disagree about the order, over all pairs of receivers.

    Only messages that both have are compared, so that a lost one is counted as lost and nothing else.
    """
    places = [_places(order) for order in orders]
    firsts = [first_deliveries(order) for order in orders]
    return sum(_descents(places[one], firsts[other]) for one, other in combinations(range(len(orders)), 2))


def first_deliveries(order: Numbers) -> Numbers:
    """The order without repeated messages."""
    firsts: Numbers = order[_places(order)[order] == np.arange(len(order))]
    return firsts


def _distinct(order: Numbers) -> int:
    return int(np.count_nonzero(np.bincount(order)))


def _places(order: Numbers) -> Numbers:
    """By number of a message, where it was first delivered; -1 where it was not."""
    places = np.full(int(order.max()) + 1 if len(order) else 0, -1, np.int64)
    places[order[::-1]] = np.arange(len(order))[::-1]  # the first of several is written last
    return places


def _descents(places: Numbers, other: Numbers) -> int:
    """How often `other` steps backwards among these places."""
    steps = places[other[other < len(places)]]
    return int(np.count_nonzero(np.diff(steps[steps >= 0]) < 0))


def received_until(marks: Numbers, time_ns: int) -> int:
    """How many messages a receiver had at a time."""
    row = int(np.searchsorted(marks[:, 0], time_ns, side="right"))
    return int(marks[row - 1, 1]) if row else 0


def slowest_rate(receivers: Sequence[Numbers], start_ns: int, end_ns: int) -> float:
    """Messages a second that every receiver got between two times, from the marks of each."""
    least = min(received_until(marks, end_ns) - received_until(marks, start_ns) for marks in receivers)
    return least / ((end_ns - start_ns) / 1e9)


def percentile_us(latencies_ns: NDArray[Any], percent: float) -> float | None:
    """A percentile in microseconds; `None` without any round."""
    return float(np.percentile(latencies_ns, percent)) / 1e3 if len(latencies_ns) else None
