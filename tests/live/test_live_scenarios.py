"""Scenarios on real processes: the simulator's submissions, real faults, and a trace that is judged."""

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from ordercast.core import MILLISECOND, LocalError
from ordercast.judge import audit
from ordercast.lab.trial.differences import ignored
from ordercast.lab.trial.hosts import Hosts
from ordercast.lab.trial.messages import Life, Report
from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import Crash, Heal, Partition, Pause, Restart
from ordercast.scenario.recorded_run import scenario_of, submissions_of
from ordercast.scenario.schedule import schedule
from ordercast.scenario.spec import (
    ClocksSpec,
    ConstantSpec,
    LinksSpec,
    NetworkSpec,
    PhaseSpec,
    Scenario,
    UniformSpec,
    WorkloadSpec,
)
from ordercast.scenario.submission import Submission
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind, events_of, find_runs
from tests.live.flowing import run_flowing
from tests.live.processes import alive, until

SEQUENCER = 4
"""The host of the first of two, after three receivers and a sender."""


def hydra(**changes: object) -> Scenario:
    described: dict[str, object] = {
        "options": {"suspect_ns": 100_000_000},
        "workload": WorkloadSpec(messages=150, rate_per_s=300),
        "settle_ms": 700,
        "seed": 5,
    }
    return Scenario(protocol="hydra", **(described | changes))  # type: ignore[arg-type]


def rows(run: LiveRun, *kinds: Kind) -> list[Event]:
    return [event for event in events_of(run.table) if event.kind in kinds]


def what(submissions: list[Submission]) -> list[tuple[object, ...]]:
    """Who submitted what to whom; when is another matter."""
    return [(one.sender, one.groups, one.size) for one in submissions]


def of_each_sender(submissions: list[tuple[object, ...]]) -> dict[object, list[tuple[object, ...]]]:
    """The order of submissions at each sender; that of different ones depends on clocks."""
    return {sender: [one for one in submissions if one[0] == sender] for sender, *_ in submissions}


def test_a_run_with_a_bad_network_and_bad_clocks_is_judged_by_both_judges(tmp_path: Path) -> None:
    scenario = hydra(
        network=NetworkSpec(loss=0.05, duplication=0.05, reordering=0.1),
        clocks=ClocksSpec(skew_us=20_000, drift_ppm=100),
        senders=2,
        bundle_bytes=1000,
    )
    run, folder = run_live(scenario, tmp_path)
    assert folder is not None
    assert run.violations == [] and run.hindrance == ""
    assert len(rows(run, Kind.SUBMIT)) == 150
    assert run.summary().packets_lost > 0
    (stored,) = find_runs(tmp_path)
    assert stored.description.source == "live" and stored.description.complete
    assert audit(stored.description, stored.table()).violations == []
    assert of_each_sender(what(submissions_of(folder))) == of_each_sender(
        what(list(schedule(scenario, scenario.plan())))
    )


def test_a_partition_in_force_hinders_a_run_even_if_its_network_becomes_good() -> None:
    scenario = Scenario(
        protocol="unordered",
        network=NetworkSpec(loss=0.3),
        workload=WorkloadSpec(messages=20, rate_per_s=200),
        fault=(Partition(at_ms=1, sides=((0,), (1, 2, 3))),),
        settle_ms=300,
    )
    run, _ = run_live(scenario)
    assert run.hindrance == simulate(scenario).hindrance == "a partition was still in force"
    assert not run.description.complete


