"""One scenario in the simulator and on real processes: the same verdicts, and defects that show in both."""

from pathlib import Path

import msgspec
import pytest

from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.file import load_scenario
from ordercast.scenario.recorded_run import scenario_of
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import simulate
from tests.deep import deep_after
from tests.live.broken_child import breaking

EXAMPLES = Path(__file__).parents[2] / "examples"
TRIES = 5
SETTLE_MS = 5_000
"""A protocol that loses nothing has time to deliver all: on a busy machine an election may take a while."""
SUSPECT_NS = 150_000_000
"""Crashes are found within the workload, and processes that only wait for a CPU are seldom taken for dead."""
SELDOM_NS = 1_000_000_000
"""Where nothing crashes: a sequencer that is removed takes messages with it that were to meet. Not longer:
receivers look for gaps that nothing needs six times in it, and must do so before the run has settled."""


@pytest.mark.parametrize("name", deep_after(1, ["sequencer-crash", "leader-crash", "partition"]))
def test_an_example_has_the_same_verdict_simulated_and_live(name: str) -> None:
    scenario = load_scenario(EXAMPLES / f"{name}.toml")
    if scenario.protocol == "hydra":
        options = scenario.options | {"suspect_ns": SUSPECT_NS}
        scenario = msgspec.structs.replace(scenario, options=options)
    else:
        scenario = msgspec.structs.replace(scenario, settle_ms=SETTLE_MS)
    simulated = simulate(scenario)
    live, _ = run_live(scenario)
    assert live.violations == simulated.violations == []
    assert live.hindrance == simulated.hindrance == ""
    assert live.beyond_contract == simulated.beyond_contract
    assert live.description.complete and simulated.description.complete
    assert live.summary().submitted == simulated.summary().submitted == scenario.workload.messages
    if scenario.protocol == "atomic_multicast":
        assert live.summary().delivered == simulated.summary().delivered, "nothing may be lost"


BAD = {"hasty": Conditions(reordering=0.3, reorder_us=5_000), "forgetful": Conditions(loss=0.1)}
LOADS = {"hasty": (300, 1_000), "forgetful": (600, 100)}
"""How many messages a defect needs to show, however busy the machine is, and how many a second of a sender.
Hasty receivers need messages that meet. Forgetful ones need several gaps, so messages in datagrams of their
own: what piles up while a process waits for a CPU goes in one, and is lost together or not at all."""


def broken(name: str) -> Scenario:
    """Two senders and two sequencers, with enough traffic for all of them to meet."""
    bad, (messages, rate) = BAD[name], LOADS[name]
    return Scenario(
        protocol="hydra",
        name=name,
        seed=3,
        senders=2,
        options={"suspect_ns": SELDOM_NS, "replicas": 1, "repair": False},
        network=NetworkSpec(
            latency=UniformSpec(50, 2_000),
            loss=bad.loss,
            reordering=bad.reordering,
            reorder_us=bad.reorder_us,
        ),
        workload=WorkloadSpec(messages=messages, rate_per_s=rate),
        settle_ms=1_000,
    )


def shown_live(scenario: Scenario, found: str, folder: Path) -> tuple[LiveRun, Path]:
    """A live run in which a defect shows. Real time decides whether two packets meet: a few tries are due."""
    for attempt in range(TRIES):
        run, trace = run_live(scenario, folder / str(attempt))
        if found in {violation.property for violation in run.violations}:
            assert trace is not None
            return run, trace
    pytest.fail(f"no {found} in {TRIES} runs")


@pytest.mark.parametrize(
    ("name", "found"), deep_after(1, [("forgetful", "drop-detection"), ("hasty", "total-order")])
)
def test_a_defect_that_shows_live_shows_in_the_simulator_from_the_trace_and_back(
    name: str, found: str, tmp_path: Path
) -> None:
    with breaking(name):
        live, folder = shown_live(broken(name), found, tmp_path / "live")
        seen = live.account.disorder if name == "hasty" else live.account.missing
        assert seen > 0, "the applications see it too"
        again = simulate(scenario_of(folder))
        assert found in {violation.property for violation in again.violations}
        shown_live(scenario_of(again.write(tmp_path / "again")), found, tmp_path / "back")
    mended = simulate(scenario_of(folder))
    assert mended.violations == [], "without the defect the same submissions do no harm"
    assert mended.summary().submitted == live.summary().submitted
