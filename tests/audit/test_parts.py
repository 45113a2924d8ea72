"""A run judged by its parts: the same verdict as on the whole, however it is cut."""

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa
import pytest

from ordercast.core import Causality, Deployment, Plan, RemoteError
from ordercast.judge import audit, judge_selected, may_be_parted
from ordercast.judge.columns.blocks import Selection, select
from ordercast.judge.columns.parts import summarize
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Kind, RunDescription, build_table, describe
from tests.audit.tampering import PLANS, honest, swap, tampered
from tests.deep import deep_after
from tests.sim.mutant import Mutant
from tests.sim.mutants import MUTANTS

BITS = 2


def may_be_cut(make: Callable[[Deployment], Plan]) -> bool:
    plan = make(Deployment.disjoint(2, 3, 2))
    return may_be_parted(describe(plan, run="test", source="simulator", seed=0, complete=True))


PARTED = [name for name, make in PLANS.items() if may_be_cut(make)]
"""Protocols and models of which large runs may be judged by their parts."""
KEY = 0x5EED


def cut(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    return (table.slice(start, rows) for start in range(0, len(table), rows))


def selected(description: RunDescription, table: pa.Table, rows: int) -> Selection:
    return select(
        description, [summarize(description, part, KEY, block_bits=BITS) for part in cut(table, rows)]
    )


def by_parts(description: RunDescription, table: pa.Table, rows: int) -> tuple[Selection, set[str]]:
    try:
        selection = selected(description, table, rows)
        verdict = judge_selected(description, selection, lambda: cut(table, rows), lambda: table, BITS)
    except RemoteError:
        return Selection(frozenset(), (), "not a trace"), {"not a trace"}
    return selection, {violation.property for violation in verdict.violations}


def whole(description: RunDescription, table: pa.Table) -> set[str]:
    try:
        return {violation.property for violation in audit(description, table).violations}
    except RemoteError:
        return {"not a trace"}


def test_a_clean_run_is_proved_by_its_parts_alone() -> None:
    run = simulate(
        Scenario(
            protocol="atomic_multicast",
            groups=2,
            senders=3,
            workload=WorkloadSpec(messages=300, spread=(0.7, 0.3)),
        )
    )
    promised = msgspec.structs.replace(run.description.guarantees, causality=Causality.NONE)
    description = msgspec.structs.replace(run.description, guarantees=promised)
    for rows in (50, 300, len(run.table)):
        assert selected(description, run.table, rows).nothing


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
@pytest.mark.parametrize("first", deep_after(1, range(0, 4, 2)))
def test_mutants(mutant: Mutant, first: int) -> None:
    for seed in range(first, first + 2):
        run = mutant.run(seed)
        if may_be_parted(run.description):
            _, found = by_parts(run.description, run.table, 60)
            assert found == whole(run.description, run.table)


@pytest.mark.parametrize("plan", PARTED)
@pytest.mark.parametrize("first", deep_after(1, range(0, 30, 10)))
def test_tampered_traces(plan: str, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 10):
        run = honest(plan, seed)
        # A run that is judged for liveness is never cut.
        description = msgspec.structs.replace(run.description, stretches=(), probed=False)
        for number in range(8):
            events = tampered(run.events(), 1000 * seed + number) if number else run.events()
            table = build_table(run.description.run, [tuple(event) for event in events])
            selection, found = by_parts(description, table, 40)
            assert found == whole(description, table), (plan, seed, number, selection)
            seen["proved" if selection.nothing else "doubted" if selection.doubt else "selected"] += 1
    if first == 0:  # other seeds may have none of a kind
        assert seen["proved"] and seen["doubted"], seen
        assert seen["selected"] or plan != "atomic_multicast", seen


def test_a_finding_in_an_excerpt_names_its_row_in_the_run() -> None:
    run = simulate(Scenario(protocol="atomic_multicast", senders=3, workload=WorkloadSpec(messages=200)))
    events = run.events()
    row = next(row for row in range(300, len(events)) if events[row].kind is Kind.DELIVER)
    events[row] = events[row]._replace(digest=1)
    table = build_table(run.description.run, [tuple(event) for event in events])
    selection = selected(run.description, table, 60)
    assert len(selection.blocks) == 1 and not selection.doubt
    verdict = judge_selected(run.description, selection, lambda: cut(table, 60), lambda: table, BITS)
    assert [(v.property, v.step) for v in verdict.violations] == [("integrity", row)]


def test_swapped_deliveries_select_their_stretch_only() -> None:
    run = simulate(Scenario(protocol="atomic_multicast", senders=3, workload=WorkloadSpec(messages=200)))
    events = run.events()
    rows = [row for row, event in enumerate(events) if event.node == 1 and event.kind is Kind.DELIVER]
    a, b = rows[100], rows[101]
    swap(events, a, b)
    table = build_table(run.description.run, [tuple(event) for event in events])
    selection = selected(run.description, table, 60)
    assert not selection.blocks and not selection.doubt and len(selection.stretches) == 1
    verdict = judge_selected(run.description, selection, lambda: cut(table, 60), lambda: table, BITS)
    assert [v.property for v in verdict.violations] == ["stamp-order", "total-order"]
    for violation in verdict.violations:
        assert set(violation.messages) == {events[a].message, events[b].message}
        assert 1 in violation.nodes


def test_a_receiver_that_stays_down_is_not_looked_at_again() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        senders=2,
        workload=WorkloadSpec(messages=400),
        fault=(Crash(at_ms=30, host=2),),
    )
    run = simulate(scenario)
    selection = selected(run.description, run.table, 100)
    assert not selection.doubt and 0 < len(selection.blocks) < 20
    assert by_parts(run.description, run.table, 100)[1] == set()
