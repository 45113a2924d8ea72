"""A service moves from one protocol to another by the name in its scenario: its clients notice nothing."""

import pytest

from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Kind

Answers = list[tuple[int | None, int | None, int | None]]


def answers(protocol: str, service: str) -> Answers:
    """What a client that waits for each answer got: message, size and check sum."""
    workload = WorkloadSpec(kind="closed", messages=80, outstanding=1, reads=0.3)
    run = simulate(Scenario(protocol=protocol, service=service, senders=1, seed=3, workload=workload))
    assert run.violations == [] and run.description.complete
    return [(row.message, row.size, row.digest) for row in run.events() if row.kind is Kind.REPLY]


@pytest.mark.parametrize("service", ["counter", "kv"])
def test_the_same_calls_get_the_same_answers(service: str) -> None:
    expected = answers("hydra_paxos", service)
    assert len(expected) == 80
    for protocol in ("llft", "multi_paxos", "unreplicated"):
        assert answers(protocol, service) == expected, protocol
