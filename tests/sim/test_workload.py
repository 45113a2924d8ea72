"""Who submits what, when: open-loop sources and closed-loop clients."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from ordercast.core import MILLISECOND, SECOND, LocalError
from ordercast.scenario.arrivals import Arrivals, Poisson, QuasiPeriodic, Recorded
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.build import build_workload, build_world
from ordercast.sim.run import simulate
from ordercast.sim.workload import ClosedLoop, OpenLoop
from ordercast.trace import Event, Kind
from tests.sim.probes import Probe, ProbeWorld


def gaps(arrivals: Arrivals, count: int = 5000) -> list[int]:
    rng = Random("gaps")
    return [gap for _ in range(count) if (gap := arrivals.gap(rng)) is not None]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def test_poisson_gaps_have_the_mean_and_deviation_of_an_exponential() -> None:
    found = gaps(Poisson(1_000_000))
    assert mean(found) == pytest.approx(1_000_000, rel=0.05)
    variance = mean([(gap - 1_000_000) ** 2 for gap in found])
    assert variance**0.5 == pytest.approx(1_000_000, rel=0.06)
    assert min(found) >= 0


def test_quasi_periodic_gaps_are_narrow_around_the_interval() -> None:
    found = gaps(QuasiPeriodic(1_000_000, 0.01))
    assert mean(found) == pytest.approx(1_000_000, rel=0.001)
    assert all(940_000 < gap < 1_060_000 for gap in found)
    assert set(gaps(QuasiPeriodic(1_000_000, 0.0), 20)) == {1_000_000}


def test_a_wide_jitter_never_gives_a_negative_gap() -> None:
    assert min(gaps(QuasiPeriodic(1000, 5.0))) == 0


def test_recorded_arrivals_come_once_through_in_order_of_time() -> None:
    recorded = Recorded([30, 10, 10, 70])
    assert gaps(recorded, 10) == [10, 0, 20, 40]
    assert gaps(recorded, 10) == []


def test_destinations_follow_the_spread() -> None:
    rng, destinations = Random(1), Destinations([0, 1, 2, 3], (0.5, 0.25, 0.25))
    chosen = [destinations.choose(rng) for _ in range(8000)]
    assert all(list(groups) == sorted(set(groups)) for groups in chosen)
    counts = Counter(len(groups) for groups in chosen)
    assert counts[1] == pytest.approx(4000, rel=0.06)
    assert counts[2] == pytest.approx(2000, rel=0.1)
    assert counts[3] == pytest.approx(2000, rel=0.1)
    each = Counter(group for groups in chosen for group in groups)
    assert max(each.values()) < 1.1 * min(each.values())


@pytest.mark.parametrize("spread", [(), (0.0,), (-1.0, 2.0), (1.0, 1.0, 1.0)])
def test_a_spread_that_means_nothing_is_refused(spread: tuple[float, ...]) -> None:
    with pytest.raises(LocalError, match="spread"):
        Destinations([0, 1], spread)


def submissions(world: ProbeWorld) -> list[Event]:
    return [event for event in map(Event._make, world.rows) if event.kind is Kind.SUBMIT]


def open_loop(world: ProbeWorld, messages: int, *arrivals: Arrivals, until: int | None = None) -> OpenLoop:
    workload = OpenLoop(world, Destinations(sorted(world.plan.groups)), messages, 20, arrivals, until)
    workload.start()
    return workload


def test_an_open_loop_submits_just_so_many_by_all_senders_together() -> None:
    world = ProbeWorld(range(3))
    workload = open_loop(world, 50, *(Poisson(1000) for _ in range(3)))
    assert workload.budget.remaining == 50
    world.run(SECOND)
    assert workload.finished
    assert len(submissions(world)) == 50
    assert {event.node for event in submissions(world)} == {0, 1, 2}


def test_an_open_loop_submits_however_slow_the_system_is() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,), cpu={0: Cpu(send_ns=MILLISECOND)})
    open_loop(world, 10, QuasiPeriodic(1000, 0))
    world.run(SECOND)
    assert [event.time_ns for event in submissions(world)] == [1000 * number for number in range(1, 11)]


def test_an_open_loop_ends_when_the_arrivals_do() -> None:
    world = ProbeWorld()
    workload = open_loop(world, 100, Recorded([5, 9]), Recorded([7]))
    world.run(SECOND)
    assert workload.finished
    assert [(event.time_ns, event.node) for event in submissions(world)] == [(5, 0), (7, 1), (9, 0)]


def test_an_open_loop_ends_at_its_time() -> None:
    world = ProbeWorld()
    workload = open_loop(world, 100, QuasiPeriodic(100, 0), QuasiPeriodic(150, 0), until=450)
    world.run(SECOND)
    assert workload.finished
    assert max(event.time_ns for event in submissions(world)) == 450
    assert len(submissions(world)) == 4 + 3


def test_a_message_at_a_dead_sender_is_lost_and_counts() -> None:
    world = ProbeWorld()
    world.crash(0)
    workload = open_loop(world, 40, QuasiPeriodic(100, 0), QuasiPeriodic(100, 0))
    world.run(SECOND)
    assert workload.finished
    assert len(submissions(world)) == 20


def test_payloads_have_the_size_asked_for_and_differ() -> None:
    for size in (0, 3, 8, 20):
        world = ProbeWorld((0,))
        workload = OpenLoop(world, Destinations([0]), 10, size, [Poisson(100)])
        workload.start()
        world.run(SECOND)
        found = [event for event in map(Event._make, world.rows) if event.kind is Kind.DELIVER]
        assert {event.size for event in found} == {size}
        assert len({event.digest for event in found}) == (10 if size else 1)


def closed_loop(world: ProbeWorld, messages: int, outstanding: int = 1, timeout: int = SECOND) -> ClosedLoop:
    spec = WorkloadSpec(
        kind="closed", messages=messages, bytes=8, outstanding=outstanding, timeout_ms=timeout / MILLISECOND
    )
    workload = ClosedLoop(world, spec)
    workload.start()
    return workload


def completions(world: ProbeWorld) -> list[Event]:
    return [event for event in map(Event._make, world.rows) if event.kind is Kind.COMPLETE]


@pytest.mark.parametrize("outstanding", [1, 3])
def test_a_closed_loop_keeps_so_many_under_way_and_no_more(outstanding: int) -> None:
    world = ProbeWorld((0, 1, 2), groups={0: (1, 2)}, senders=(0,), delay=100_000)
    workload = closed_loop(world, 60, outstanding)
    world.run(SECOND)
    under_way, seen = set[int | None](), Counter[int]()
    for event in map(Event._make, world.rows):
        if event.kind is Kind.SUBMIT:
            under_way.add(event.message)
            seen[len(under_way)] += 1
        elif event.kind is Kind.COMPLETE:
            under_way.remove(event.message)
    assert workload.finished
    assert max(seen) == outstanding
    assert seen[outstanding] >= 60 - outstanding
    assert len(completions(world)) == 60


def test_a_client_waits_for_the_answers_of_all_receivers() -> None:
    slow = Cpu(receive_ns=50_000)
    world = ProbeWorld((0, 1, 2), groups={0: (1, 2)}, senders=(0,), cpu={2: slow})
    closed_loop(world, 5)
    world.run(SECOND)
    last: dict[int | None, int] = {}
    for event in map(Event._make, world.rows):
        if event.kind is Kind.DELIVER:
            last[event.message] = event.time_ns
    for event in completions(world):
        assert event.time_ns == last[event.message] + 100
        assert event.submitted_ns is not None
        assert event.time_ns - event.submitted_ns == 100 + 50_000 + 100


def test_the_answer_takes_the_time_that_the_clients_cpu_needs() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,), cpu=Cpu(receive_ns=2000, send_ns=300))
    closed_loop(world, 5)
    world.run(SECOND)
    round_trip = 2 * (300 + 100 + 2000)
    assert [event.time_ns - (event.submitted_ns or 0) for event in completions(world)] == [round_trip] * 5


def test_a_client_beside_the_receiver_answers_itself_without_the_network() -> None:
    world = ProbeWorld((0,))
    workload = closed_loop(world, 20, outstanding=2)
    world.run(SECOND)
    assert workload.finished
    assert len(completions(world)) == 20


def test_a_client_gives_up_after_its_timeout_and_goes_on() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,))
    world.crash(1)
    workload = closed_loop(world, 4, timeout=MILLISECOND)
    world.run(SECOND)
    assert workload.finished
    assert (workload.timed_out, len(completions(world))) == (4, 0)
    times = [event.time_ns for event in submissions(world)]
    assert {after - before for before, after in pairwise(times)} == {MILLISECOND}


def test_an_answer_after_the_timeout_does_not_count() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,), delay=2 * MILLISECOND)
    workload = closed_loop(world, 3, timeout=MILLISECOND)
    world.run(SECOND)
    assert (workload.timed_out, len(completions(world)), len(submissions(world))) == (3, 0, 3)


def test_a_client_comes_back_with_its_host_and_its_window_is_as_wide_as_before() -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,))
    workload = closed_loop(world, 200, outstanding=2, timeout=MILLISECOND)
    world.run(20_000)
    world.crash(0)
    world.run(5 * MILLISECOND)
    before = len(submissions(world))
    world.restart(0)
    world.run(SECOND)
    assert workload.finished
    assert len(submissions(world)) > before
    lost = 200 - len(submissions(world))
    assert 0 < lost <= 2 * 5  # each of the two tried once a timeout while the host was down
    assert len(completions(world)) + workload.timed_out == len(submissions(world))


def test_several_clients_share_the_budget() -> None:
    world = ProbeWorld((0, 1, 2), groups={0: (0,)}, senders=(1, 2))
    workload = closed_loop(world, 31, outstanding=3)
    world.run(SECOND)
    assert workload.finished
    assert len(submissions(world)) == 31


@pytest.mark.parametrize("kind", ["poisson", "periodic", "closed"])
def test_a_workload_whose_only_sender_is_dead_ends(kind: str) -> None:
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,))
    world.crash(0)
    if kind == "closed":
        workload: OpenLoop | ClosedLoop = closed_loop(world, 20, timeout=MILLISECOND)
    else:
        workload = open_loop(world, 20, Poisson(1000) if kind == "poisson" else QuasiPeriodic(1000))
    world.run(SECOND)
    assert workload.finished
    assert submissions(world) == []


def test_a_workload_of_nothing_is_finished_at_once() -> None:
    for workload in (open_loop(ProbeWorld(), 0, Poisson(1), Poisson(1)), closed_loop(ProbeWorld(), 0)):
        assert workload.finished
        workload.world.run(SECOND)
        assert workload.world.submitted == 0


def test_a_swamped_client_tries_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.sim.world.BACKLOG_MAX", 1)
    world = ProbeWorld((0, 1), groups={0: (1,)}, senders=(0,))
    world.probe(0).on_submit = Probe.refuse
    workload = closed_loop(world, 6, outstanding=2, timeout=MILLISECOND)
    world.run(SECOND)
    assert workload.finished
    assert world.refused > 0


def recorded(tmp_path: Path, text: str, senders: int = 1, messages: int = 100) -> list[tuple[int, int]]:
    """The submissions (time, node) of a recorded workload."""
    path = tmp_path / "arrivals.csv"
    path.write_text(text)
    spec = WorkloadSpec(kind="recorded", file=str(path), messages=messages)
    scenario = Scenario(protocol="unordered", receivers=1, senders=senders, workload=spec)
    run = simulate(scenario)
    return [(event.time_ns, event.node) for event in run.events() if event.kind is Kind.SUBMIT]


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    assert recorded(tmp_path, "0.001\n0.0005\n0.002\n") == [
        (500_000, 1),
        (MILLISECOND, 1),
        (2 * MILLISECOND, 1),
    ]


def test_a_recording_may_have_a_header_more_columns_and_blank_lines(tmp_path: Path) -> None:
    assert recorded(tmp_path, "seconds,what\n0.001,a\n\n0.002,b\n") == [
        (MILLISECOND, 1),
        (2 * MILLISECOND, 1),
    ]


def test_a_recording_may_have_dates_and_times_which_count_from_the_first(tmp_path: Path) -> None:
    text = "TIMESTAMP,what\n2023-11-16 18:15:46.6805900,a\n2023-11-16T18:15:46.682,b\n"
    assert recorded(tmp_path, text) == [(0, 1), (1_410_000, 1)]


def test_several_senders_follow_a_recording_together(tmp_path: Path) -> None:
    times = [number * MILLISECOND for number in range(1, 8)]
    found = recorded(tmp_path, "\n".join(str(time / SECOND) for time in times), senders=3)
    assert found == [(time, 1 + index % 3) for index, time in enumerate(times)]


def test_a_recording_is_cut_at_the_number_of_messages(tmp_path: Path) -> None:
    assert len(recorded(tmp_path, "0.001\n" * 9, senders=2, messages=4)) == 4


def test_an_empty_recording_is_a_run_without_messages(tmp_path: Path) -> None:
    assert recorded(tmp_path, "") == recorded(tmp_path, "seconds\n") == []


@pytest.mark.parametrize("text", ["0.1\nword\n", "0.1\nnan\n", "0.1\ninf\n", "-0.1\n", "\x00\n1\n2\nx\n"])
def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(LocalError, match=r"arrivals\.csv: not a list of arrival times"):
        recorded(tmp_path, text)


def test_a_missing_recording_is_refused_by_name(tmp_path: Path) -> None:
    spec = WorkloadSpec(kind="recorded", file=str(tmp_path / "nowhere.csv"))
    scenario = Scenario(protocol="unordered", workload=spec)
    world = build_world(scenario, scenario.plan())
    with pytest.raises(LocalError, match=r"nowhere\.csv"):
        build_workload(scenario, world)


def test_the_rate_of_a_scenario_is_that_of_each_sender() -> None:
    spec = WorkloadSpec(kind="periodic", rate_per_s=2000, jitter=0, messages=40)
    run = simulate(Scenario(protocol="unordered", receivers=1, senders=2, workload=spec))
    submits = [event for event in run.events() if event.kind is Kind.SUBMIT]
    assert submits[-1].time_ns == 20 * SECOND // 2000
