"""Both judges of services: they find the same lies, and name whom they were told to."""

from random import Random

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import RemoteError
from ordercast.judge import Verdict, audit, verdict
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, build_table
from tests.audit.tampered_services import TAMPERINGS, Tampering, shuffled_answers
from tests.audit.tampering import honest
from tests.deep import deep_after

SERVICES = ("kv", "register", "counter", "echo")
PLANS = [name for name in protocol_names() if find_protocol(name).serves]
PARTS = 8


def served(seed: int) -> Run:
    """A run of a service without replication, which keeps its promises."""
    scenario = Scenario(
        protocol="unreplicated",
        service=SERVICES[seed % len(SERVICES)],
        seed=seed,
        senders=3,
        options={"checkpoint_every": 8},
        bundle_bytes=(0, 1400)[seed % 2],
        network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.1),
        workload=WorkloadSpec(messages=60, rate_per_s=2000, reads=0.4),
    )
    run = simulate(scenario)
    assert run.violations == [] and run.description.complete
    return run


def both(run: Run, events: list[Event]) -> list[Verdict]:
    """What each judge finds in changed events of a run."""
    table = build_table("test", [tuple(event) for event in events])
    return [
        verdict(run.description, events, replay=run.replay),
        audit(run.description, table, replay=run.replay),
    ]


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda one: one.change.__name__)
def test_both_judges_find_a_lie_and_name_it(tampering: Tampering) -> None:
    for seed in range(4):
        run = served(seed)
        events = run.events()
        blamed = tampering.change(events, Random(seed))
        properties = []
        for found in both(run, events):
            told = [violation for violation in found.violations if violation.property == tampering.breaks]
            assert any(
                {*blamed.nodes} <= {*violation.nodes} and {*blamed.messages} <= {*violation.messages}
                for violation in told
            ), (seed, blamed, found.violations)
            assert all(violation.nodes and violation.detail for violation in found.violations)
            properties.append({violation.property for violation in found.violations})
        assert properties[0] == properties[1]
        assert {tampering.breaks} <= properties[0] <= {tampering.breaks} | tampering.also


@pytest.mark.parametrize("part", deep_after(1, range(PARTS)))
@pytest.mark.parametrize("plan", PLANS)
def test_both_judges_find_the_same_in_shuffled_answers(plan: str, part: int) -> None:
    found: set[str] = set()
    for seed in range(part, 3 * PARTS, PARTS):
        run = honest(plan, seed)
        complete = msgspec.structs.replace(run.description, complete=True)
        for number in range(10):
            events = run.events()
            shuffled_answers(events, Random(1000 * seed + number))
            for description in (run.description, complete):
                told = _properties(verdict, description, events, run)
                table = build_table("test", [tuple(event) for event in events])
                assert _properties(audit, description, table, run) == told, (plan, seed, number)
                found |= told
    assert found >= {find_protocol(plan).guarantees.consistency.value, "answers"}


def _properties(judge: object, description: object, rows: object, run: Run) -> set[str]:
    try:
        found = judge(description, rows, replay=run.replay)  # type: ignore[operator]
    except RemoteError:
        return {"not a trace"}
    return {violation.property for violation in found.violations}