def test_senders_keep_to_the_phases_of_a_workload(tmp_path: Path) -> None:
    phases = (
        PhaseSpec(senders=(1,), rate_per_s=0),
        PhaseSpec(at_ms=400, senders=(1,), rate_per_s=400),
        PhaseSpec(at_ms=800, rate_per_s=0),
    )
    spec = WorkloadSpec(kind="periodic", messages=1000, rate_per_s=100, jitter=0.1, phase=phases)
    scenario = Scenario(protocol="unordered", senders=2, workload=spec)
    run, folder = run_live(scenario, tmp_path)
    assert folder is not None
    assert run.violations == [] and run.hindrance == ""
    planned = list(schedule(scenario, scenario.plan()))
    assert 200 < len(planned) < 280
    assert of_each_sender(what(submissions_of(folder))) == of_each_sender(what(planned))
    first: dict[int, int] = {}
    for submission in submissions_of(folder):
        first.setdefault(submission.sender, submission.at_ns)
    early, late = sorted(first.values())
    assert late - early > 300 * MILLISECOND, "one sender is silent at first"


def test_a_killed_sequencer_is_replaced_and_the_silence_is_told() -> None:
    scenario = hydra(
        workload=WorkloadSpec(messages=400, rate_per_s=400),
        fault=(Crash(at_ms=200, host=SEQUENCER), Restart(at_ms=600, host=SEQUENCER, state="lost")),
    )
    run, folder = run_live(scenario)
    assert folder is None
    assert run.violations == []
    crashes = [(event.node, event.label) for event in rows(run, Kind.CRASH, Kind.RECOVER)]
    assert crashes == [(SEQUENCER, None), (SEQUENCER, "lost")]
    (silence,) = run.silences
    assert silence.host == SEQUENCER
    assert sorted(silence.receivers) == [0, 1, 2]
    assert silence.longest_ns is not None and silence.longest_ns > 0
    after = silence.time_ns + silence.longest_ns + run._conducted.started_ns
    assert any(event.time_ns >= after for event in rows(run, Kind.DELIVER)), "they went on"


def test_a_killed_receiver_comes_back_with_what_it_saved() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        senders=2,
        workload=WorkloadSpec(messages=150, rate_per_s=150),
        settle_ms=700,
        fault=(Crash(at_ms=150, host=1), Restart(at_ms=400, host=1)),
    )
    run, _ = run_live(scenario)
    assert run.violations == [] and run.hindrance == ""
    assert [(e.node, e.kind, e.label) for e in rows(run, Kind.CRASH, Kind.RECOVER)] == [
        (1, Kind.CRASH, None),
        (1, Kind.RECOVER, "saved"),
    ]
    delivered = Counter(event.node for event in rows(run, Kind.DELIVER))
    assert set(delivered.values()) == {150}


def test_a_killed_sender_makes_up_for_nothing_and_repeats_nothing() -> None:
    scenario = Scenario(
        protocol="unordered",
        workload=WorkloadSpec(kind="periodic", messages=400, rate_per_s=80),  # for five seconds
        settle_ms=300,
        fault=(Crash(at_ms=100, host=3), Restart(at_ms=300, host=3)),
    )
    run = run_flowing(scenario)
    assert run.violations == []
    mine = [event for event in events_of(run.table) if event.node == 3]
    recovery = [event.kind for event in mine].index(Kind.RECOVER)
    assert recovery > 1 and len(mine) > recovery + 1, "it submitted before and after"
    messages = [event.message for event in mine if event.kind is Kind.SUBMIT]
    assert len(set(messages)) == len(messages) < 400


def test_a_host_that_comes_back_hears_of_its_own_senders_alone() -> None:
    hosts = Hosts(cast(Any, None), lambda host: None)
    hosts._past = [
        (0, Report(submitted={3: 7})),
        (1, Report(submitted={4: 9})),
        (0, Report(submitted={3: 8})),
    ]
    assert hosts.submitted(0) == {3: 8}
    assert hosts.submitted(2) == {}


def test_a_run_survives_a_pause_and_a_partition() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        network=NetworkSpec(latency=ConstantSpec(2_000)),  # so that it is not over before they come
        workload=WorkloadSpec(kind="closed", messages=120),
        settle_ms=3000,
        fault=(
            Pause(at_ms=100, host=2, for_ms=300),
            Partition(at_ms=200, sides=((0,), (1, 2, 3))),
            Heal(at_ms=600),
        ),
    )
    run = run_flowing(scenario)
    assert run.violations == [] and run.hindrance == ""
    assert run.ending == "settled"
    assert len(rows(run, Kind.DELIVER)) == 360
    times = [event.time_ns for event in rows(run, Kind.DELIVER) if event.node == 2]
    assert max(b - a for a, b in pairwise(times)) > 200_000_000, "it stood still"


