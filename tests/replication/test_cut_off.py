"""Leaders of replicated services that are cut off: clients have answers again soon."""

from functools import cache

import msgspec
import pytest

from ordercast.components.network_ordered.views import Views
from ordercast.core import MessageId, Nanos
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import Heal, Partition
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind

LEADER = (0,)
"""The first replica leads from the start. Other replicas, clients and what orders calls follow."""
CUT_MS, WHOLE_MS = 500, 2000


def cut_off(protocol: str, way: str) -> Scenario:
    """Clients that call all the time, while the leader is cut off."""
    scenario = calling(protocol)
    others = tuple(sorted({node.host for node in scenario.plan().nodes} - set(LEADER)))
    sides = (others, LEADER) if way == "in" else (LEADER, others)
    cut = Partition(at_ms=CUT_MS, sides=sides, one_way=way != "both ways")
    return msgspec.structs.replace(scenario, fault=(cut, Heal(at_ms=WHOLE_MS)))


def calling(protocol: str) -> Scenario:
    """Clients that call all the time."""
    return Scenario(
        protocol=protocol,
        service="kv",
        receivers=3,
        senders=3,
        liveness=True,
        settle_ms=300,
        network=NetworkSpec(latency=UniformSpec(50, 500)),
        workload=WorkloadSpec(messages=900, rate_per_s=100, reads=0.2),
    )


def longest_wait(run: Run) -> Nanos:
    """The longest time that a client waited for its first answer to a call."""
    firsts: dict[MessageId, Nanos] = {}
    for event in run.events():
        if event.kind is Kind.REPLY and event.message is not None and event.submitted_ns is not None:
            firsts.setdefault(event.message, event.time_ns - event.submitted_ns)
    assert len(firsts) == run.summary().submitted > 800
    return max(firsts.values())


@cache
def usual_wait(protocol: str) -> Nanos:
    """The longest wait without faults."""
    return longest_wait(simulate(calling(protocol)))


@pytest.mark.parametrize("way", ["in", "both ways", "out"])
@pytest.mark.parametrize("protocol", ["active", "fast_paxos", "hydra_paxos", "multi_paxos", "nopaxos"])
def test_clients_have_answers_again_within_two_detection_times(protocol: str, way: str) -> None:
    scenario = cut_off(protocol, way)
    detection = scenario.all_options().detection_ns
    run = simulate(scenario)
    assert run.violations == [] and run.hindrance == ""
    assert usual_wait(protocol) < min(longest_wait(run), detection / 4)
    assert longest_wait(run) < 2 * detection


@pytest.mark.parametrize("protocol", ["hydra_paxos", "nopaxos"])
def test_a_leader_that_is_busy_does_not_look_deaf(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others say to it waits for its processor, as long as what it says to itself."""
    changes: list[int] = []
    monkeypatch.setattr(Views, "enter_change", lambda views: changes.append(views.view))
    busy = msgspec.structs.replace(
        calling(protocol),
        role_cpu={"replica": Cpu(receive_ns=300_000)},
        workload=WorkloadSpec(kind="closed", messages=900, outstanding=20, reads=0.2),
    )
    run = simulate(busy)
    assert run.violations == [] and run.hindrance == "" and changes == []
    assert longest_wait(run) > busy.all_options().detection_ns / 4, "it is busy"
