"""Forged deliveries in a run judged by its parts: no two changes cancel each other in a fingerprint."""

from random import Random

import numpy as np
import pytest

from ordercast.judge.columns.fingerprints import CHUNK, Mixer, factors
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Kind, build_table
from tests.audit.test_parts import by_parts, whole

ALL = 1 << 64
LINEAR = {"digest": 0x9E3779B97F4A7C15, "size": 0xC2B2AE3D27D4EB4F, "submitted_ns": 0x165667B19E3779F9}
"""Odd factors. In a sum of columns times such factors, the change of one column can undo that of another."""


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(Scenario(protocol="atomic_multicast", senders=3, workload=WorkloadSpec(messages=200)))


def signed(value: int) -> int:
    return (value + ALL // 2) % ALL - ALL // 2


def caught(run: Run, row: int, **changes: int) -> set[str]:
    """The properties that a forged row breaks, as its parts show; the whole shows the same."""
    events = run.events()
    events[row] = events[row]._replace(**changes)  # type: ignore[arg-type]
    table = build_table(run.description.run, [tuple(event) for event in events])
    selection, found = by_parts(run.description, table, 60)
    assert not selection.doubt or "submission" in selection.doubt, selection
    assert found == whole(run.description, table)
    return found


def a_delivery(run: Run) -> tuple[int, Event]:
    return next(
        (row, event) for row, event in enumerate(run.events()) if row > 300 and event.kind is Kind.DELIVER
    )


def test_digest_and_time_that_cancel_each_other_in_a_sum(run: Run) -> None:
    row, event = a_delivery(run)
    assert event.digest is not None and event.submitted_ns is not None
    inverse = pow(LINEAR["submitted_ns"], -1, ALL)
    for change in range(1, 20):
        digest = event.digest + change
        moved = signed(event.submitted_ns - change * LINEAR["digest"] * inverse)
        sums = [
            (d * LINEAR["digest"] + t * LINEAR["submitted_ns"]) % ALL
            for d, t in ((event.digest, event.submitted_ns), (digest, moved))
        ]
        assert sums[0] == sums[1]
        assert caught(run, row, digest=digest, submitted_ns=moved) == {"integrity"}


def test_high_bits_that_multiplication_leaves_alone(run: Run) -> None:
    row, event = a_delivery(run)
    assert event.digest is not None and event.submitted_ns is not None
    high = -(1 << 63)
    for low in (0, 1 << 31, 1 << 34, 1 << 31 | 1 << 2):
        changes = {"digest": event.digest ^ high, "submitted_ns": event.submitted_ns ^ high ^ low}
        assert caught(run, row, **changes) == {"integrity"}


def test_random_pairs_of_columns(run: Run) -> None:
    rng = Random(1)
    deliveries = [row for row, event in enumerate(run.events()) if event.kind is Kind.DELIVER]
    columns = ("digest", "size", "submitted_ns", "stamp_clock", "stamp_issuer")
    for _ in range(60):
        row, names = rng.choice(deliveries), rng.sample(columns, 2)
        changes = {name: rng.randrange(-(1 << 30), 1 << 30) for name in names}
        assert caught(run, row, **changes), (row, changes)


def test_values_that_two_deliveries_exchange(run: Run) -> None:
    events = run.events()
    one, other = [row for row, event in enumerate(events) if event.node == 1 and event.kind is Kind.DELIVER][
        40:42
    ]
    for name in ("digest", "submitted_ns"):
        events = run.events()
        values = [getattr(events[row], name) for row in (one, other)]
        events[one] = events[one]._replace(**{name: values[1]})
        events[other] = events[other]._replace(**{name: values[0]})
        table = build_table(run.description.run, [tuple(event) for event in events])
        assert by_parts(run.description, table, 60)[1] == {"integrity"}


def test_a_fingerprint_depends_on_its_key_and_on_the_place_of_each_column() -> None:
    values = [np.arange(CHUNK), np.arange(CHUNK) * 3]

    def bits(key: int, columns: list[np.ndarray]) -> np.ndarray:
        mixer, found = Mixer(key, 2), np.zeros(CHUNK, np.uint64)
        for place, column in enumerate(columns):
            mixer.mix(found, place, column)
        return mixer.finish(found)

    assert (bits(1, values) == bits(1, values)).all()
    assert (bits(1, values) != bits(2, values))[1:].all()
    assert (bits(1, values) != bits(1, values[::-1]))[1:].all()
    assert len(np.unique(bits(1, values))) == CHUNK
    drawn = factors(7)
    assert all(int(next(drawn)) % 2 for _ in range(100))
