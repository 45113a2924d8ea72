"""Newcomers get the state of applications: under load, loss and crashes, and whoever of the members dies."""

from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.core import MILLISECOND, SECOND, NodeId, StateWanted
from ordercast.judge import audit
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import Crash, FaultSpec, Heal, Restart, Weather
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.build import build_world
from ordercast.sim.run import Run, simulate
from ordercast.sim.world import World
from ordercast.trace import Event, Kind
from tests.deep import deep_after
from tests.sim.mutant import calm
from tests.sim.mutants_state import CHANGES, JOINER

PROTOCOLS = ("view_synchronous", "token_site", "symmetric", "static_hybrid", "hybrid")
SEEDS = 50
CASES = [(protocol, seed) for seed in range(SEEDS) for protocol in PROTOCOLS]


def with_state(scenario: Scenario, **changes: Any) -> Scenario:
    options = {**scenario.options, "application_state": True}
    return msgspec.structs.replace(scenario, options=options, **changes)


def judged(scenario: Scenario) -> Run:
    """A run that both judges pass."""
    run = simulate(scenario)
    assert run.violations == []
    assert audit(run.description, run.table).violations == []
    return run


def states(run: Run) -> list[Event]:
    return [event for event in run.events() if event.kind is Kind.STATE]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_node_that_joins_gets_the_state_and_then_the_messages(protocol: str) -> None:
    run = judged(calm(protocol, 1, **CHANGES))
    assert run.description.complete
    mine = [event for event in run.events() if event.node == JOINER and event.kind is not Kind.SUBMIT]
    joined = [place for place, event in enumerate(mine) if event.kind is Kind.JOINED]
    assert len(joined) == 2, "it joined, left and joined again"
    for place in joined:
        following = [event.kind for event in mine[place : place + 3]]
        assert following == [Kind.JOINED, Kind.STATE, Kind.VIEW]
    given = {(e.node, e.config): e.digest for e in run.events() if e.kind is Kind.GIVE_STATE}
    for event in states(run):
        assert event.peer is not None and given[event.peer, event.config] == event.digest


def storm(protocol: str, seed: int) -> Scenario:
    """Joins and leaves while packets are lost, and members crash, the donors of newcomers among them."""
    rng = Random(f"storm of states {seed}")
    start = rng.choice((20, 40, 60))
    victims = rng.sample(range(5), 2)
    crashes: list[FaultSpec] = [
        Crash(at_ms=start + rng.randrange(60), host=victims[0]),
        Restart(at_ms=start + 150 + rng.randrange(200), host=victims[0]),
        Crash(at_ms=start + 100 + rng.randrange(200), host=victims[1]),
        Restart(at_ms=start + 400, host=victims[1], state=rng.choice(("saved", "lost"))),
    ]
    weather = (Weather(at_ms=5, conditions=Conditions(loss=rng.choice((0.0, 0.05, 0.2)))), Heal(at_ms=700))
    scenario = calm(
        protocol,
        seed,
        receivers=5,
        joiners=2,
        join=(Join(at_ms=start, node=5), Join(at_ms=start + 10, node=6), Join(at_ms=500, node=5)),
        leave=(Leave(at_ms=start + 250, node=5), Leave(at_ms=start + 260, node=rng.randrange(5))),
        fault=(*weather, *crashes),
        workload=WorkloadSpec(messages=240, rate_per_s=120),
        settle_ms=3000,  # a state in pieces of 100 bytes takes some hundreds of milliseconds
    )
    small: dict[str, object] = {"chunk_bytes": rng.choice((100, 1 << 18))}
    options = small if protocol == "view_synchronous" else {"views": small}
    return with_state(msgspec.structs.replace(scenario, options=options))


def two_groups(protocol: str, seed: int) -> Scenario:
    """Members of one group join and leave the other, and messages go to one or to both."""
    rng = Random(f"two groups {seed}")
    victim = rng.randrange(6)
    fault = (
        Weather(at_ms=5, conditions=Conditions(loss=rng.choice((0.0, 0.1)))),
        Crash(at_ms=100 + rng.randrange(200), host=victim),
        Restart(at_ms=350, host=victim, state=rng.choice(("saved", "lost"))),
        Heal(at_ms=600),
    )
    changes: dict[str, Any] = {
        "groups": 2,
        "joiners": 2,
        "join": (
            Join(at_ms=30, node=0, group=1),
            Join(at_ms=30 + rng.randrange(60), node=4, group=0),
            Join(at_ms=60 + rng.randrange(60), node=6, group=0),
            Join(at_ms=60 + rng.randrange(60), node=6, group=1),
            Join(at_ms=400, node=7, group=1),
        ),
        "leave": (Leave(at_ms=250, node=0, group=0), Leave(at_ms=300, node=4, group=rng.randrange(2))),
        "fault": fault,
        "workload": WorkloadSpec(messages=240, rate_per_s=120, spread=(0.6, 0.4)),
    }
    return with_state(calm(protocol, seed, **changes))


