"""The vectorised judge against the oracles: honest runs, mutants and tampered traces."""

import msgspec
import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import Gaps, Order, RemoteError
from ordercast.judge import Replay, audit, verdict
from ordercast.sim.run import simulate
from ordercast.trace import Event, RunDescription, build_table
from tests.audit.tampering import EVERYTHING, PLANS, foresees, honest, tampered
from tests.audit.turnover import turnover
from tests.deep import deep_after
from tests.sim.mutant import Mutant
from tests.sim.mutants import MUTANTS
from tests.sim.tiers import tiers_scenario

CLEAN_RUNS = 200
PARTS = 64
TURNOVERS = 60


def oracles_say(description: RunDescription, events: list[Event], replay: Replay | None = None) -> set[str]:
    try:
        found = verdict(description, events, replay=replay).violations
        return {violation.property for violation in found}
    except RemoteError:
        return {"not a trace"}


def columns_say(description: RunDescription, events: list[Event], replay: Replay | None = None) -> set[str]:
    table = build_table("test", [tuple(event) for event in events])
    try:
        return {violation.property for violation in audit(description, table, replay=replay).violations}
    except RemoteError:
        return {"not a trace"}


def overlapping(description: RunDescription) -> RunDescription:
    """The same, but of the order across groups only that of two groups each is promised."""
    promised = msgspec.structs.replace(description.guarantees, order=Order.OVERLAPS, gaps=Gaps.SILENT)
    return msgspec.structs.replace(description, guarantees=promised)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_both_condemn_a_mutant_for_the_same_properties(mutant: Mutant) -> None:
    condemned: set[str] = set()
    for seed in range(mutant.seeds):
        run = mutant.run(seed)
        found = audit(run.description, run.table, replay=run.replay).violations
        told = {violation.property for violation in run.violations}
        assert {violation.property for violation in found} == told
        assert told <= mutant.breaks | mutant.also
        condemned |= told
        for violation in found:
            assert violation.nodes and violation.detail
            assert mutant.culprit is None or mutant.culprit in violation.nodes, violation
        if condemned >= mutant.breaks:
            return
    raise AssertionError(f"not caught: {mutant.name}")


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize("part", deep_after(1, range(PARTS)))
def test_both_pass_clean_runs(protocol: str, part: int) -> None:
    for seed in range(part, CLEAN_RUNS, PARTS):
        run = honest(protocol, seed)
        assert run.violations == []
        assert audit(run.description, run.table, replay=run.replay).violations == []


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("first", deep_after(1, range(0, 6, 3)))
def test_both_find_the_same_in_tampered_traces(plan: str, first: int) -> None:
    sizes = set()
    for seed in range(first, first + 3):
        run = honest(plan, seed)
        everything = msgspec.structs.replace(run.description, guarantees=EVERYTHING, complete=True)
        for description in (run.description, everything, overlapping(run.description)):
            for number in range(6):
                events = tampered(run.events(), 1000 * seed + number) if number else run.events()
                if foresees(events):
                    continue
                told = oracles_say(description, events, run.replay)
                assert columns_say(description, events, run.replay) == told, (plan, seed, number)
                sizes.add(len(told))
    assert min(sizes) == 0 < max(sizes), "some change nothing that counts, others do"


@pytest.mark.parametrize("first", deep_after(1, range(0, 48, 6)))
def test_both_find_the_same_in_tiers(first: int) -> None:
    judged, found = 0, set[str]()
    for seed in range(first, first + 6):
        scenario = tiers_scenario(seed)
        if scenario is None:
            continue
        run = simulate(scenario)
        assert run.violations == []
        assert audit(run.description, run.table, replay=run.replay).violations == []
        for number in range(6):
            events = tampered(run.events(), 1000 * seed + number)
            if foresees(events):
                continue
            told = oracles_say(run.description, events, run.replay)
            assert columns_say(run.description, events, run.replay) == told, (seed, number)
            found |= told
            judged += 1
    assert judged and found


@pytest.mark.parametrize("part", deep_after(1, range(4)))
def test_both_find_the_same_where_issuers_come_and_go(part: int) -> None:
    found: set[str] = set()
    for seed in range(part, TURNOVERS, 4):
        trace = turnover(seed)
        trace.clean()
        everything = msgspec.structs.replace(trace.description, guarantees=EVERYTHING)
        for number in range(8):
            events = tampered(trace.events, 1000 * seed + number)
            if foresees(events):
                continue
            for description in (trace.description, everything):
                told = oracles_say(description, events)
                assert columns_say(description, events) == told, (seed, number)
                found |= told
    assert found >= {"drop-detection", "agreement", "total-order", "integrity"}
