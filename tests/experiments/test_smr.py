"""State machine replication on the testbed: what the cases run, and what is made of their results."""

import pytest

from ordercast.experiments.experiment import CaseResult, Results, Setup
from ordercast.experiments.hydra.bench import ready_world, sequencer_nodes
from ordercast.experiments.hydra.calibration import PUBLISHED
from ordercast.experiments.hydra.losing import FROM_SEQUENCERS, lose_from
from ordercast.experiments.hydra.saturation import PEAK
from ordercast.experiments.hydra.smr import (
    EXPERIMENTS,
    HYDRA_PAXOS,
    MULTI_PAXOS,
    NOPAXOS,
    SYSTEMS,
    serve,
    service_run,
)
from ordercast.sim.build import build_workload

PACKET = {"packet_ns": PUBLISHED.packet_ns, "link_us": PUBLISHED.link_us}


def peak(system: str, **more: object) -> float:
    return serve(system=system, seed=0, messages=200, **PACKET, **more).numbers[PEAK]  # type: ignore[arg-type]


def test_a_leader_of_multi_paxos_has_six_packets_a_call_and_one_of_hydra_paxos_two() -> None:
    per_packet = 1e9 / PUBLISHED.packet_ns
    assert peak(MULTI_PAXOS) == pytest.approx(per_packet / 6, rel=0.1)
    assert peak(HYDRA_PAXOS) == pytest.approx(per_packet / 2, rel=0.1)


def test_order_that_is_charged_slows_hydra_paxos_down() -> None:
    assert peak(HYDRA_PAXOS, order=True) < 0.7 * peak(HYDRA_PAXOS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_serves_under_loss(system: str) -> None:
    scenario = service_run(system, 4, 1, PUBLISHED, 0.01)
    world = ready_world(scenario)
    build_workload(scenario, world).start()
    world.run(world.now + 20_000_000)
    assert world.network.lost > 0 and world.calls.answered > 100


def test_losses_strike_only_what_leaves_sequencers() -> None:
    scenario = service_run(NOPAXOS, 4, 1, PUBLISHED, 0.0)
    world = ready_world(scenario)
    lose_from(world, {world.envs[node].host.id for node in sequencer_nodes(world)}, 1.0)
    build_workload(scenario, world).start()
    world.run(world.now + 2_000_000)
    assert world.network.lost > 0 and world.calls.answered == 0


def test_the_share_that_is_kept_under_loss_is_that_of_each_seed() -> None:
    loss = next(experiment for experiment in EXPERIMENTS if experiment.name == "hydra-11")
    every = loss.cases(Setup(quick=True))
    cases = [case for case in every if case.parameters["packet_ns"] == PUBLISHED.packet_ns]
    assert {case.parameters["where"] for case in cases} >= {FROM_SEQUENCERS}
    rates = {0.0: 8.0, 0.001: 6.0}
    results = [
        CaseResult(
            case=case,
            name=str(place),
            status="kept",
            error=None,
            values={PEAK: rates[float(case.parameters["loss"])]},
        )
        for place, case in enumerate(cases)
    ]
    (measured,) = loss.evaluate(Results(results)).measurements
    assert measured.value == 0.75
