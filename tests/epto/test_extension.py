"""EpTO with peers that come later or are removed: plans agree on ids, and running peers follow."""

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Extension, LocalError, NewNode, Plan, RemoteError
from ordercast.protocols.epto.messages import Ball, Event
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.peer import Peer
from ordercast.protocols.epto.protocol import deploy, extend
from ordercast.testing import RecordingEnv

THREE = Deployment.disjoint(1, 3, 3, colocated=True)
APART = Deployment.disjoint(1, 3, 1)
PEER = NewNode("peer", (0,))


def extended(*added: NewNode, removed: tuple[int, ...] = (), deployment: Deployment = THREE) -> Plan:
    return extend(deployment, EptoOptions(), Extension(added, frozenset(removed)))


def peer_of(plan: Plan, node: int) -> Peer:
    peer = plan.nodes[node].factory(RecordingEnv(node))
    assert isinstance(peer, Peer)
    return peer


def test_a_newcomer_has_the_next_id_and_a_host_of_that_id() -> None:
    before, after = deploy(THREE, EptoOptions()), extended(PEER, PEER)
    assert [(node.id, node.role, node.host) for node in after.nodes[:3]] == [
        (node.id, node.role, node.host) for node in before.nodes
    ]
    assert [(node.id, node.role, node.host) for node in after.nodes[3:]] == [(3, "peer", 3), (4, "peer", 4)]
    assert after.groups == {0: (0, 1, 2, 3, 4)}
    assert after.senders == (0, 1, 2, 3, 4)


def test_hosts_of_several_peers_never_share_an_id_with_a_newcomer() -> None:
    plan = extend(
        Deployment.disjoint(1, 10, 10, colocated=True),
        EptoOptions(peers_per_host=5),
        Extension((PEER,)),
    )
    assert [node.host for node in plan.nodes] == [0] * 5 + [1] * 5 + [10]


def test_apart_only_a_publisher_sends_and_only_a_peer_receives() -> None:
    plan = extended(PEER, NewNode("publisher"), deployment=APART)
    assert plan.senders == (3, 5)
    assert plan.groups == {0: (0, 1, 2, 4)}


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (NewNode("peer"), "a new peer needs a group"),
        (NewNode("publisher", (0,)), "a new publisher only sends"),
        (NewNode("peer", (1,)), "no such group"),
    ],
)
def test_roles_and_groups_that_do_not_fit_are_refused(new: NewNode, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        extended(new)


def test_a_removed_peer_keeps_its_id_and_is_in_no_group() -> None:
    plan = extended(PEER, removed=(1,))
    assert [node.id for node in plan.nodes] == [0, 1, 2, 3]
    assert plan.groups == {0: (0, 2, 3)}
    assert plan.senders == (0, 2, 3)
    assert plan.present() == {0: "peer", 2: "peer", 3: "peer"}
    assert plan.infrastructure() == ()


def test_a_running_peer_gets_the_settings_that_a_new_plan_has() -> None:
    running, later = peer_of(deploy(THREE, EptoOptions()), 0), extended(*[PEER] * 40)
    running.on_nodes(later.present())
    fresh = peer_of(later, 0)._set
    assert (running._set.fanout, running._set.ttl, running._set.peers) == (fresh.fanout, fresh.ttl, 43)
    assert running._set.fanout > peer_of(deploy(THREE, EptoOptions()), 0)._set.fanout


def test_removals_never_make_balls_fewer() -> None:
    running = peer_of(extended(*[PEER] * 40), 0)
    before = running._set
    running.on_nodes({0: "peer", 1: "peer"})
    assert running._set == before
    assert list(running._sampler.known()) == [1]


def test_events_of_a_newcomer_are_taken_only_when_it_is_known() -> None:
    env = RecordingEnv(0)
    peer = deploy(THREE, EptoOptions()).nodes[0].factory(env)
    peer.on_start({})
    ball = Ball((1,), (Event(5, 3, 1, (0,), b"x"),))
    with pytest.raises(RemoteError, match="node 3"):
        peer.on_message(1, ball)
    peer.on_nodes({0: "peer", 1: "peer", 2: "peer", 3: "peer"})
    peer.on_message(1, ball)


@pytest.mark.parametrize("sampling", ["uniform", "cyclon"])
def test_a_running_peer_sends_to_newcomers_and_not_to_the_removed(sampling: str) -> None:
    options = EptoOptions(sampling=sampling, contacts=1)  # type: ignore[arg-type]
    peer = deploy(THREE, options).nodes[2].factory(RecordingEnv(2))
    assert isinstance(peer, Peer)
    peer.on_start({})
    peer.on_nodes({1: "peer", 2: "peer", 3: "peer"})
    known = set(peer._sampler.known()) if sampling == "uniform" else set(peer._sampler._contacts)  # type: ignore[attr-defined]
    assert known == ({1, 3} if sampling == "uniform" else {1})


def test_a_protocol_with_fixed_members_says_so() -> None:
    for name in ("atomic_multicast", "unordered"):
        protocol = find_protocol(name)
        with pytest.raises(LocalError, match=f"{name} cannot take in or remove hosts"):
            protocol.deploy_extended(THREE, protocol.options(), Extension((PEER,)))
        assert protocol.all_newcomers({}) == ()
