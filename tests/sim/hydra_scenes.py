"""Scenarios in which broken variants of Hydra show: two groups of three, two senders, two sequencers."""

from typing import Any

from ordercast.scenario.faults import Crash, Heal, Partition, Restart
from ordercast.scenario.spec import (
    ClocksSpec,
    ConstantSpec,
    NetworkSpec,
    Scenario,
    SitesSpec,
    UniformSpec,
    WorkloadSpec,
)

CULPRIT = 0
"""The receiver that is broken, where only one is."""
SEQUENCER = 8
"""The first of the sequencers, after receivers and senders."""
SENDERS = (6, 7)
SERVICE = (SEQUENCER + 2, SEQUENCER + 3, SEQUENCER + 4)


def scene(seed: int, **changes: Any) -> Scenario:
    """Two groups of three, two senders, messages to both groups, delays that vary; gaps are not repaired."""
    described: dict[str, Any] = {
        "groups": 2,
        "receivers": 3,
        "senders": 2,
        "network": NetworkSpec(latency=UniformSpec(50, 500)),
        "workload": WorkloadSpec(messages=160, rate_per_s=1000, spread=(0.6, 0.4)),
        "settle_ms": 150,
    }
    options = {"repair": False} | changes.pop("options", {})
    return Scenario(protocol="hydra", seed=seed, options=options, **(described | changes))


def lossy(seed: int) -> Scenario:
    """One packet in ten is lost."""
    return scene(seed, network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.1))


def doubling(seed: int) -> Scenario:
    """Packets come twice."""
    return scene(seed, network=NetworkSpec(latency=UniformSpec(50, 500), duplication=0.2))


def sequencer_crash(seed: int) -> Scenario:
    """A sequencer crashes on a network that loses packets, and comes back."""
    return scene(
        seed,
        network=NetworkSpec(latency=UniformSpec(50, 500), loss=0.1),
        workload=WorkloadSpec(messages=300, rate_per_s=1000, spread=(0.6, 0.4)),
        fault=(Crash(at_ms=30, host=SEQUENCER), Restart(at_ms=90, host=SEQUENCER)),
    )


def sequencer_cut_off(seed: int) -> Scenario:
    """A sequencer and the senders are cut off from all but one receiver, which hears both sides."""
    others = (1, 2, 3, 4, 5, *SERVICE)
    return scene(
        seed,
        workload=WorkloadSpec(messages=300, rate_per_s=1000, spread=(0.6, 0.4)),
        fault=(Partition(at_ms=30, sides=((SEQUENCER, *SENDERS), others)), Heal(at_ms=140)),
    )


def service_split(seed: int) -> Scenario:
    """Two replicas of the service have a quorum of each group, but no two replicas have each other.

    The quorum of the first has missed the last that a sequencer sent.
    """
    one, two, three = SERVICE
    return scene(
        seed,
        workload=WorkloadSpec(messages=300, rate_per_s=1000, spread=(0.6, 0.4)),
        fault=(
            Partition(at_ms=25, sides=((one,), (two,), (three,))),
            Partition(at_ms=25, sides=((two, three), (0, 3))),
            Partition(at_ms=25, sides=((one, three), (1, 4))),
            Partition(at_ms=26, sides=((SEQUENCER,), (0, 2, 3, 5))),
            Crash(at_ms=32, host=SEQUENCER),
            Heal(at_ms=200),
        ),
        settle_ms=4000,  # replicas that failed to be elected wait for longer and longer
    )


def tail_lost(seed: int) -> Scenario:
    """A sequencer crashes, and one receiver has missed the last that it sent."""
    return scene(
        seed,
        workload=WorkloadSpec(messages=200, rate_per_s=1000, spread=(0.6, 0.4)),
        fault=(
            Partition(at_ms=26, sides=((SEQUENCER,), (CULPRIT,))),
            Crash(at_ms=30, host=SEQUENCER),
            Heal(at_ms=31),
        ),
    )


def near_minority(seed: int) -> Scenario:
    """A sequencer crashes, and the receivers nearest to the service have missed the last that it sent."""
    near = (0, 3, *SERVICE)
    far = (1, 2, 4, 5, *SENDERS, SEQUENCER, SEQUENCER + 1)
    return scene(
        seed,
        network=NetworkSpec(latency=SitesSpec((near, far), ConstantSpec(20), UniformSpec(500, 1500))),
        workload=WorkloadSpec(messages=200, rate_per_s=1000, spread=(0.4, 0.6)),
        fault=(
            Partition(at_ms=30, sides=((SEQUENCER,), (0, 3))),
            Crash(at_ms=45, host=SEQUENCER),
            Heal(at_ms=46),
        ),
    )


def group_cut_off(seed: int) -> Scenario:
    """A sequencer crashes, and the whole second group has missed the last that it sent."""
    return scene(
        seed,
        workload=WorkloadSpec(messages=200, rate_per_s=1000, spread=(0.4, 0.6)),
        fault=(
            Partition(at_ms=30, sides=((SEQUENCER,), (3, 4, 5))),
            Crash(at_ms=36, host=SEQUENCER),
            Heal(at_ms=37),
        ),
    )


def rejoining(seed: int) -> Scenario:
    """A sequencer comes back while messages flow; clocks differ, so its first flushes may be too early."""
    return scene(
        seed,
        network=NetworkSpec(latency=UniformSpec(200, 3000)),
        clocks=ClocksSpec(skew_us=20_000),
        workload=WorkloadSpec(messages=300, rate_per_s=1500, spread=(0.6, 0.4)),
        fault=(Crash(at_ms=10, host=SEQUENCER), Restart(at_ms=50, host=SEQUENCER)),
    )


def durable_restart(seed: int) -> Scenario:
    """A receiver that saves its place restarts."""
    return scene(
        seed,
        options={"durable": True},
        fault=(Crash(at_ms=30, host=CULPRIT), Restart(at_ms=50, host=CULPRIT)),
    )
