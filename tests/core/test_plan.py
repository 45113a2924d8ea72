"""Plans: what a driver may rely on."""

from random import Random

import pytest

from ordercast.core import (
    Codec,
    Crashes,
    Deployment,
    Env,
    Explanation,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Membership,
    Message,
    Node,
    NodeId,
    Options,
    Plan,
    Process,
    Protocol,
    screen_groups,
)


class Nothing(Message, frozen=True, tag=1):
    pass


class Silent(Process):
    def on_message(self, source: NodeId, message: Message) -> None:
        pass

    def explain(self) -> Explanation:
        return Explanation({})


class Speaker(Silent, Member):
    def submit(self, groups: Groups, payload: bytes) -> bool:
        return True


def plan(
    ids: tuple[int, ...] = (0, 1),
    groups: dict[int, tuple[int, ...]] | None = None,
    senders: tuple[int, ...] = (1,),
) -> Plan:
    nodes = tuple(Node(node, "role", node, Silent) for node in ids)
    members = {0: (0,)} if groups is None else groups
    return Plan("sketch", Guarantees(), nodes, members, senders, Codec([Nothing]))


def test_a_good_plan_is_taken_as_it_is() -> None:
    assert plan().senders == (1,)


@pytest.mark.parametrize("ids", [(1, 2), (0, 2), (1, 0), (0, 0)])
def test_node_ids_are_dense_and_in_order(ids: tuple[int, ...]) -> None:
    with pytest.raises(LocalError, match="sketch: node ids must be 0, 1, 2"):
        plan(ids)


@pytest.mark.parametrize(
    ("groups", "senders"), [({0: (2,)}, (1,)), ({0: (0,)}, (2,)), ({0: (-1,)}, (1,)), ({0: (0,)}, (-1,))]
)
def test_groups_and_senders_name_nodes_that_are_there(
    groups: dict[int, tuple[int, ...]], senders: tuple[int, ...]
) -> None:
    with pytest.raises(
        LocalError, match="sketch: a group or the list of senders names a node that does not exist"
    ):
        plan(groups=groups, senders=senders)


def test_only_a_member_takes_messages(env: Env) -> None:
    speaker = Speaker(env)
    assert plan().member(speaker) is speaker
    with pytest.raises(LocalError, match="sketch: Silent takes no messages"):
        plan().member(Silent(env))


def with_infrastructure(*fails: Crashes | None, role: str = "sequencer") -> Plan:
    """A receiver, a sender, and a node of that role for each way to fail."""
    nodes = [Node(node, "role", node, Silent) for node in (0, 1)]
    nodes += [Node(2 + index, role, 2 + index, Silent, fail) for index, fail in enumerate(fails)]
    return Plan("sketch", Guarantees(), tuple(nodes), {0: (0,)}, (1,), Codec([Nothing]))


def test_infrastructure_is_what_neither_receives_nor_sends() -> None:
    assert [node.id for node in with_infrastructure(Crashes.ANY, Crashes.ANY).infrastructure()] == [2, 3]
    assert plan().infrastructure() == ()


@pytest.mark.parametrize("fails", [(None, Crashes.ANY), (Crashes.ANY, Crashes.MINORITY)])
def test_nodes_of_one_role_may_fail_in_one_way(fails: tuple[Crashes | None, ...]) -> None:
    with pytest.raises(LocalError, match="sketch: nodes of role 'sequencer' differ in how they may fail"):
        with_infrastructure(*fails)


@pytest.mark.parametrize("node", [0, 1])
def test_receivers_and_senders_fail_as_the_guarantees_say(node: NodeId) -> None:
    nodes = tuple(
        Node(each, f"role {each}", each, Silent, Crashes.ANY if each == node else None) for each in (0, 1)
    )
    with pytest.raises(
        LocalError, match=f"sketch: node {node} is a receiver or a sender, so it must not set `fails`"
    ):
        Plan("sketch", Guarantees(), nodes, {0: (0,)}, (1,), Codec([Nothing]))


def test_a_protocol_that_says_nothing_varies_no_options() -> None:
    def deploy(deployment: Deployment, options: Options) -> Plan:
        return plan()

    rng = Random(0)
    sketch = Protocol("sketch", "", "", Guarantees(), Options, deploy, ("role",))
    assert sketch.vary(rng) == {}
    assert rng.getstate() == Random(0).getstate()


@pytest.mark.parametrize("membership", Membership)
def test_only_groups_to_which_receivers_subscribe_may_be_empty(membership: Membership) -> None:
    groups: dict[int, tuple[NodeId, ...]] = {0: (0,), 1: ()}
    if membership is Membership.SUBSCRIPTIONS:
        screen_groups("sketch", membership, groups)
    else:
        with pytest.raises(LocalError, match="group 1 has no receiver; sketch needs one in every group"):
            screen_groups("sketch", membership, groups)


def test_a_protocol_may_add_groups_without_receivers() -> None:
    nodes = tuple(Node(node, "role", node, Silent) for node in (0, 1))
    groups: dict[int, tuple[NodeId, ...]] = {0: (0,), 1: ()}
    plan = Plan("sketch", Guarantees(), nodes, groups, (1,), Codec([Nothing]))
    assert plan.participants() == {0, 1}
