"""A bank on Eris while sequencers, coordinators and replicas fail."""

import msgspec
import pytest

from ordercast.scenario import Scenario
from ordercast.scenario.faults import Crash, Heal, Partition, Pause, Restart
from ordercast.scenario.spec import NetworkSpec, WorkloadSpec
from ordercast.sim import simulate

SEQUENCER, SPARE, COORDINATOR, FOLLOWER, CLIENT = 9, 10, 15, 5, 6
BANK = Scenario(
    protocol="eris",
    service="bank",
    groups=2,
    receivers=3,
    senders=3,
    liveness=True,
    options={"spares": 2, "join_ns": 5_000_000},
    network=NetworkSpec(loss=0.01),
    workload=WorkloadSpec(kind="closed", messages=600, outstanding=4, timeout_ms=4000),
)
"""Hosts 0 to 5 are replicas, 6 to 8 clients, 9 to 11 sequencers, 12 to 14 controllers and 15 to 17
coordinators."""
TROUBLES = {
    "its sequencer dies": (Crash(at_ms=20, host=SEQUENCER),),
    "two sequencers die": (Crash(at_ms=20, host=SEQUENCER), Crash(at_ms=60, host=SPARE)),
    "the first comes back": (Pause(at_ms=20, host=SEQUENCER, for_ms=150),),
    "the first is restarted": (Crash(at_ms=20, host=SEQUENCER), Restart(at_ms=30, host=SEQUENCER)),
    "it reaches a few": (
        Partition(at_ms=20, sides=((SEQUENCER, FOLLOWER, CLIENT), (0, 1, 2, 3, 4))),
        Heal(at_ms=200),
    ),
    "the coordinator changes too": (
        Crash(at_ms=20, host=SEQUENCER),
        Crash(at_ms=52, host=COORDINATOR),
    ),
    "a leader dies too": (Crash(at_ms=20, host=SEQUENCER), Crash(at_ms=52, host=0)),
    "a replica forgets": (
        Crash(at_ms=20, host=SEQUENCER),
        Crash(at_ms=52, host=3),
        Restart(at_ms=53, host=3, state="lost"),
    ),
}


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_nothing_is_lost_and_all_is_answered(trouble: str, seed: int) -> None:
    run = simulate(msgspec.structs.replace(BANK, fault=TROUBLES[trouble], seed=seed))
    assert run.violations == []
    assert run.hindrance == ""
    summary = run.summary()
    assert (summary.answered, summary.unknown) == (summary.submitted, 0)
    issuers = set(run.table.column("stamp_issuer").to_pylist()) - {None}
    assert len(issuers) > 1, "there was another epoch"
