"""Plans: what a driver may rely on."""

import pytest

from ordercast.core import (
    Codec,
    Env,
    Explanation,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Node,
    NodeId,
    Plan,
    Process,
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
    with pytest.raises(LocalError, match="sketch: a group or the senders name a node that is not there"):
        plan(groups=groups, senders=senders)


def test_only_a_member_takes_messages(env: Env) -> None:
    speaker = Speaker(env)
    assert plan().member(speaker) is speaker
    with pytest.raises(LocalError, match="sketch: Silent takes no messages"):
        plan().member(Silent(env))
