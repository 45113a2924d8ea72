"""Section 7.4 of Hydra: the data centre is the paper's, its links are measured, the rest is arithmetic."""

from dataclasses import replace

import msgspec
import pytest

from ordercast.core import Delivered, LocalError, Message, Node, NodeId
from ordercast.experiments import Case, Results, Setup, all_experiments
from ordercast.experiments.hydra import fat_tree as data_centre
from ordercast.pipeline.cases import CaseResult
from ordercast.pipeline.functions import call
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import LinksSpec, Scenario
from ordercast.sim.fat_tree import FatTreeSizes
from tests.experiments.relay import Carry, Receiver, relay_plan

EXPERIMENTS = {experiment.name: experiment for experiment in all_experiments()}
SHORT_MS = 0.5


def scenario(sequencers: int = 1, gbps: float = data_centre.LIGHT_GBPS, *, bursts: bool = False) -> Scenario:
    return data_centre.data_centre(
        sequencers=sequencers,
        route="random",
        receiver_gbps=gbps,
        bursts=bursts,
        measured_ms=SHORT_MS,
        seed=1,
    )


def test_the_data_centre_is_that_of_the_paper() -> None:
    found = scenario()
    links = found.network.latency
    assert isinstance(links, LinksSpec)
    sizes = FatTreeSizes(
        links.pods, links.racks_a_pod, links.aggregations_a_pod, links.cores, links.servers_a_rack
    )
    assert (sizes.servers, sizes.switches) == (2560, 112)
    assert (links.host_gbps, links.fabric_gbps) == (1.0, 10.0)
    assert (found.groups, found.receivers, found.workload.kind) == (16, 3, "periodic")
    assert (found.cpu, found.role_cpu, found.bundle_bytes) == (Cpu(), {}, 0)


def test_the_load_does_not_depend_on_the_number_of_sequencers() -> None:
    one, eight = scenario(1), scenario(8)
    assert (one.workload, one.network) == (eight.workload, eight.network)
    assert [len([node for node in s.plan().nodes if node.role == "switch"]) for s in (one, eight)] == [1, 8]


def test_full_load_is_what_the_uplinks_of_one_rack_carry() -> None:
    copies = data_centre.FULL_GBPS * 16 * 3
    background = data_centre.BACKGROUND_LOAD * 40
    assert copies + background == pytest.approx(4 * 10.0)


def test_bursts_go_to_the_rack_of_the_first_sequencer() -> None:
    found = scenario(8, bursts=True)
    background = found.network.background
    assert background is not None
    assert background.burst is not None
    first = min(node.host for node in found.plan().nodes if node.role == "switch")
    assert background.burst.host == first
    assert background.burst.gbps == 2 * 4 * 10.0


@pytest.mark.deep
def test_one_relay_saturates_links_and_eight_do_not() -> None:
    loaded = scenario(gbps=data_centre.FULL_GBPS)
    one, eight = (
        data_centre.observe(loaded, SHORT_MS, relay_plan(loaded.deployment(), relays)) for relays in (1, 8)
    )
    assert [len(layer) for layer in (one.aggregation, one.core)] == [512, 256]
    assert one.aggregation == sorted(one.aggregation, reverse=True)
    assert one.aggregation[0] > 0.95
    # Only the four uplinks of one rack carry more than the rest.
    assert one.aggregation[3] > 0.75 > 0.55 > one.aggregation[4]
    assert max(eight.aggregation[0], eight.core[0]) < 0.5
    assert one.delivered == 1.0