@pytest.mark.parametrize(
    ("protocol", "seed"), deep_after(2, [(p, s) for s in range(SEEDS) for p in PROTOCOLS])
)
def test_states_of_several_groups_are_kept_apart(protocol: str, seed: int) -> None:
    run = judged(two_groups(protocol, seed))
    assert run.description.complete
    assert {group for event in states(run) for group in event.groups or ()} == {0, 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", deep_after(1, range(SEEDS)))
def test_states_survive_a_storm(protocol: str, seed: int) -> None:
    run = judged(storm(protocol, seed))
    assert run.description.complete
    assert len(states(run)) >= 3


@pytest.mark.parametrize(
    ("protocol", "seed"), deep_after(2, [(p, s) for s in range(SEEDS) for p in PROTOCOLS])
)
def test_states_are_right_in_the_scenarios_of_the_swarm(protocol: str, seed: int) -> None:
    judged(with_state(swarm_scenario(protocol, seed)))


# Donors


def world_of(protocol: str = "view_synchronous", **changes: Any) -> World:
    scenario = calm(protocol, 1, joiners=2, **changes)
    scenario = with_state(scenario)
    return build_world(scenario, scenario.plan())


def rows(world: World, kind: Kind) -> list[Event]:
    return [Event(*row) for row in world.rows if row[3] is kind]  # type: ignore[arg-type]


def run_until(world: World, kind: Kind) -> Event:
    """Go on until there is a row of this kind, and return the last one."""
    before = len(rows(world, kind))
    while len(rows(world, kind)) == before:
        world.run(world.now + MILLISECOND // 2)
        assert world.now < 20 * SECOND
    return rows(world, kind)[-1]


def test_the_death_of_a_donor_costs_nothing() -> None:
    """It dies between the question and the answer of its application, and another one gives its state."""
    world = world_of(receivers=5)
    world.run(20 * MILLISECOND)
    world.submit(7, (0,), b"before")
    world.run(40 * MILLISECOND)
    world.members.join(5, 0)
    first = run_until(world, Kind.STATE_WANTED)
    world.crash(first.node)
    state = run_until(world, Kind.STATE)
    assert state.node == 5 and state.peer not in (None, first.node)
    assert (state.config or 0) > (first.config or 0), "it counts from a later view"
    assert [event.config for event in rows(world, Kind.JOINED)] == [state.config]


def test_a_donor_whose_application_is_silent_is_left_for_another() -> None:
    world = world_of()
    silent: list[NodeId] = []

    def forgetful(env: Any, notice: Any) -> None:
        if isinstance(notice, StateWanted) and not silent:
            silent.append(env.me)
        else:
            answer(env, notice)

    answer, world.applications.on_notice = world.applications.on_notice, forgetful  # type: ignore[method-assign]
    world.run(20 * MILLISECOND)
    world.members.join(3, 0)
    run_until(world, Kind.STATE_WANTED)
    world.run(world.now + SECOND)
    told = {node: [wait.blocker for wait in told.waits] for node, told in world.explain().items()}
    donor = silent[0]
    assert any(f"node {donor}, which has it as view" in blocker for blocker in told[3])
    assert any("the application of node" in blocker for blocker in told[donor])
    assert "the state of group 0" in world.explain()[3].behind
    assert run_until(world, Kind.STATE).peer not in (None, donor)


def test_where_nobody_has_a_state_the_lowest_begins_and_gives_its_own() -> None:
    """All hosts restart: everybody comes anew, and one of them begins with what it has."""
    world = world_of()
    world.run(20 * MILLISECOND)
    for host in range(3):
        world.crash(host)
    world.run(30 * MILLISECOND)
    for host in range(3):
        world.restart(host)
    while len(rows(world, Kind.STATE)) < 3:
        world.run(world.now + MILLISECOND)
        assert world.now < 20 * SECOND
    begun = [event for event in rows(world, Kind.STATE) if event.peer is None]
    assert [event.node for event in begun] == [0]
    others = [event for event in rows(world, Kind.STATE) if event.peer is not None]
    assert sorted(event.node for event in others) == [1, 2]


def test_a_state_larger_than_a_packet_comes_in_pieces() -> None:
    scenario = calm("view_synchronous", 2, **CHANGES)
    scenario = with_state(msgspec.structs.replace(scenario, options={"chunk_bytes": 16}))
    run = judged(scenario)
    assert max(event.size or 0 for event in states(run)) > 10 * 16


def test_it_is_off_unless_it_is_asked_for() -> None:
    run = judged(msgspec.structs.replace(calm("view_synchronous", 1, **CHANGES), options={}))
    kinds = {event.kind for event in run.events()}
    assert Kind.JOINED in kinds and not {Kind.STATE, Kind.STATE_WANTED, Kind.GIVE_STATE} & kinds
    assert not run.description.guarantees.state_transfer
