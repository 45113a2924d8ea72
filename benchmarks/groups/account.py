"""What came of a run, from what each process noted: rate, latency, and how often two of them disagree."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
SMALL = 64
"""Below this length pairs are compared one by one."""


class Notes(NamedTuple):
    """What one process did. Each row of `sent` and of `got` is a message, its group, and a time."""

    begun_ns: int
    sent: Numbers
    got: Numbers


class Figures(NamedTuple):
    """The figures of one run."""

    delivered_per_s: float
    """Messages that all subscribers of their groups got, per second."""
    p50_us: float
    p99_us: float
    disagreements: int
    share: float
    within_group: int
    lost: int
    twice: int


def figures_of(notes: Mapping[int, Notes], groups: Sequence[Sequence[int]], seconds: float) -> Figures:
    """The figures of a run."""
    sent = np.concatenate([one.sent for one in notes.values()])
    start = max(one.begun_ns for one in notes.values())
    end = start + round(seconds * 1e9)
    orders = {node: _once(one.got) for node, one in notes.items()}
    lost = sum(_missing(sent, orders[node], groups, node) for node in notes)
    across, neighbours, turned, within = 0, 0, 0, 0
    for one, two in combinations(sorted(notes), 2):
        order, places = _common(orders[one], orders[two])
        own = sum(inversions(places[order[:, 1] == group]) for group in np.unique(order[:, 1]))
        across += inversions(places) - own
        within += own
        differ = order[1:, 1] != order[:-1, 1]
        neighbours += int(differ.sum())
        turned += int((differ & (places[1:] < places[:-1])).sum())
    p50, p99 = np.percentile(_latencies(sent, orders, start, end), (50, 99)) / 1e3
    return Figures(
        round(_everywhere(sent, orders, groups, start, end) / seconds, 1),
        round(float(p50), 1),
        round(float(p99), 1),
        across,
        turned / max(1, neighbours),
        within,
        lost,
        sum(len(one.got) - len(orders[node]) for node, one in notes.items()),
    )


def inversions(values: Numbers) -> int:
    """How many pairs are in the wrong order."""
    if len(values) <= SMALL:
        return int((np.triu(values[:, None] > values[None, :], 1)).sum())
    half = len(values) // 2
    left, right = values[:half], values[half:]
    across = len(left) * len(right) - int(np.searchsorted(np.sort(left), right, side="right").sum())
    return inversions(left) + inversions(right) + across


def _once(got: Numbers) -> Numbers:
    """What came, each message once."""
    _, first = np.unique(got[:, 0], return_index=True)
    return got[np.sort(first)]


def _common(one: Numbers, two: Numbers) -> tuple[Numbers, Numbers]:
    """What both got, in the order of the one, and where the other has it."""
    by_name = np.argsort(two[:, 0])
    names = two[by_name, 0]
    order = one[np.isin(one[:, 0], names)]
    return order, by_name[np.searchsorted(names, order[:, 0])]


def _missing(sent: Numbers, order: Numbers, groups: Sequence[Sequence[int]], node: int) -> int:
    own = [group for group, members in enumerate(groups) if node in members]
    wanted = sent[np.isin(sent[:, 1], own), 0]
    return int((~np.isin(wanted, order[:, 0])).sum())


def _latencies(sent: Numbers, orders: Mapping[int, Numbers], start: int, end: int) -> Numbers:
    names = np.argsort(sent[:, 0])
    times = sent[names]
    found = [np.zeros(0, np.int64)]
    for order in orders.values():
        known = times[np.searchsorted(times[:, 0], order[:, 0])]
        within = (known[:, 2] >= start) & (known[:, 2] < end)
        found.append((order[:, 2] - known[:, 2])[within])
    return np.concatenate(found) if any(map(len, found)) else np.zeros(1, np.int64)


def _everywhere(
    sent: Numbers, orders: Mapping[int, Numbers], groups: Sequence[Sequence[int]], start: int, end: int
) -> int:
    """How many messages the last of their subscribers got within the time."""
    rows = np.concatenate(list(orders.values()))
    names, where, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    last = np.zeros(len(names), np.int64)
    np.maximum.at(last, where, rows[:, 2])
    group = np.zeros(len(names), np.int64)
    group[where] = rows[:, 1]
    sizes = np.array([len(members) for members in groups])
    return int(((counts == sizes[group]) & (last >= start) & (last < end)).sum())
