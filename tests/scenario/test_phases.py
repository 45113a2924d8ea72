"""Phases of a workload: rates by sender and by time."""

from pathlib import Path

import pytest

from ordercast.core import MILLISECOND, SECOND, LocalError, Nanos
from ordercast.scenario.file import load_scenario
from ordercast.scenario.recorded_run import scenario_of
from ordercast.scenario.schedule import schedule
from ordercast.scenario.spec import PhaseSpec, Scenario, WorkloadSpec
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.run import simulate
from ordercast.toml_file import KeyedError
from ordercast.trace import Kind

OPEN = ["poisson", "periodic"]


def scenario(kind: str, *phases: PhaseSpec, senders: int = 2, messages: int = 100_000) -> Scenario:
    spec = WorkloadSpec(
        kind=kind,  # type: ignore[arg-type]
        messages=messages,
        rate_per_s=2000,
        jitter=0.2,
        phase=phases,
    )
    return Scenario(protocol="unordered", receivers=1, senders=senders, seed=5, workload=spec)


def times(found: Scenario) -> list[list[Nanos]]:
    """When each sender submits."""
    plan = found.plan()
    planned = list(schedule(found, plan))
    return [[one.at_ns for one in planned if one.sender == sender] for sender in plan.senders]


def count(submissions: list[Nanos], start_ms: int, end_ms: int) -> int:
    return sum(start_ms * MILLISECOND < at <= end_ms * MILLISECOND for at in submissions)


SILENCE = PhaseSpec(at_ms=4000, rate_per_s=0)


@pytest.mark.parametrize("kind", OPEN)
def test_each_sender_has_the_rate_of_each_phase(kind: str) -> None:
    one, other = times(
        scenario(
            kind,
            PhaseSpec(senders=(1,), rate_per_s=500),
            PhaseSpec(at_ms=1000, rate_per_s=4000),
            PhaseSpec(at_ms=2000, senders=(0,), rate_per_s=0),
            PhaseSpec(at_ms=3000, senders=(0,)),
            PhaseSpec(at_ms=3000, senders=(1,), rate_per_s=1000),
            SILENCE,
        )
    )
    seconds = [(at, at + 1000) for at in range(0, 4000, 1000)]
    # Four standard deviations of a Poisson count of 500 or more.
    within = 0.18 if kind == "poisson" else 0.02
    assert [count(one, *second) for second in seconds] == pytest.approx([2000, 4000, 0, 2000], rel=within)
    assert [count(other, *second) for second in seconds] == pytest.approx([500, 4000, 4000, 1000], rel=within)
    assert max(one + other) <= 4 * SECOND


@pytest.mark.parametrize("kind", OPEN)
def test_one_rate_all_the_time_is_no_phase(kind: str) -> None:
    plain = times(scenario(kind, messages=3000))
    phased = times(scenario(kind, PhaseSpec(), PhaseSpec(at_ms=300), messages=3000))
    assert [len(one) for one in phased] == [len(one) for one in plain]
    for one, other in zip(plain, phased, strict=True):
        # Each gap is rounded by itself without phases, and the sum with them.
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= len(one)


@pytest.mark.parametrize("kind", OPEN)
def test_a_new_rate_counts_at_once(kind: str) -> None:
    found = times(scenario(kind, PhaseSpec(rate_per_s=0.001), PhaseSpec(at_ms=100, rate_per_s=1000), SILENCE))
    for submissions in found:
        assert count(submissions, 0, 100) == 0
        assert submissions[0] < 110 * MILLISECOND


def test_a_periodic_source_that_was_silent_goes_on_where_it_was() -> None:
    phases = (PhaseSpec(at_ms=2.25, rate_per_s=0), PhaseSpec(at_ms=50))
    spec = WorkloadSpec(kind="periodic", messages=6, rate_per_s=1000, jitter=0, phase=phases)
    (found,) = times(Scenario(protocol="unordered", workload=spec))
    assert found == [round(at * MILLISECOND) for at in (1, 2, 50.75, 51.75, 52.75, 53.75)]


def test_of_phases_at_one_time_the_last_counts() -> None:
    first, last = PhaseSpec(rate_per_s=4000), PhaseSpec(senders=(1,), rate_per_s=0)
    one, other = times(scenario("periodic", first, last, SILENCE))
    assert count(one, 0, 1000) == pytest.approx(4000, rel=0.02)
    assert other == []


