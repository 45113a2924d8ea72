"""Hydra's testbed: numbers from outside, the CPU of order, one rule for loads, clocks apart, the sweep."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import ordering
from ordercast.core import LocalError
from ordercast.experiments import Case, Evaluation, Measurement, Results, Setup
from ordercast.experiments.hydra.bench import Counted, count, ready_world, sequencer_nodes
from ordercast.experiments.hydra.calibration import (
    PACKETS_OF_ORDER,
    PUBLISHED,
    ROUND_TRIP_NS,
    RPCS_PER_S,
    hardware_of,
)
from ordercast.experiments.hydra.saturation import PEAK, closed_loop, doubled, saturated, summary
from ordercast.experiments.hydra.sensitivity import GRID, QUICK_GRID, SMALL, Effort, on_testbed
from ordercast.experiments.hydra.testbed import HYDRA, hydra_options, microbenchmark
from tests.experiments import made_up

NUMBERS: dict[str, Any] = {"packet_ns": PUBLISHED.packet_ns, "link_us": PUBLISHED.link_us}


def test_a_packet_and_a_link_follow_from_the_published_rpc() -> None:
    assert hardware_of(RPCS_PER_S, ROUND_TRIP_NS) == PUBLISHED
    assert (PUBLISHED.packet_ns, PUBLISHED.link_us) == (50, 0.525)
    assert 1e9 / (2 * PUBLISHED.packet_ns) == 10_000_000
    assert 4 * PUBLISHED.packet_ns + 4 * 1_000 * PUBLISHED.link_us == pytest.approx(2_300)


def test_order_is_charged_in_packets_and_only_where_there_is_order() -> None:
    assert PUBLISHED.order_ns("unordered") == 0
    assert PUBLISHED.order_ns(HYDRA) == round(PACKETS_OF_ORDER[HYDRA] * 50)
    assert 0 < PACKETS_OF_ORDER[HYDRA] < PACKETS_OF_ORDER["atomic_multicast"]


@pytest.mark.parametrize("order_ns", [0, 500])
def test_each_delivery_keeps_the_cpu_busy_for_the_time_of_order(order_ns: int) -> None:
    """At saturation a receiver needs a packet in, a packet out, and the time of order for a message."""
    scenario = microbenchmark("unordered", clients=64, seed=1)
    world = ready_world(scenario, order_ns=order_ns)
    found = count(scenario, world, clients=64, messages=500)
    assert found.messages_per_s == pytest.approx(1e9 / (2 * PUBLISHED.packet_ns + order_ns), rel=0.05)


def test_order_is_done_before_the_answer() -> None:
    """One client: its latency grows by what order costs once, for receivers work side by side."""
    scenario = microbenchmark("unordered", clients=1, seed=1)
    plain, charged = (
        count(scenario, ready_world(scenario, order_ns=order), clients=1, messages=20).p50_ns
        for order in (0, 500)
    )
    assert charged - plain == pytest.approx(500, abs=1)


@pytest.mark.parametrize("skew_us", [0.0, 10.0, 200.0])
def test_the_largest_difference_between_sequencers_is_the_skew(skew_us: float) -> None:
    scenario = microbenchmark("hydra", clients=1, seed=1, options=hydra_options(sequencers=8))
    world = ready_world(scenario, skew_us=skew_us)
    nodes = sequencer_nodes(world)
    readings = sorted(world.envs[node].read_clock() for node in nodes)
    assert len(nodes) == 8
    assert readings[-1] - readings[0] == round(skew_us * 1_000)
    assert len(set(readings)) == (8 if skew_us else 1)
    others = {env.read_clock() for env in world.envs if env.me not in nodes}
    assert others == {world.now}


def counted(clients: int, rate: float) -> Counted:
    return Counted(clients=clients, messages_per_s=rate, p50_ns=clients, mean_ns=2 * clients, seconds=0.1)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([100.0], False),
        ([100.0, 200.0], False),
        ([100.0, 106.0], False),
        ([100.0, 104.0], True),
        ([100.0, 200.0, 190.0], True),
        ([100.0, 104.0, 200.0], False),
    ],
)
def test_a_system_is_saturated_when_twice_the_clients_gain_less_than_a_twentieth(
    rates: list[float], expected: bool
) -> None:
    assert saturated(rates) is expected


def test_clients_double_until_the_system_is_saturated_and_no_further() -> None:
    loads = list(doubled(15, lambda clients: counted(clients, min(clients, 1_000) * 10.0)))
    assert [load.clients for load in loads] == [15, 30, 60, 120, 240, 480, 960, 1_920]
    values = summary(loads)
    assert values.numbers[PEAK] == 10_000.0
    assert (values.numbers["p50_ns"], values.numbers["mean_ns"]) == (15.0, 30.0)
    assert len(values.records) == 8


def test_the_maximum_may_be_before_the_last_load() -> None:
    loads = list(doubled(1, lambda clients: counted(clients, 100.0 if clients == 2 else 60.0)))
    assert [load.clients for load in loads] == [1, 2, 4]
    assert summary(loads).numbers[PEAK] == 100.0


def test_a_group_that_completes_nothing_is_an_error() -> None:
    scenario = microbenchmark("unordered", clients=1, seed=1)
    world = ready_world(scenario)
    for node in world.plan.groups[0]:
        world.crash(world.plan.nodes[node].host)
    with pytest.raises(LocalError, match="only 0 of 1 messages were completed"):
        count(scenario, world, clients=1, messages=4)


def test_throughput_is_that_of_the_slowest_cpu() -> None:
    """Order takes more of a receiver's CPU than its packets: without it, Hydra would be twice as fast."""
    values = closed_loop(system="hydra", flush="adaptive", seed=1, messages=300, **NUMBERS)
    alone = 1e9 / (2 * PUBLISHED.packet_ns + PUBLISHED.order_ns(HYDRA))
    assert 0.8 * alone < values.numbers[PEAK] <= alone


