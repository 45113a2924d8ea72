"""Leaders of replicated services that are cut off: clients have answers again soon."""

import msgspec
import pytest

from ordercast.core import MessageId, Nanos
from ordercast.scenario.faults import Heal, Partition
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind

LEADER, HOSTS = (0,), range(6)
"""The first replica leads from the start. Two more replicas and three clients follow."""
CUT_MS, WHOLE_MS = 500, 2000


def cut_off(protocol: str, way: str) -> Scenario:
    """Clients that call all the time, while the leader is cut off."""
    others = tuple(host for host in HOSTS if host not in LEADER)
    sides = (others, LEADER) if way == "in" else (LEADER, others)
    return Scenario(
        protocol=protocol,
        service="kv",
        receivers=3,
        senders=3,
        liveness=True,
        settle_ms=300,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        workload=WorkloadSpec(messages=900, rate_per_s=100, reads=0.2),
        fault=(
            Partition(at_ms=CUT_MS, sides=sides, one_way=way != "both ways"),
            Heal(at_ms=WHOLE_MS),
        ),
    )


def longest_wait(run: Run) -> Nanos:
    """The longest time that a client waited for its first answer to a call."""
    firsts: dict[MessageId, Nanos] = {}
    for event in run.events():
        if event.kind is Kind.REPLY and event.message is not None and event.submitted_ns is not None:
            firsts.setdefault(event.message, event.time_ns - event.submitted_ns)
    assert len(firsts) == run.summary().submitted > 800
    return max(firsts.values())


@pytest.mark.parametrize("way", ["in", "both ways", "out"])
@pytest.mark.parametrize("protocol", ["active", "fast_paxos", "multi_paxos"])
def test_clients_have_answers_again_within_two_detection_times(protocol: str, way: str) -> None:
    scenario = cut_off(protocol, way)
    detection = scenario.all_options().detection_ns
    run = simulate(scenario)
    assert run.violations == [] and run.hindrance == ""
    assert detection / 10 < longest_wait(run) < 2 * detection
    assert longest_wait(simulate(msgspec.structs.replace(scenario, fault=()))) < detection / 10