def test_a_partition_that_stays_leaves_the_end_unjudged() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        workload=WorkloadSpec(messages=20, rate_per_s=200),
        settle_ms=300,
        fault=(Partition(at_ms=0, sides=((0, 1, 3), (2,))),),
    )
    run, _ = run_live(scenario)
    assert run.hindrance == "a partition was still in force"
    assert not run.description.complete
    assert run.violations == [] and run.ending == "deliveries missing"


def test_closed_loop_clients_wait_for_all_answers() -> None:
    scenario = Scenario(
        protocol="atomic_multicast",
        senders=2,
        workload=WorkloadSpec(kind="closed", messages=61, outstanding=4, timeout_ms=20_000),
        settle_ms=300,
    )
    run, _ = run_live(scenario)
    assert run.violations == []
    assert len(rows(run, Kind.SUBMIT)) == 61
    completed = rows(run, Kind.COMPLETE)
    assert len(completed) == 61 and run.summary().timed_out == 0
    last = {event.message: event.time_ns for event in rows(run, Kind.DELIVER)}
    assert all(event.time_ns >= last[event.message] for event in completed)
    under_way = most = 0
    for event in rows(run, Kind.SUBMIT, Kind.COMPLETE):
        under_way += 1 if event.kind is Kind.SUBMIT else -1
        most = max(most, under_way)
    assert most <= 8


def test_a_simulated_run_runs_live_from_its_trace_and_back(tmp_path: Path) -> None:
    simulated = simulate(hydra(groups=2, workload=WorkloadSpec(messages=40, bytes=100, spread=(0.5, 0.5))))
    recorded = simulated.write(tmp_path / "simulated")
    run, folder = run_live(scenario_of(recorded), tmp_path / "live")
    assert folder is not None and run.violations == []
    assert what(submissions_of(folder)) == what(submissions_of(recorded))
    again = simulate(scenario_of(folder))
    assert again.violations == []
    assert again.summary().submitted == 40


def test_what_has_no_live_meaning_is_said_in_words() -> None:
    modelled = hydra(
        network=NetworkSpec(latency=LinksSpec()), cpu=Cpu(receive_ns=1000), liveness=True, packets=True
    )
    assert [words.split(":")[0] for words in ignored(modelled)] == [
        "the latency 'links' is not imitated",
        "the costs of CPUs are not imitated",
        "liveness is not judged",
        "packets are not traced",
    ]
    assert ignored(hydra()) == []
    assert ignored(hydra(network=NetworkSpec(latency=ConstantSpec(5000)))) == []
    assert len(ignored(hydra(network=NetworkSpec(latency=UniformSpec(1, 2))))) == 1


def test_a_scenario_that_takes_too_long_is_refused_before_it_begins() -> None:
    with pytest.raises(LocalError, match="lasts longer than 600 s"):
        run_live(hydra(workload=WorkloadSpec(messages=100, rate_per_s=0.01)))
    with pytest.raises(LocalError, match="there is no host 99"):
        run_live(hydra(fault=(Crash(at_ms=1, host=99),)))


def test_no_process_is_left_behind_when_a_host_dies_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    start = Hosts.start

    def remember(self: Hosts, host: int, life: Life) -> None:
        start(self, host, life)
        pids.append(self._up[host].process.pid or 0)
        if host == 2:
            os.kill(pids[-1], 9)

    monkeypatch.setattr(Hosts, "start", remember)
    with pytest.raises(LocalError, match="host 2 ended unexpectedly"):
        run_live(hydra())
    assert len(pids) > 3
    assert until(lambda: not any(map(alive, pids)))
