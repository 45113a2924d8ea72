"""Active replication: what it stands on, restarts, calls that are repeated."""

from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, LocalError
from ordercast.replication.active.options import ActiveOptions
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim import simulate
from ordercast.toml_file import naming_lines_of
from ordercast.trace import Kind


def over(name: str, **below: object) -> ActiveOptions:
    return ActiveOptions(over=name, below=below)


@pytest.mark.parametrize(
    ("options", "lacks"),
    [
        (over("unordered"), "replicas need a total order"),
        (over("hydra"), "replicas need agreement among all receivers"),
        (over("epto"), "replicas need agreement among all receivers"),
        (over("view_synchronous"), "replicas need a total order"),
        (over("hybrid"), "replicas need uniform agreement"),
        (over("hybrid", uniform=True), "replicas need fixed members"),
    ],
)
def test_it_refuses_protocols_whose_replicas_could_differ(options: ActiveOptions, lacks: str) -> None:
    with pytest.raises(LocalError, match=f"active cannot stand on .*: {lacks}, which it does not promise"):
        find_protocol("active").deploy(Deployment.disjoint(1, 3, 1), options)


def test_it_does_not_stand_on_itself() -> None:
    with pytest.raises(LocalError, match="active cannot be a layer on itself"):
        find_protocol("active").deploy(Deployment.disjoint(1, 3, 1), over("active"))


@pytest.mark.parametrize(
    ("line", "key", "what"),
    [
        ('over = "hydra"', "over", "replicas need agreement among all receivers"),
        ('over = "nobody"', "over", "no protocol 'nobody'; there are: active, "),
        ('over = "fast_paxos"', "over", "its replicas execute what clients submit"),
        ("below = {nothing = 1}", "below", "options of atomic_multicast: Object contains unknown field"),
    ],
)
@pytest.mark.parametrize("live_options", ["true", "false"])
def test_an_error_about_the_protocol_below_names_the_line(
    tmp_path: Path, line: str, key: str, what: str, live_options: str
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(
        f'protocol = "active"\nservice = "kv"\nlive_options = {live_options}\n[options]\n{line}\n'
    )
    with pytest.raises(LocalError) as raised, naming_lines_of(file):
        load_scenario(file).plan()
    assert f"{file}, line 5: options.{key}: " in str(raised.value) and what in str(raised.value)


def test_groups_must_not_overlap() -> None:
    with pytest.raises(LocalError, match="active needs disjoint groups"):
        find_protocol("active").deploy(Deployment(((0, 1), (1, 2))), ActiveOptions())


@pytest.mark.parametrize("snapshot_every", [1, 7, 1000])
def test_a_replica_goes_on_where_it_was_after_a_restart(snapshot_every: int) -> None:
    scenario = Scenario(
        protocol="active",
        service="counter",
        senders=2,
        options={"snapshot_every": snapshot_every, "checkpoint_every": 5},
        workload=WorkloadSpec(messages=200, reads=0.2),
        fault=(
            Crash(at_ms=20, host=0),
            Restart(at_ms=60, host=0),
            Crash(at_ms=90, host=0),
            Restart(at_ms=95, host=0),
        ),
    )
    run = simulate(scenario)
    assert run.violations == [] and run.ending == "settled"
    places = {
        (event.stamp_clock, event.digest)
        for event in run.events()
        if event.kind is Kind.CHECKPOINT and event.node == 0
    }
    others = {
        (event.stamp_clock, event.digest)
        for event in run.events()
        if event.kind is Kind.CHECKPOINT and event.node == 1
    }
    assert len(others) > 20 and len(places & others) > 10 and places <= others


def test_answers_that_are_lost_are_asked_for_again() -> None:
    scenario = Scenario(
        protocol="active",
        service="kv",
        senders=3,
        network=NetworkSpec(loss=0.2),
        workload=WorkloadSpec(kind="closed", messages=150, reads=0.5, timeout_ms=5000),
    )
    run = simulate(scenario)
    assert run.violations == [] and run.timed_out == 0
    assert sum(event.kind is Kind.REPLY for event in run.events()) == 150


def test_without_a_service_it_is_an_order() -> None:
    run = simulate(Scenario(protocol="active", senders=2, workload=WorkloadSpec(messages=50)))
    assert run.violations == [] and run.summary().delivered == 150
    assert not any(event.kind is Kind.REPLY for event in run.events())
