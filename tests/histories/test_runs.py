"""The search by values and the witness by places agree on simulated runs of honest and broken services."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Consistency, LocalError, RemoteError, message_name
from ordercast.judge import Violation
from ordercast.judge.histories import History, explained, judge_history
from ordercast.scenario.run_history import history_of_run, history_of_stored
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Kind, find_runs, read_run
from ordercast.trace.values import HISTORY, VALUES, read_values
from tests.deep import deep_after
from tests.sim.mutants_service import Hasty, Lying, Repeating, Stale, forgetful, served_by

BROKEN = {"hasty": Hasty, "lying": Lying, "repeating": Repeating, "stale": Stale, "forgetful": forgetful}
PROTOCOLS = [
    name
    for name in protocol_names()
    if find_protocol(name).guarantees.consistency is Consistency.LINEARIZABLE
]
RUNS = 500
PARTS = 25
WITNESS = {"linearizable", "answers", "integrity"}
"""The properties by which the witness condemns what clients see."""


def scenario_of(seed: int, service: str = "register") -> Scenario:
    return Scenario(
        protocol="unreplicated",
        service=service,
        seed=seed,
        senders=4,
        network=NetworkSpec(latency=UniformSpec(50, 2000), loss=0.1),
        workload=WorkloadSpec(messages=60, rate_per_s=1000, reads=0.5, bytes=8),
        settle_ms=500,
    )


def operations_of(run: Run, events: Sequence[Event] | None = None) -> History:
    found = history_of_run(run.description, run.events() if events is None else events, run.values)
    assert isinstance(found, History)
    return found


def by_values(run: Run) -> bool | None:
    return judge_history(operations_of(run)).linearizable


def by_places(run: Run) -> list[Violation]:
    return [violation for violation in run.violations if violation.property in WITNESS]


@pytest.mark.parametrize("part", deep_after(1, range(PARTS)))
def test_what_the_witness_accepts_has_an_order(part: int) -> None:
    for seed in range(part, RUNS, PARTS):
        scenario = swarm_scenario(PROTOCOLS[seed % len(PROTOCOLS)], seed)
        service = ("kv", "register")[seed % 2]
        run = simulate(msgspec.structs.replace(scenario, service=service))
        assert by_places(run) == []
        assert by_values(run) is True, (scenario.protocol, seed)


def test_the_outcome_of_what_was_undone_is_unknown() -> None:
    run = simulate(scenario_of(1))
    events = run.events()
    replies = [event for event in events if event.kind is Kind.REPLY]
    last = replies[-1]
    places = sorted(
        one.stamp_clock for one in replies if one.node == last.node and one.stamp_clock is not None
    )
    place = places[len(places) // 2]
    undone = Event(
        last.time_ns, last.clock_ns, last.node, Kind.UNDONE, groups=(0,), stamp_clock=place, stamp_issuer=0
    )
    told = operations_of(run, [*events, undone]).operations
    before = operations_of(run, events).operations
    lost = {
        f"message {message_name(one.message or 0)}"
        for one in replies
        if one.node == last.node and one.stamp_clock is not None and one.stamp_clock > place
    }
    assert lost
    for one, other in zip(before, told, strict=True):
        if one.source in lost:
            assert one.answered is not None and (other.answered, other.result) == (None, None)
        else:
            assert one == other


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_search_condemns_the_witness_condemns(name: str) -> None:
    condemned = 0
    for seed in range(12):
        scenario = scenario_of(seed, ("kv", "register")[seed % 2])
        run = simulate(scenario, partial(served_by, BROKEN[name])(scenario.plan()))
        verdict = by_values(run)
        assert verdict is not None
        assert by_places(run) if verdict is False else True, seed
        condemned += verdict is False
    assert condemned, "some lies show in the values"


def test_a_counterexample_names_messages_and_keys() -> None:
    for seed in range(12):
        scenario = scenario_of(seed, "kv")
        run = simulate(scenario, served_by(Lying, scenario.plan()))
        found = judge_history(operations_of(run)).counterexample
        if found is not None:
            assert "(message " in explained(found)[0] and "key-" in explained(found)[0]
            return
    raise AssertionError("no counterexample")


def test_values_are_kept_beside_the_trace(tmp_path: Path) -> None:
    run = simulate(msgspec.structs.replace(scenario_of(1, "kv"), history=True))
    folder = run.write(tmp_path)
    assert (folder / HISTORY / VALUES).exists()
    assert [found.folder for found in find_runs(tmp_path)] == [folder]
    values = read_values(folder)
    assert values is not None
    assert (values.operations, values.results) == (run.values.operations, run.values.results)
    found = history_of_stored(read_run(folder))
    assert isinstance(found, History) and judge_history(found).linearizable


def test_a_run_keeps_no_values_unless_it_is_asked_to(tmp_path: Path) -> None:
    folder = simulate(scenario_of(1, "kv")).write(tmp_path)
    assert read_values(folder) is None
    with pytest.raises(LocalError, match="history = true"):
        history_of_stored(read_run(folder))


def test_a_service_without_a_model(tmp_path: Path) -> None:
    folder = simulate(msgspec.structs.replace(scenario_of(1, "echo"), history=True)).write(tmp_path)
    with pytest.raises(LocalError, match="models for: register, kv, list_append"):
        history_of_stored(read_run(folder))


def test_values_that_cannot_be_read(tmp_path: Path) -> None:
    folder = simulate(msgspec.structs.replace(scenario_of(1, "kv"), history=True)).write(tmp_path)
    (folder / HISTORY / VALUES).write_bytes(b"not Parquet")
    with pytest.raises(RemoteError, match="not a file of values"):
        read_values(folder)
