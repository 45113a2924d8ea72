"""Hydra with sequencers that come later or are removed: plans agree on ids, and running nodes follow."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ordercast.core import MILLISECOND, Deployment, Env, Extension, LocalError, NewNode, Node, Plan, Process
from ordercast.judge import judge
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import deploy, extend
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.protocols.hydra.service import ConfigurationReplica
from ordercast.sim.world import World
from ordercast.trace import Event, Kind, describe

DEPLOYMENT = Deployment.disjoint(2, 3, 1)
OPTIONS = HydraOptions(sequencers=1)
SEQUENCER = NewNode("sequencer")
FIRST = len(deploy(DEPLOYMENT, OPTIONS).nodes)


def extended(*added: NewNode, removed: tuple[int, ...] = (), options: HydraOptions = OPTIONS) -> Plan:
    return extend(DEPLOYMENT, options, Extension(added, frozenset(removed)))


def told(plan: Plan) -> Plan:
    """The plan with processes that are told of all nodes when they start, as a live host does."""

    def tell(node: Node) -> Node:
        def factory(env: Env) -> Process:
            process = node.factory(env)
            start = process.on_start

            def on_start(saved: Mapping[str, bytes]) -> None:
                start(saved)
                process.on_nodes(plan.present())

            process.on_start = on_start  # type: ignore[method-assign]
            return process

        return replace(node, factory=factory)

    return replace(plan, nodes=tuple(tell(node) for node in plan.nodes))


def test_a_later_sequencer_follows_the_service_in_the_order_of_nodes() -> None:
    before, after = deploy(DEPLOYMENT, OPTIONS), extended(SEQUENCER)
    assert [(node.id, node.role) for node in after.nodes[:FIRST]] == [
        (node.id, node.role) for node in before.nodes
    ]
    assert [(node.id, node.role, node.host) for node in after.nodes[FIRST:]] == [(FIRST, "sequencer", FIRST)]
    assert after.groups == before.groups


@pytest.mark.parametrize(
    "new", [NewNode("receiver", (0,)), NewNode("configuration"), NewNode("sequencer", (1,))]
)
def test_nothing_else_can_come(new: NewNode) -> None:
    with pytest.raises(LocalError, match="only a sequencer"):
        extended(new)


def test_nothing_else_can_be_removed() -> None:
    with pytest.raises(LocalError, match="only sequencers can be removed, and node 0 is a receiver"):
        extended(removed=(0,))


def test_a_later_sequencer_gets_a_number_and_stamps() -> None:
    plan = told(extended(SEQUENCER))
    world = World(plan, 1, through_codec=True)
    world.run(100 * MILLISECOND)
    later = world.envs[FIRST].process
    assert isinstance(later, Sequencer)
    assert later.number == 2
    for _ in range(40):
        assert world.submit(plan.senders[0], (0, 1), b"payload") is not None
        world.run(world.now + MILLISECOND)
    world.run(world.now + 50 * MILLISECOND)
    events = [Event._make(row) for row in world.rows]
    issuers = {event.stamp_issuer for event in events if event.kind is Kind.DELIVER}
    assert issuers == {1, 2}
    described = describe(plan, run="later", source="simulator", seed=1, complete=True)
    assert judge(described, events) == []


def test_without_being_told_the_service_refuses_it() -> None:
    plan = extended(SEQUENCER)
    world = World(plan, 1, through_codec=True)
    with pytest.raises(Exception, match=f"node {FIRST} asks for the number of a sequencer, but is none"):
        world.run(100 * MILLISECOND)


def test_more_are_wanted_unless_a_target_is_set() -> None:
    for target, wanted in ((0, 2), (1, 1)):
        plan = extended(SEQUENCER, options=HydraOptions(sequencers=1, target=target))
        world = World(told(plan), 1)
        world.run(MILLISECOND)
        replica = world.envs[FIRST - 1].process
        assert isinstance(replica, ConfigurationReplica)
        assert replica._audience.target == wanted
