"""The schedule of a run that is drawn ahead is what the simulator draws as it goes."""

from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.scenario.schedule import schedule
from ordercast.scenario.spec import PhaseSpec, Scenario, WorkloadSpec
from ordercast.scenario.submission import Submission
from ordercast.sim.run import simulate
from ordercast.trace import Kind

PHASES = (
    PhaseSpec(senders=(0, 2), rate_per_s=5000),
    PhaseSpec(at_ms=10, rate_per_s=0),
    PhaseSpec(at_ms=20, senders=(1,)),
    PhaseSpec(at_ms=30, rate_per_s=3000),
)


def simulated(scenario: Scenario) -> list[Submission]:
    return [
        Submission(event.time_ns, event.node, event.groups or (), event.size or 0)
        for event in simulate(scenario).events()
        if event.kind is Kind.SUBMIT
    ]


@pytest.mark.parametrize("jitter", [0.0, 0.3])
@pytest.mark.parametrize("phases", [(), PHASES])
@pytest.mark.parametrize("kind", ["poisson", "periodic"])
def test_the_schedule_is_what_the_simulator_submits(
    kind: str, phases: tuple[PhaseSpec, ...], jitter: float
) -> None:
    scenario = Scenario(
        protocol="unordered",
        groups=3,
        senders=4,
        workload=WorkloadSpec(
            kind=kind,  # type: ignore[arg-type]
            messages=200,
            spread=(0.5, 0.3, 0.2),
            jitter=jitter,
            phase=phases,
        ),
    )
    planned = list(schedule(scenario, scenario.plan()))
    assert len(planned) == 200
    assert planned == simulated(scenario)


def test_a_recorded_schedule_is_what_the_simulator_submits(tmp_path: Path) -> None:
    (tmp_path / "arrivals.csv").write_text("\n".join(str(number / 300) for number in range(40)))
    workload = WorkloadSpec(kind="recorded", file=str(tmp_path / "arrivals.csv"), messages=30)
    scenario = Scenario(protocol="unordered", senders=3, workload=workload)
    times = [event.time_ns for event in simulate(scenario).events() if event.kind is Kind.SUBMIT]
    assert [one.at_ns for one in schedule(scenario, scenario.plan())] == times


def test_of_submissions_at_one_time_that_of_who_has_waited_longest_is_first() -> None:
    fast = PhaseSpec(senders=(0,), rate_per_s=2000)
    workload = WorkloadSpec(kind="periodic", messages=9, jitter=0.0, phase=(fast,))
    scenario = Scenario(protocol="unordered", senders=2, workload=workload)
    planned = list(schedule(scenario, scenario.plan()))
    slow = scenario.plan().senders[1]
    assert planned == simulated(scenario)
    together = [(one.sender, two.sender) for one, two in pairwise(planned) if one.at_ns == two.at_ns]
    assert [first for first, _ in together] == [slow] * 3
