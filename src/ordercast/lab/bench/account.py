"""An account of every message: who delivered it, when, and in which order.

A member's log has a row of numbers for each bundle: the first identity, the number of messages, and the time.
Here the rows are expanded to messages.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordercast.core import HostId, message_name
from ordercast.lab.bench.spec import Latency

Numbers = NDArray[np.int64]
VIOLATIONS_TOLD = 10


class Account(NamedTuple):
    """Messages one by one: their identities and times."""

    messages: Numbers
    times: Numbers


def read_log(path: Path) -> Account:
    """The log of a member, message by message."""
    return spread(np.fromfile(path, np.int64).reshape(-1, 3))


def spread(rows: Numbers) -> Account:
    """Rows of (first, count, time), message by message."""
    first, count, time = rows.T if len(rows) else np.empty((3, 0), np.int64)
    begins = np.cumsum(count) - count
    messages = np.repeat(first - begins, count) + np.arange(count.sum())
    return Account(messages, np.repeat(time, count))


def violations(delivered: Mapping[HostId, Account], submitted: Numbers) -> list[str]:
    """What is wrong with the deliveries: never sent, delivered twice, or in different orders."""
    found = []
    known = np.sort(submitted)
    for host, (messages, _) in delivered.items():
        found += [f"host {host} delivered {name}, which nobody sent" for name in _strange(messages, known)]
        found += [f"host {host} delivered {name} twice" for name in _twice(messages)]
    for (one, first), (other, second) in combinations(delivered.items(), 2):
        if not np.array_equal(first.messages, second.messages):
            found += _disorder(one, first.messages, other, second.messages)
    return found[:VIOLATIONS_TOLD]


def _strange(messages: Numbers, known: Numbers) -> list[str]:
    strange = messages[~np.isin(messages, known)]
    return [message_name(int(message)) for message in strange[:VIOLATIONS_TOLD]]


def _twice(messages: Numbers) -> list[str]:
    values, counts = np.unique(messages, return_counts=True)
    return [message_name(int(message)) for message in values[counts > 1][:VIOLATIONS_TOLD]]


def _disorder(one: HostId, first: Numbers, other: HostId, second: Numbers) -> list[str]:
    """Pairs of messages that two hosts delivered in different orders."""
    common, place_one, place_other = np.intersect1d(first, second, return_indices=True)
    by_one = np.argsort(place_one)
    places, names = place_other[by_one], common[by_one]
    back = np.flatnonzero(places[1:] < places[:-1])
    return [
        f"host {one} delivered {message_name(int(names[index]))} before"
        f" {message_name(int(names[index + 1]))}, host {other} after it"
        for index in back[:VIOLATIONS_TOLD]
    ]


def to_all(delivered: Sequence[Account]) -> Account:
    """The messages that every receiver delivered, and when the last one did."""
    messages = _distinct(delivered[0].messages)
    for account in delivered[1:]:
        messages = np.intersect1d(messages, _distinct(account.messages), assume_unique=True)
    times = np.zeros(len(messages), np.int64)
    for account in delivered:
        by_identity = np.argsort(account.messages, kind="stable")
        at = by_identity[np.searchsorted(account.messages, messages, sorter=by_identity)]
        times = np.maximum(times, account.times[at])
    return Account(messages, times)


def _distinct(messages: Numbers) -> Numbers:
    """The messages in ascending order, each once.

    They are nearly in order, which a stable sort makes use of; `np.unique` takes 300 times as long.
    """
    ordered: Numbers = np.sort(messages, kind="stable")
    distinct: Numbers = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def latencies(submitted: Account, arrived: Account, start: int, end: int) -> Numbers:
    """How long each message took that arrived between two times and is known to both sides."""
    within = (arrived.times >= start) & (arrived.times < end)
    messages, times = arrived.messages[within], arrived.times[within]
    common, here, there = np.intersect1d(messages, submitted.messages, return_indices=True)
    return times[here] - submitted.times[there] if len(common) else np.empty(0, np.int64)


def percentiles(nanoseconds: Numbers) -> Latency | None:
    """Exact percentiles over every message."""
    if not len(nanoseconds):
        return None
    found = np.percentile(nanoseconds, [50, 99, 99.9, 100]) / 1000
    return Latency(*(round(float(value), 1) for value in found))
