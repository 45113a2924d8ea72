"""Troubles of disks: what they do to a host, who comes back as new, and what careless hosts would do."""

import pytest

from ordercast.core import MILLISECOND, SECOND, Fault, LocalError
from ordercast.scenario.faults import DAMAGES, Crash, Disk, DiskTrouble, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.disk import SLOW_NS
from ordercast.sim.host import Host
from ordercast.sim.run import simulate
from ordercast.sim.world import World
from ordercast.trace import LOST, SAVED, Event, Kind
from tests.deep import deep_after
from tests.sim.probes import Probe, ProbeWorld, Word

PROTOCOLS = ["atomic_multicast", "epto", "hydra", "unordered"]


def save_and_send(probe: Probe) -> None:
    """Save a place, and let another depend on it."""
    probe.env.save("place", b"%d" % probe.env.now)
    probe.env.send(0, Word("saved"))


def world_that_saves() -> ProbeWorld:
    """Two hosts; the process of host 1 has saved something twice."""
    world = ProbeWorld()
    for _ in range(2):
        world.do(1, save_and_send)
        world.run(world.now + MILLISECOND)
    return world


def alive(world: World) -> bool:
    """Whether host 1 is up."""
    return world.hosts[1].up


def recovered(world: World) -> list[str | None]:
    """How nodes came back."""
    return [row.label for row in map(Event._make, world.rows) if row.kind is Kind.RECOVER]


@pytest.mark.parametrize("what", sorted(DAMAGES))
def test_a_host_whose_state_is_damaged_stays_down_if_a_node_must_remember(what: DiskTrouble) -> None:
    world = world_that_saves()
    Disk(at_ms=0, host=1, what=what).strike(world)
    Crash(at_ms=0, host=1).strike(world)
    for _ in range(2):
        Restart(at_ms=0, host=1).strike(world)
        assert not world.hosts[1].up
    Restart(at_ms=0, host=1, state="lost").strike(world)
    assert world.hosts[1].up
    assert recovered(world) == [LOST]


@pytest.mark.parametrize("what", sorted(DAMAGES))
def test_a_host_whose_nodes_may_forget_comes_back_as_new(what: DiskTrouble) -> None:
    scenario = Scenario(
        protocol="unordered",
        workload=WorkloadSpec(messages=50),
        fault=(
            Disk(at_ms=10, host=1, what=what),
            Crash(at_ms=20, host=1),
            Restart(at_ms=30, host=1),
            Crash(at_ms=40, host=1),
            Restart(at_ms=41, host=1),
        ),
    )
    run = simulate(scenario)
    labels = [event.label for event in run.events() if event.kind is Kind.RECOVER]
    assert labels == [LOST, SAVED], "and then it is an ordinary host again"
    assert run.violations == []


@pytest.mark.parametrize("what", ["io-error", "full", "read-only"])
def test_a_host_stops_at_the_save_that_its_disk_refuses_and_nothing_of_it_leaves(what: DiskTrouble) -> None:
    world = world_that_saves()
    before = world.envs[1].saved["place"]
    Disk(at_ms=0, host=1, what=what, for_ms=10).strike(world)
    assert alive(world)
    world.do(1, save_and_send)
    world.run(world.now + MILLISECOND)
    assert not alive(world)
    assert len(world.probe(0).heard) == 2
    Restart(at_ms=0, host=1).strike(world)
    assert world.probe(1).saved == {"place": before}
    world.do(1, save_and_send)
    assert not alive(world), "the disk still refuses"
    world.run(10 * MILLISECOND + world.now)
    Restart(at_ms=0, host=1).strike(world)
    world.do(1, save_and_send)
    world.run(world.now + SECOND)
    assert alive(world)
    assert len(world.probe(0).heard) == 3


def test_a_slow_disk_holds_up_its_host_for_a_while() -> None:
    world = world_that_saves()
    Disk(at_ms=0, host=1, what="slow", for_ms=10).strike(world)
    world.do(1, save_and_send)
    sent = world.now
    world.run(SECOND)
    world.do(1, save_and_send)
    later = world.now
    world.run(2 * SECOND)
    assert world.probe(0).times()[-2:] == [sent + SLOW_NS + 100, later + 100]


def test_damage_changes_what_was_saved() -> None:
    for what in sorted(DAMAGES):
        world = world_that_saves()
        before = dict(world.envs[1].saved)
        world.envs[1].damage(what, world.rng)
        assert world.envs[1].saved != before, what


@pytest.mark.parametrize(("what", "for_ms", "complaint"), [("flip", 5, "leave out"), ("full", 0, "needs")])
def test_how_long_a_trouble_lasts_must_make_sense(what: DiskTrouble, for_ms: float, complaint: str) -> None:
    with pytest.raises(LocalError, match=complaint):
        Disk(at_ms=0, host=1, what=what, for_ms=for_ms)


# The swarm


@pytest.mark.parametrize(
    ("protocol", "first"),
    deep_after(0, [(protocol, first) for protocol in PROTOCOLS for first in range(0, 1000, 50)]),
)
def test_the_swarm_with_bad_disks_breaks_no_promise(protocol: str, first: int) -> None:
    for seed in range(first, first + 50):
        run = simulate(swarm_scenario(protocol, seed, only=Fault.DISK))
        assert run.violations == [], (seed, run.violations)
        assert run.ending != "protocol failed", seed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_swarm_draws_every_trouble(protocol: str) -> None:
    scenarios = [swarm_scenario(protocol, seed, only=Fault.DISK) for seed in range(150)]
    found = {fault.what for scenario in scenarios for fault in scenario.fault if isinstance(fault, Disk)}
    assert found == {*DAMAGES, "io-error", "full", "read-only", "slow"}


def caught(breaks: str, first: int) -> str:
    """What is found in the first run of a swarm with bad disks in which this promise is broken.

    A third of all seeds catch hosts without a check sum; the search begins shortly before one.
    """
    for seed in range(first, first + 50):
        run = simulate(swarm_scenario("atomic_multicast", seed, only=Fault.DISK))
        for violation in run.violations:
            if violation.property == breaks:
                return violation.detail
    return ""


def test_hosts_without_a_check_sum_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go on with whatever the disk gives them."""
    found = World._finds_damage

    def trusts(world: World, host: Host) -> bool:
        found(world, host)
        return False

    monkeypatch.setattr(World, "_finds_damage", trusts)
    assert "a second time" in caught("integrity", 10)


def test_hosts_that_are_known_by_their_names_alone_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that lost its disk finds nothing wrong with an empty one, and nobody tells it."""
    found = World._finds_damage

    def asks_nobody(world: World, host: Host) -> bool:
        wiped = host.disk is not None and set(host.disk.damages) == {"wiped"}
        return found(world, host) and not wiped

    monkeypatch.setattr(World, "_finds_damage", asks_nobody)
    assert "a second time" in caught("integrity", 32)
