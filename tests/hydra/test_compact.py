"""Hydra on few hosts: sequencers and the configuration service run where receivers do."""

from typing import Any

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import MILLISECOND, Deployment, LocalError, Plan
from ordercast.protocols.hydra.messages import Announce, Request
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender
from ordercast.scenario.faults import Crash, Heal, Partition, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Event, Kind
from tests.deep import deep_after
from tests.hydra.lab import CLIENT, LEADER, MEMBERS, SERVICE, Bench, active

HOSTS, MESSAGES = 5, 800
AFTER = 700 * MILLISECOND


def plan(receivers: int = 3, **options: Any) -> Plan:
    chosen = HydraOptions(compact=True, **options)
    return find_protocol("hydra").deploy(Deployment.disjoint(1, receivers, receivers, colocated=True), chosen)


def run(seed: int, *fault: Any, **options: Any) -> Run:
    """Five hosts: each has a receiver and a sender, two have a sequencer, three a replica of the service."""
    return simulate(
        Scenario(
            protocol="hydra",
            seed=seed,
            options={"compact": True, "resend": True, **options},
            receivers=HOSTS,
            senders=HOSTS,
            colocated=True,
            network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.02),
            workload=WorkloadSpec(messages=MESSAGES, rate_per_s=200),
            settle_ms=400,
            fault=fault,
        )
    )


def test_all_roles_share_the_hosts_of_receivers() -> None:
    found = plan()
    assert {node.host for node in found.nodes} == {0, 1, 2}
    roles = {host: {node.role for node in found.nodes if node.host == host} for host in range(3)}
    members = {"receiver", "sender", "configuration"}
    assert roles == {0: members | {"sequencer"}, 1: members | {"sequencer"}, 2: members}


def test_spare_sequencers_have_hosts_of_their_own() -> None:
    found = plan(spares=1)
    assert [(node.host, node.spare) for node in found.nodes if node.role == "sequencer"] == [
        (0, False),
        (1, False),
        (8, True),
    ]


def test_hosts_that_are_too_few_are_refused() -> None:
    with pytest.raises(LocalError, match=r"3 replicas of the service .* only 2 receivers"):
        plan(receivers=2)
    with pytest.raises(LocalError, match=r"4 sequencers .* only 3 receivers"):
        plan(sequencers=4)
    with pytest.raises(LocalError, match="a switch runs no receivers"):
        plan(kind="switch")


def test_a_sender_prefers_the_sequencer_beside_it_as_long_as_it_serves() -> None:
    def targets() -> set[int]:
        for _ in range(40):
            assert lab.process.submit((0,), b"")
        return {to for to, message in lab.take_sent() if isinstance(message, Request)}

    lab = Bench(CLIENT, lambda env: Sender(env, MEMBERS, SERVICE, HydraOptions(), near=22))
    lab.receive(LEADER, Announce(0, active(1, 2), None, None))
    assert targets() == {22}
    lab.receive(LEADER, Announce(1, active(1), None, None))
    assert targets() == {21}


def test_a_calm_run_delivers_everything_everywhere() -> None:
    found = run(1)
    assert found.violations == [] and found.ending == "settled"
    assert found.summary().delivered == MESSAGES * HOSTS


@pytest.mark.parametrize("seed", deep_after(1, range(40)))
@pytest.mark.parametrize("host", [0, 2, 4])
def test_a_host_takes_its_sequencer_and_its_replica_with_it(host: int, seed: int) -> None:
    found = run(seed, Crash(at_ms=100, host=host))
    assert found.violations == []
    assert late(found) >= {one for one in range(HOSTS) if one != host}


@pytest.mark.parametrize("seed", deep_after(1, range(40)))
@pytest.mark.parametrize("host", [0, 2, 4])
def test_a_host_comes_back_with_all_its_roles(host: int, seed: int) -> None:
    found = run(seed, Crash(at_ms=100, host=host), Restart(at_ms=300, host=host, state="saved"), durable=True)
    assert found.violations == []
    assert late(found) == set(range(HOSTS))


@pytest.mark.parametrize("seed", deep_after(1, range(20)))
def test_a_minority_of_hosts_that_is_cut_off_comes_back(seed: int) -> None:
    cut = Partition(at_ms=100, sides=((0, 1), (2, 3, 4)))
    found = run(seed, cut, Heal(at_ms=400), durable=True)
    assert found.violations == []
    assert late(found) == set(range(HOSTS))


def late(found: Run) -> set[int]:
    """The receivers that delivered something after all faults."""
    events = map(Event._make, found.rows)
    return {event.node for event in events if event.kind is Kind.DELIVER and event.time_ns > AFTER}
