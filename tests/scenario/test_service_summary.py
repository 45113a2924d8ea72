"""The numbers of a run with a service."""

import msgspec

from ordercast.scenario.spec import NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate

SCENARIO = Scenario(
    protocol="unreplicated",
    service="kv",
    senders=2,
    workload=WorkloadSpec(messages=50, reads=0.4),
)


def test_a_summary_counts_answers() -> None:
    summary = simulate(SCENARIO).summary()
    assert (summary.answered, summary.unknown) == (50, 0)
    assert summary.delivered < 50, "reads are not delivered"
    # One way to the server and back, of 50 microseconds each.
    assert summary.answer_latency_ns == dict.fromkeys(("p50", "p90", "p99", "max"), 100_000)


def test_operations_of_unknown_outcome_are_counted() -> None:
    options = {"calls": {"deadline_ns": 20_000_000, "retry_ns": 20_000_000}}
    lossy = msgspec.structs.replace(SCENARIO, options=options, network=NetworkSpec(loss=0.3))
    summary = simulate(lossy).summary()
    assert summary.answered is not None and summary.unknown is not None
    assert summary.answered + summary.unknown == 50 and summary.unknown > 0
    assert summary.violations == []


def test_a_run_without_a_service_has_no_answers() -> None:
    summary = simulate(msgspec.structs.replace(SCENARIO, service="")).summary()
    assert (summary.answered, summary.unknown, summary.answer_latency_ns) == (None, None, None)
