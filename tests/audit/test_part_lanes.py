"""Lanes and configurations in parts: whoever gives numbers is judged by parts as on the whole."""

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from ordercast.judge.columns.part_lanes import NOT_REGULAR
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind, RunDescription, build_table
from tests.audit.tampering import honest, tampered
from tests.audit.test_parts import by_parts, selected, whole
from tests.deep import deep_after

ROWS = (15, 40, 200)


def provable(plan: str, seeds: range) -> Iterator[tuple[int, RunDescription, list[Event]]]:
    """The honest runs of these seeds that are not judged whole."""
    for seed in seeds:
        run = honest(plan, seed)
        # A run that is judged for liveness is never cut.
        description = msgspec.structs.replace(run.description, stretches=(), probed=False)
        if not selected(description, run.table, ROWS[1]).doubt:
            yield seed, description, run.events()


def in_time(events: list[Event]) -> Iterator[Event]:
    """The events with clocks that never go back: a run whose clocks do is judged whole."""
    last: dict[int, int] = {}
    for event in events:
        last[event.node] = max(event.clock_ns, last.get(event.node, event.clock_ns))
        yield event._replace(clock_ns=last[event.node])


@pytest.mark.parametrize("plan", ["hydra", "lossy sequencer"])
@pytest.mark.parametrize("first", deep_after(1, range(0, 120, 20)))
def test_tampered_runs_with_numbers(plan: str, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed, description, events in provable(plan, range(first, first + 20)):
        for number in range(12):
            changed = in_time(tampered(events, 1000 * seed + number) if number else events)
            table = build_table(description.run, [tuple(event) for event in changed])
            selection, found = by_parts(description, table, ROWS[number % 3])
            assert found == whole(description, table), (seed, number, selection)
            seen[selection.doubt or ("proved" if selection.nothing else "selected")] += 1
    if first == 0:  # other seeds may have none of a kind
        assert seen["proved"] and seen["selected"] and seen[NOT_REGULAR], seen


def hydra() -> tuple[RunDescription, list[Event]]:
    run = simulate(
        Scenario(protocol="hydra", senders=3, options={"sequencers": 2}, workload=WorkloadSpec(messages=200))
    )
    return run.description, run.events()


def test_a_calm_run_of_hydra_is_proved_by_its_parts() -> None:
    description, events = hydra()
    assert any(event.numbers for event in events)
    for rows in ROWS:
        table = build_table(description.run, [tuple(event) for event in events])
        assert selected(description, table, rows).nothing


def test_a_notice_is_judged_with_the_messages_that_need_a_closer_look() -> None:
    """A receiver is told that a number is dropped, and does not deliver its message."""
    description, events = hydra()
    row = next(r for r in range(300, len(events)) if events[r].kind is Kind.DELIVER)
    lost = events[row]
    events[row] = lost._replace(kind=Kind.DROP, message=None, digest=None, size=None, peer=None)
    table = build_table(description.run, [tuple(event) for event in events])
    selection, found = by_parts(description, table, 60)
    assert selection.notices and len(selection.blocks) == 1 and not selection.doubt
    assert found == whole(description, table)


def test_a_number_that_is_left_out_is_no_regular_lane() -> None:
    description, events = hydra()
    row = next(r for r in range(300, len(events)) if events[r].kind is Kind.DELIVER)
    numbers = tuple(number + 1 for number in events[row].numbers or ())
    events[row] = events[row]._replace(numbers=numbers)
    table = build_table(description.run, [tuple(event) for event in events])
    assert selected(description, table, 60).doubt == NOT_REGULAR
    assert "drop-detection" in by_parts(description, table, 60)[1]
