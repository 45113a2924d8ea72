"""An account of bundles, for runs with too many messages to account for one by one.

All receivers deliver the same bundles, so bundles stand for their messages: which were delivered, and in
which order. One sender has sent them all, so its messages are a range of identities.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ordercast.core import HostId, Nanos
from ordercast.lab.bench.account import Account, Numbers, to_all, violations


class BundleAccount(NamedTuple):
    """The result, counted in messages."""

    submitted: int
    lost: int
    """Messages that not every receiver delivered."""
    within: int
    """Messages that every receiver delivered, the last one within the measured time."""
    violations: list[str]


def read_rows(path: Path) -> Numbers:
    """The rows of a log: first identity, how many, and the time."""
    return np.fromfile(path, np.int64).reshape(-1, 3)


def account_by_bundle(
    delivered: Mapping[HostId, Numbers], submitted: Numbers, start: Nanos, end: Nanos
) -> BundleAccount:
    """Account for all messages of a sender, bundle by bundle."""
    if not len(submitted):
        return BundleAccount(0, 0, 0, [])
    first, stop = int(submitted[0, 0]), int(submitted[-1, 0] + submitted[-1, 1])
    counted = {host: rows[rows[:, 0] >= first] for host, rows in delivered.items()}
    found = [text for host, rows in counted.items() for text in _overlaps(host, rows, stop)]
    accounts = {host: Account(rows[:, 0], rows[:, 2]) for host, rows in counted.items()}
    known = np.concatenate([account.messages for account in accounts.values()])
    found += violations(accounts, known)
    everywhere = to_all(list(accounts.values()))
    rows = next(iter(counted.values()))
    sizes = dict(zip(rows[:, 0].tolist(), rows[:, 1].tolist(), strict=True))
    counts = np.array([sizes[message] for message in everywhere.messages.tolist()], np.int64)
    timely = (everywhere.times >= start) & (everywhere.times < end)
    lost = stop - first - int(counts.sum())
    return BundleAccount(stop - first, lost, int(counts[timely].sum()), found)


def _overlaps(host: HostId, rows: Numbers, stop: int) -> list[str]:
    """Bundles that share messages with others, or hold messages that nobody sent."""
    ordered = rows[np.argsort(rows[:, 0], kind="stable")]
    ends = ordered[:, 0] + ordered[:, 1]
    shared = np.flatnonzero(ends[:-1] > ordered[1:, 0])
    found = [f"host {host} delivered messages of bundle {ordered[at, 0]} twice" for at in shared[:10]]
    if len(ends) and ends.max() > stop:
        found.append(f"host {host} delivered messages that nobody sent")
    return found
