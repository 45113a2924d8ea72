"""What a process lacks after a restart: told at once, and nothing is lacking once it has caught up."""

import pytest

from ordercast.core import MILLISECOND, SECOND, HostId
from ordercast.scenario.spec import Scenario
from ordercast.sim.build import build_world
from ordercast.sim.world import World

HYDRA = Scenario(
    protocol="hydra",
    options={"sequencers": 2, "replicas": 3, "durable": True, "patience_ns": 0},
    groups=1,
    receivers=3,
    senders=1,
)
ATOMIC = Scenario(protocol="atomic_multicast", groups=1, receivers=3, senders=1)
EPTO = Scenario(
    protocol="epto",
    options={"durable": True, "clock": "logical"},
    groups=1,
    receivers=5,
    senders=5,
    colocated=True,
)


def lacking(world: World) -> dict[int, str]:
    """What each node lacks."""
    return {node: told.behind for node, told in world.explain().items() if told.behind}


def restarted(scenario: Scenario, host: HostId) -> World:
    """A world at rest, of which one host has just been restarted."""
    world = build_world(scenario, scenario.plan())
    world.run(SECOND)
    assert lacking(world) == {}, "nothing is lacking at rest"
    world.crash(host)
    world.run(world.now + MILLISECOND)
    world.restart(host)
    return world


@pytest.mark.parametrize(
    ("scenario", "host", "told"),
    [
        pytest.param(HYDRA, 0, {0: "news of sequencer 1, sequencer 2"}, id="hydra-receiver"),
        pytest.param(HYDRA, 3, {3: "a sequencer"}, id="hydra-sender"),
        pytest.param(HYDRA, 4, {4: "a number"}, id="hydra-sequencer"),
        pytest.param(HYDRA, 6, {6: "a leader"}, id="hydra-configuration"),
        pytest.param(ATOMIC, 1, {1: "a leader"}, id="atomic-receiver"),
        pytest.param(
            EPTO, 2, {2: "more peers; too few are known, or have told their logical time"}, id="epto-peer"
        ),
    ],
)
def test_a_restarted_process_says_what_it_lacks_until_it_has_caught_up(
    scenario: Scenario, host: HostId, told: dict[int, str]
) -> None:
    world = restarted(scenario, host)
    assert lacking(world) == told
    world.run(world.now + 10 * SECOND)
    assert lacking(world) == {}


def test_a_replica_is_behind_until_it_has_what_was_decided_meanwhile() -> None:
    world = build_world(ATOMIC, ATOMIC.plan())
    world.run(SECOND)
    world.crash(2)
    for number in range(50):
        world.submit(3, (0,), bytes([number]))
        world.run(world.now + MILLISECOND)
    world.restart(2)
    seen = {lacking(world).get(2, "")}
    for _ in range(200):
        world.run(world.now + MILLISECOND)
        seen.add(lacking(world).get(2, ""))
    assert {"a leader", ""} < seen and lacking(world) == {}
    assert any("which this replica lacks" in told for told in seen)