@pytest.mark.parametrize("kind", OPEN)
def test_a_run_is_over_when_all_are_silent_for_good(kind: str) -> None:
    run = simulate(scenario(kind, PhaseSpec(at_ms=50, rate_per_s=0)))
    submitted = [event.time_ns for event in run.events() if event.kind is Kind.SUBMIT]
    assert 100 < len(submitted) < 300
    assert max(submitted) <= 50 * MILLISECOND
    assert run.hindrance == ""
    assert run.duration_ns < SECOND


def test_a_run_with_phases_can_be_recorded_and_run_again(tmp_path: Path) -> None:
    run = simulate(scenario("poisson", PhaseSpec(at_ms=5, rate_per_s=200), messages=40))
    folder = run.write(tmp_path)
    again = simulate(scenario_of(folder))
    assert again.scenario.workload.phase == ()
    assert again.description.trace_hash == run.description.trace_hash


def write(folder: Path, phases: str, workload: str = 'kind = "periodic"\n') -> Path:
    path = folder / "scenario.toml"
    path.write_text(f'protocol = "unordered"\nsenders = 4\n[workload]\n{workload}{phases}')
    return path


def test_phases_are_read_from_a_file(tmp_path: Path) -> None:
    text = "[[workload.phase]]\nrate_per_s = 10\n[[workload.phase]]\nat_ms = 500\nsenders = [3]\n"
    assert load_scenario(write(tmp_path, text)).workload.phase == (
        PhaseSpec(rate_per_s=10),
        PhaseSpec(at_ms=500, senders=(3,)),
    )


BAD = {
    "of a closed workload": (
        'kind = "closed"\n',
        "[[workload.phase]]\nat_ms = 1\n",
        5,
        "workload.phase[0]: a closed workload has no rate, so it cannot have phases",
    ),
    "out of order": (
        "",
        "[[workload.phase]]\nat_ms = 20\n[[workload.phase]]\nrate_per_s = 1\nat_ms = 10\n",
        8,
        "workload.phase[1].at_ms: phases must be in order of time, but 10 ms follows 20 ms",
    ),
    "of a rate too low": (
        "",
        "[[workload.phase]]\nat_ms = 20\nrate_per_s = 0.0001\n",
        6,
        "workload.phase[0].rate_per_s: a rate must be 0 or at least 0.001, not 0.0001",
    ),
    "of a negative rate": (
        "",
        "[[workload.phase]]\nrate_per_s = -1\n",
        5,
        "workload.phase[0].rate_per_s: expected `float` >= 0.0",
    ),
    "of nobody": (
        "",
        "[[workload.phase]]\nsenders = []\n",
        5,
        "workload.phase[0].senders: expected `array` of length >= 1",
    ),
    "with a key that is not there": (
        "",
        "[[workload.phase]]\nfor_ms = 10\n",
        5,
        "workload.phase[0].for_ms: unknown key",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_phase_that_cannot_be_is_refused_by_line_and_key(tmp_path: Path, case: str) -> None:
    workload, phases, line, said = BAD[case]
    path = write(tmp_path, phases, workload)
    with pytest.raises(LocalError) as refused:
        load_scenario(path)
    assert str(refused.value) == f"{path}, line {line}: {said}"


@pytest.mark.parametrize("kind", ["closed", "recorded", "trace"])
def test_only_sources_with_a_rate_have_phases(kind: str) -> None:
    with pytest.raises(KeyedError, match="no rate, so it cannot have phases"):
        WorkloadSpec(kind=kind, file="somewhere", phase=(PhaseSpec(),))  # type: ignore[arg-type]


def test_a_sender_that_is_not_there_is_refused_by_key() -> None:
    found = scenario("poisson", PhaseSpec(), PhaseSpec(senders=(1, 2)))
    world = build_world(found, found.plan())
    said = r"workload\.phase\[1\]\.senders: there is no sender 2; the 2 senders are numbered from 0"
    with pytest.raises(KeyedError, match=said):
        build_workload(found, world)
    with pytest.raises(KeyedError, match=said):
        list(schedule(found, found.plan()))
