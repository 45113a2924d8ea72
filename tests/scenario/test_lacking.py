"""Whether what did not come in a run was still owed to anybody."""

from collections.abc import Sequence
from typing import Any

import pytest

from ordercast.scenario import Scenario
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.lacking import only_crashed_lack
from ordercast.sim import simulate
from ordercast.trace import LOST, READ, Event, Kind

SERVED = Scenario(protocol="multi_paxos", service="kv", groups=1, receivers=3, senders=2).plan()
"""Replicas 0 to 2, clients 3 and 4."""
PLAIN = Scenario(protocol="hydra", receivers=3, senders=2).plan()
MESSAGE = 77


def row(time_ns: int, node: int, kind: Kind, **fields: Any) -> Event:
    return Event(time_ns, time_ns, node, kind)._replace(**fields)


SUBMIT = row(5, 3, Kind.SUBMIT, message=MESSAGE, groups=(0,))
REPLY = row(9, 3, Kind.REPLY, message=MESSAGE, groups=(0,))


def to(*nodes: int) -> list[Event]:
    return [row(8, node, Kind.DELIVER, message=MESSAGE, groups=(0,)) for node in nodes]


@pytest.mark.parametrize(
    ("events", "excused"),
    [
        ([SUBMIT, *to(0, 1, 2), REPLY], True),
        ([SUBMIT, *to(0, 1), REPLY], False),
        ([SUBMIT, *to(0, 1, 2)], False),
        ([SUBMIT, *to(0, 1), REPLY, row(9, 2, Kind.CRASH)], True),
        ([SUBMIT, *to(0, 1), REPLY, row(4, 2, Kind.CRASH), row(6, 2, Kind.RECOVER)], False),
        ([SUBMIT, *to(0, 1), REPLY, row(4, 2, Kind.CRASH), row(6, 2, Kind.RECOVER, label=LOST)], True),
        ([row(1, 2, Kind.CRASH), row(2, 2, Kind.RECOVER, label=LOST), SUBMIT, *to(0, 1), REPLY], False),
        ([SUBMIT, row(6, 3, Kind.CRASH)], True),
        ([SUBMIT, row(6, 3, Kind.CRASH), row(7, 3, Kind.RECOVER)], True),
        ([row(3, 3, Kind.CRASH), row(4, 3, Kind.RECOVER), SUBMIT], False),
        ([SUBMIT, row(6, 3, Kind.CRASH), *to(0, 1)], False),
        ([SUBMIT, row(6, 3, Kind.CRASH), *to(0, 1, 2)], True),
        ([SUBMIT, row(6, 4, Kind.CRASH)], False),
        ([SUBMIT._replace(label=READ)], False),
        ([SUBMIT._replace(label=READ), REPLY], True),
    ],
)
def test_what_is_owed_to_calls(events: Sequence[Event], excused: bool) -> None:
    assert only_crashed_lack(SERVED, events) == excused


def test_who_was_told_of_a_drop_lacks_nothing() -> None:
    told = row(9, 2, Kind.DROP, groups=(0,), stamp_issuer=1, numbers=(4,), config=0)
    assert not only_crashed_lack(PLAIN, [SUBMIT, *to(0, 1)])
    assert only_crashed_lack(PLAIN, [SUBMIT, *to(0, 1), told])
    assert not only_crashed_lack(PLAIN, [SUBMIT, *to(0, 1), told._replace(node=1)])


@pytest.mark.parametrize(
    ("faults", "ending"),
    [
        ((), "settled"),
        ((Crash(at_ms=5, host=2),), "settled without crashed nodes"),
        ((Crash(at_ms=5, host=2), Restart(at_ms=9, host=2)), "settled"),
    ],
)
def test_a_run_says_that_only_crashed_nodes_lack_something(
    faults: tuple[Crash | Restart, ...], ending: str
) -> None:
    run = simulate(Scenario(protocol="multi_paxos", service="kv", senders=2, fault=faults, seed=4))
    assert (run.violations, run.ending) == ([], ending)
