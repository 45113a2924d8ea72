"""Defects of Lock-Store that runs and scenes show: to the judges of places, to that of values, or to all."""

import msgspec
import pytest

from ordercast.core.general import pack_commit, pack_prepare
from ordercast.judge import audit
from ordercast.judge.histories.transactions import Transactions, judge_transactions
from ordercast.scenario.run_history import history_of_run
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.lock_store.lab import StoreWorld
from tests.lock_store.mutants import broken
from tests.logged_shards.lab import ALSO_HERE, FAR, HERE, THERE, transfer

BUSY = Scenario(
    protocol="lock_store",
    service="list_append",
    groups=3,
    senders=4,
    network=NetworkSpec(latency=UniformSpec(50, 500)),
    workload=WorkloadSpec(kind="closed", messages=200, outstanding=6, reads=0.3),
    settle_ms=300,
)
LOCK_MS = 100


def by_values(run: Run) -> list[str]:
    found = history_of_run(run.description, run.events(), run.values)
    assert isinstance(found, Transactions)
    return [anomaly.kind for anomaly in judge_transactions(found.transactions).anomalies]


def by_places(run: Run) -> set[str]:
    """What both judges find."""
    found = {violation.property for violation in run.violations}
    columns = audit(run.description, run.table, replay=run.replay).violations
    assert {violation.property for violation in columns} == found
    return found


def test_a_lock_that_is_released_early_shows_in_places_and_values() -> None:
    with broken("released_early"):
        run = simulate(BUSY)
    assert by_places(run) == {"strict-serializable"}
    assert {"G0", "G1c"} & set(by_values(run))


def test_a_read_before_its_lock_shows_in_values() -> None:
    """The places cannot show it: the shard says that the reader has locks."""
    with broken("read_unlocked"):
        found = [by_values(simulate(msgspec.structs.replace(BUSY, seed=seed))) for seed in (1, 2)]
    assert any(found)


def test_the_runs_are_sound_without_a_defect() -> None:
    run = simulate(BUSY)
    assert (by_places(run), by_values(run)) == (set(), [])


def concluded_late() -> StoreWorld:
    """The shards have ended a transaction, and then its client concludes it."""
    world = StoreWorld()
    message = world.call(pack_prepare(FAR))
    world.run_ms(6 * LOCK_MS)
    world.call(pack_commit(message, (0, 1), {FAR[0]: 1, FAR[1]: 1}))
    world.run_ms(50)
    world.call(pack_prepare(FAR), 1)
    world.run_ms(50)
    return world


@pytest.mark.parametrize("defect", ["", "concluded_twice"])
def test_both_conclusions_applied_show_in_the_answers(defect: str) -> None:
    with broken(defect):
        world = concluded_late()
    found = {violation.property for violation in world.violations(complete=False)}
    assert found == ({"answers"} if defect else set())


@pytest.mark.parametrize("defect", ["", "locked_again"])
def test_a_lock_that_is_taken_again_stops_others(defect: str) -> None:
    """A client found one shard busy, gave up its lock in the other one, and died. Then a copy of its first
    message comes there: nobody would give that lock up."""
    world = StoreWorld()
    world.call(pack_prepare([THERE]), 1)
    world.run_ms(20)
    world.call(transfer(*FAR, 5))
    (lock,) = (message for source, to, message in world.sent if (source, to) == (world.CLIENT, 0))
    world.run_until(lambda: world.server(0)._ledger._aborted)
    with broken(defect):
        world.transmit(world.envs[world.CLIENT], world.now, 0, lock)
        world.crash(world.CLIENT)
        world.run_ms(1)
        other = world.call(transfer(HERE, ALSO_HERE, 5), 1)
        world.run_ms(LOCK_MS / 2)
    assert world.answered(other) == (not defect)