def test_latencies_are_those_of_an_idle_network_at_light_load() -> None:
    light = scenario()
    found = data_centre.observe(light, SHORT_MS, relay_plan(light.deployment(), 1))
    # Two server links of 12 us and at most eight others of 1.2 us, each with 1 us of cable.
    least, most = 2 * 12_000, 2 * 12_500 + 8 * 1_250 + 10 * 1_000
    assert found.latencies_ns == sorted(found.latencies_ns)
    assert least < found.latencies_ns[0]
    assert found.latencies_ns[len(found.latencies_ns) // 2] < most
    packets = data_centre.LIGHT_GBPS * 1e9 / 12_000 * 48 * SHORT_MS / 1e3
    assert len(found.latencies_ns) == pytest.approx(packets, rel=0.1)


class Stutterer(Receiver):
    """Delivers everything twice."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Carry)
        for _ in range(2):
            self.env.deliver(Delivered(message.payload, message.groups, message.sender))


def test_a_run_that_breaks_a_promise_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_centre, "BACKGROUND_LOAD", 0.0)
    quiet = scenario()
    plan = relay_plan(quiet.deployment(), 1)
    broken = replace(plan, nodes=(Node(0, "receiver", 0, Stutterer), *plan.nodes[1:]))
    assert data_centre.observe(quiet, SHORT_MS, plan).delivered == 1.0
    with pytest.raises(LocalError, match="a promise was broken"):
        data_centre.observe(quiet, SHORT_MS, broken)


def test_hydra_runs_in_the_data_centre_and_repeats_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_centre, "WARM_MS", 0.5)
    case = Case(
        parameters={"sequencers": 8, "route": "congestion", "bursts": True},
        seed=3,
        function="ordercast.experiments.hydra.network:latency",
        arguments={"measured_ms": SHORT_MS},
    )
    found = call(case).numbers
    assert found == call(case).numbers
    assert 0.9 <= found["delivered"] <= 1.0
    assert 24_000 < found["latency_q01_ns"] < found["latency_q50_ns"] < found["latency_q99_ns"]


@pytest.mark.parametrize(("name", "quick", "full"), [("hydra-7", 2, 6), ("hydra-8", 4, 12)])
def test_cases_are_one_a_deployment_and_seed(name: str, quick: int, full: int) -> None:
    sizes = [len(EXPERIMENTS[name].cases(Setup(quick=quick))) for quick in (True, False)]
    assert sizes == [quick, full]
    cases = EXPERIMENTS[name].cases(Setup())
    assert len({case.name() for case in cases}) == len(cases)
    assert {case.seed for case in cases} == {0, 1, 2}
    assert msgspec.json.decode(msgspec.json.encode(cases), type=list[Case]) == cases


def result(case: Case, values: dict[str, float]) -> CaseResult:
    return CaseResult(case=case, name=case.name(), status="kept", error=None, values=values)


def test_the_worst_seed_counts_for_links() -> None:
    experiment = EXPERIMENTS["hydra-7"]
    found = []
    for case in experiment.cases(Setup()):
        if case.parameters["sequencers"] == 1:
            values = {"aggregation_000": 1.0 - case.seed / 100, "aggregation_001": 0.97, "core_000": 0.6}
        else:
            values = {"aggregation_000": 0.2, "aggregation_001": 0.1, "core_000": 0.3 + case.seed / 100}
        found.append(result(case, values))
    outcome = experiment.evaluate(Results(found))
    assert {m.claim: m.value for m in outcome.measurements} == {
        "hydra.net.link_utilisation_single": pytest.approx(0.98),
        "hydra.net.link_utilisation_eight": pytest.approx(0.32),
    }
    assert outcome.measurements[0].note == "lowest of 3 seeds; 2 to 2 links above 0.95"
    (figure,) = outcome.figures
    assert [len(curve.points) for curve in figure.curves] == [2, 1, 2, 1]
    first = figure.curves[0].points[0]
    assert (first.x, first.y, first.low, first.high) == (1.0, 0.99, 0.98, 1.0)


def test_medians_are_divided_seed_by_seed() -> None:
    experiment = EXPERIMENTS["hydra-8"]
    found = []
    for case in experiment.cases(Setup()):
        one, bursts = case.parameters["sequencers"] == 1, case.parameters["bursts"]
        aware = case.parameters["route"] == "congestion"
        median = (50_000.0 if not bursts else 700_000.0 + 70_000 * case.seed) if one else 70_000.0
        values = {f"latency_q{q:02d}_ns": median + (q - 50) * (1 if aware else 10) for q in range(1, 100)}
        found.append(result(case, values | {"delivered": 0.7 if one and bursts else 0.95}))
    outcome = experiment.evaluate(Results(found))
    (measured,) = outcome.measurements
    assert measured.claim == "hydra.net.congestion_median"
    assert measured.value == pytest.approx(11.0)
    assert measured.note.startswith("10 to 12 over 3 seeds; bursts make one sequencer 15.4 times slower")
    assert measured.note.endswith("one sequencer delivered 70% of all, eight 95%")
    (figure,) = outcome.figures
    assert [curve.label for curve in figure.curves] == [
        "one sequencer, no bursts",
        "one sequencer",
        "eight sequencers",
        "eight sequencers, congestion-aware routing",
    ]
    middle = figure.curves[2].points[49]
    assert middle.x == pytest.approx(70.0)
    assert middle.y == 0.5
    assert figure.references[0].x == pytest.approx(70.0)
