"""Runs of `list_append` over shards: what the witness of places accepts, the values explain, and a run whose
values were changed has a cycle that is named."""

from pathlib import Path

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Consistency, ServiceType
from ordercast.judge.histories.transactions import Fate, Transactions, judge_transactions
from ordercast.scenario.run_history import history_of_run, history_of_stored
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.services.sharded import ListAppend
from ordercast.sim.run import Run, simulate
from ordercast.trace import read_run
from tests.deep import deep_after

KIND = ServiceType.of(ListAppend).find("run")
SHARDED = {
    name: find_protocol(name).guarantees.consistency
    for name in protocol_names()
    if find_protocol(name).guarantees.consistency
    in (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)
}
SEEDS = 40


def transactions_of(run: Run) -> Transactions:
    found = history_of_run(run.description, run.events(), run.values)
    assert isinstance(found, Transactions)
    return found


def scenario_of(protocol: str, seed: int) -> Scenario:
    return Scenario(
        protocol=protocol,
        service="list_append",
        groups=3,
        senders=4,
        seed=seed,
        history=True,
        network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.02),
        workload=WorkloadSpec(kind="closed", messages=120, outstanding=3),
        settle_ms=500,
    )


@pytest.mark.parametrize("seed", deep_after(1, range(SEEDS)))
@pytest.mark.parametrize("protocol", SHARDED)
def test_what_the_witness_accepts_the_values_explain(protocol: str, seed: int) -> None:
    """Under the faults of the swarm, too."""
    drawn = msgspec.structs.replace(swarm_scenario(protocol, seed), service="list_append")
    for scenario in (scenario_of(protocol, seed), drawn) if seed else (scenario_of(protocol, seed),):
        run = simulate(scenario)
        assert run.violations == []
        judged = judge_transactions(transactions_of(run).transactions)
        assert judged.serializable, judged.anomalies
        if SHARDED[protocol] is Consistency.STRICT_SERIALIZABLE:
            assert judged.strict_serializable, judged.anomalies


def test_transactions_append_and_then_read_all_of_their_lists() -> None:
    run = simulate(scenario_of("lock_store", 1))
    told = transactions_of(run).transactions
    assert len(told) == 120 and {one.fate for one in told} == {Fate.COMMITTED}
    assert any(len(one.operations) > 4 for one in told)
    assert all(one.answered is not None and one.answered > one.invoked for one in told)
    for one in told:
        assert one.source.startswith("message ") and one.client >= 9


def test_a_call_without_an_answer_has_an_unknown_outcome() -> None:
    run = simulate(scenario_of("lock_store", 1))
    results = dict(run.values.results)
    del results[next(iter(results))]
    run.values = run.values._replace(results=results)
    (one,) = [one for one in transactions_of(run).transactions if one.fate is Fate.UNKNOWN]
    assert one.answered is None


def test_a_stale_read_makes_a_cycle_that_names_the_messages(tmp_path: Path) -> None:
    """The last reader of a list is told that it is empty, long after others have read elements of it."""
    run = simulate(scenario_of("lock_store", 2))
    results = dict(run.values.results)
    for message, result in reversed(results.items()):
        lists = KIND.unpack_result(result)
        appends, reads = KIND.unpack(run.values.operations[message][len(KIND.head) :])
        if not appends and reads and isinstance(lists, dict) and any(lists.values()):
            results[message] = KIND.pack_result({key: [] for key in lists})
            break
    run.values = run.values._replace(results=results)
    found = history_of_stored(read_run(run.write(tmp_path)))
    assert isinstance(found, Transactions)
    judged = judge_transactions(found.transactions)
    assert not judged.strict_serializable
    (anomaly,) = judged.anomalies
    assert anomaly.kind.endswith(("-process", "-realtime"))
    assert all("message " in str(step.before) for step in anomaly.steps)