CLAIM = "hydra.micro.throughput_vs_unordered"


def toy_cases(effort: Effort) -> list[Case]:
    return [Case(parameters={}, seed=seed, function="a:b") for seed in range(effort.seeds)]


def toy_evaluate(results: Results) -> Evaluation:
    (value,) = set(results.values("value"))
    return Evaluation(measurements=(Measurement(claim=CLAIM, value=value, note="toy"),))


def toy() -> Callable[[Setup], Evaluation]:
    experiment = on_testbed(
        name="toy", title="Toy", source="s", claims=(CLAIM,), cases=toy_cases, evaluate=toy_evaluate
    )

    def evaluated(setup: Setup) -> Evaluation:
        def value(case: Case) -> dict[str, float]:
            return {"value": made_up.number(case, "packet_ns") + made_up.number(case, "link_us")}

        return experiment.evaluate(made_up.results(experiment.cases(setup), value))

    return evaluated


def test_the_published_numbers_decide_and_the_others_are_told() -> None:
    evaluation = toy()(Setup())
    (measured,) = evaluation.measurements
    assert measured.value == 50.525
    assert measured.note.startswith("toy; with packets and links of 200 ns and 0.525 us: 201, ")
    assert "200 ns and 1.3 us: 201" in measured.note
    assert measured.note.count(" ns and ") == len(GRID) - 1


def test_the_sweep_is_a_table_with_a_row_for_each_claim_and_link() -> None:
    (figure,) = toy()(Setup()).figures
    assert figure.id == "toy-sensitivity"
    assert [curve.label for curve in figure.curves] == [f"{CLAIM}, link {link} us" for link in (0.525, 1.3)]
    band = {"published": 0.61, "accepted from": 0.55, "to": 1.0}
    rows = [
        {f"packet {packet} ns": packet + link for packet in packets}
        for link, packets in ((0.525, (50, 200, 1_000)), (1.3, (200,)))
    ]
    assert [curve.numbers for curve in figure.curves] == [band | row for row in rows]
    assert figure.curves[0].points[0].y == pytest.approx(50.525 / 0.61)


def test_the_sweep_is_smaller_than_the_experiment_and_quick_has_less_of_it() -> None:
    experiment = on_testbed(
        name="toy", title="Toy", source="s", claims=(CLAIM,), cases=toy_cases, evaluate=toy_evaluate
    )
    assert len(experiment.cases(Setup())) == 2 + (len(GRID) - 1) * SMALL.seeds
    assert len(experiment.cases(Setup(quick=True))) == 1 + (len(QUICK_GRID) - 1) * SMALL.seeds
    assert GRID[0] == QUICK_GRID[0] == PUBLISHED


@pytest.mark.parametrize("system", ordering.SYSTEMS)
def test_a_recorded_receiver_does_the_same_again(system: str) -> None:
    """The benchmark of order times what the receiver did in the simulation, and nothing else."""
    plan, node, tape = ordering.record(system, 200)
    assert node in plan.groups[0]
    assert tape.deliveries >= 200
    assert len(tape.packets) >= tape.deliveries
    assert ordering.play(plan, node, tape) > 0
    tape.events.pop()
    tape.deliveries += 1
    with pytest.raises(SystemExit, match="when recorded"):
        ordering.play(plan, node, tape)
