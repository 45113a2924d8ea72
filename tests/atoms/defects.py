"""What broken processes do: replacements for methods of the protocol."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ordercast.components.sequencing_graph import AtomId, SequencingGraph
from ordercast.core import GroupId, Message, NodeId
from ordercast.protocols.atoms import registry as registry_module
from ordercast.protocols.atoms.commands import Final
from ordercast.protocols.atoms.distribution import Distribution
from ordercast.protocols.atoms.ingress import Ingress
from ordercast.protocols.atoms.messages import Entries, Got, Publish, Seal, Where
from ordercast.protocols.atoms.ordering import Ordering
from ordercast.protocols.atoms.publisher import LATEST, Publisher
from ordercast.protocols.atoms.records import GroupPlan, Hop, Placed, Post
from ordercast.protocols.atoms.sealing import Reports
from ordercast.protocols.atoms.sequencing_node import LIFE, SequencingNode
from ordercast.protocols.atoms.subscriber import Subscriber

_on_start = SequencingNode.on_start
_on_seal = SequencingNode._on_seal
_run = SequencingNode._run
_take_publish = SequencingNode._take
_final = Reports.final
_inside = Ordering._inside
_start_publisher = Publisher.on_start
_take = Ingress.take
_on_got = Distribution.on_got
_on_message = Subscriber.on_message


# The store


def along(
    path_of: Callable[[SequencingGraph, GroupId], tuple[AtomId, ...]],
) -> Callable[..., tuple[Hop, ...]]:
    """Nodes along a path of atoms, one by one."""

    def hops_of(
        graph: SequencingGraph,
        group: GroupId,
        sites: Mapping[AtomId, NodeId],
        lives: Mapping[NodeId, int],
        _: Any,
    ) -> tuple[Hop, ...]:
        own = frozenset(graph.own_atoms(group))
        stops: list[tuple[NodeId, list[AtomId]]] = []
        for atom in path_of(graph, group):
            if not stops or stops[-1][0] != sites[atom]:
                stops.append((sites[atom], []))
            if atom in own:
                stops[-1][1].append(atom)
        return tuple(Hop(Post(node, lives[node]), tuple(atoms)) for node, atoms in stops)

    return hops_of


# Publishers


def without_mark(publisher: Publisher, saved: Mapping[str, bytes]) -> None:
    """Begin as if the earlier life had sent nothing."""
    _start_publisher(publisher, {name: state for name, state in saved.items() if name != LATEST})


# Sequencing nodes


def any_life(ingress: Ingress, source: NodeId, message: Publish) -> bool:
    """Take a message of an earlier life as the next one of its publisher."""
    if message.life < ingress._expected.get(source, (-1, 0))[0]:
        ingress._expected[source] = (message.life, message.number)
    return _take(ingress, source, message)


def any_plan(
    node: SequencingNode, ingress: Ingress, plan: GroupPlan, source: NodeId, message: Publish
) -> None:
    """Take a message that was sent before the group had members."""
    _take_publish(node, ingress, msgspec.structs.replace(plan, opened=0), source, message)


def same_life(node: SequencingNode, saved: Mapping[str, bytes]) -> None:
    """Start as if there had been no earlier life, but with its logs."""
    _on_start(node, {name: state for name, state in saved.items() if name != LIFE})
    for group, ingress in node._ingresses.items():
        log = node._keeping.log(group)
        ingress.position = max(ingress.position, log.next)
        ingress.placed.update(log.serials)
        ingress._expected.update(log.serials)


def report_only(node: SequencingNode, source: NodeId, message: Seal) -> None:
    """Report, and take messages as before."""
    still = set(node._open)
    _on_seal(node, source, message)
    node._open = still


def send_early(node: SequencingNode, plan: GroupPlan, stage: int, position: int, entry: Placed) -> None:
    """The first holder sends to subscribers what the next one does not have yet."""
    _run(node, plan, stage, position, entry)
    if stage == len(plan.hops) - 1 and len(plan.holders) > 1:
        kept = node._keeping.log(plan.group).entries[position]
        node.env.multicast([one.node for one in plan.tenures], Entries(plan.group, position, (kept,)))


# Distributors


def never_lower(distribution: Distribution, source: NodeId, message: Got) -> None:
    """Believe that what a subscriber has received it keeps for ever."""
    known = distribution.subscribers.get(source)
    if known is not None and message.received < known.received:
        message = Got(message.group, message.delivered, known.received)
    _on_got(distribution, source, message)


# The store


def any_report(reports: Reports, plan: GroupPlan) -> Final | None:
    """Take the report of a node that does not keep the log for that of the last holder."""
    found = reports._by_group.get((plan.group, plan.label), {})
    holders = [post.node for post in plan.holders]
    others = [node for node in found if node not in holders]
    if not others:
        return None
    registry = reports._registry
    registry.__dict__["reporter"] = lambda plan: others[0]
    try:
        return _final(reports, plan)
    finally:
        del registry.__dict__["reporter"]


def altered_final(**changes: Any) -> Callable[[Reports, GroupPlan], Final | None]:
    """Lose a part of what is known of a log."""

    def final(reports: Reports, plan: GroupPlan) -> Final | None:
        found = _final(reports, plan)
        return None if found is None else msgspec.structs.replace(found, **changes)

    return final


def no_kin(
    registry: registry_module.Registry, groups: Iterable[GroupId], moves: object
) -> dict[GroupId, tuple[GroupId, ...]]:
    """No group has to wait for another."""
    return dict.fromkeys(groups, ())


# Subscribers


class _Two(set[GroupId]):
    """Holds two groups of an atom for all of them."""

    def issuperset(self, other: Iterable[object]) -> bool:
        """Two are enough."""
        groups = set(other)
        return len(self & groups) >= min(2, len(groups))


def two_will_do(ordering: Ordering, label: int) -> set[GroupId]:
    """An atom is relevant to whoever is in two of its groups."""
    return _Two(_inside(ordering, label))


def deaf_to_where(subscriber: Subscriber, source: NodeId, message: Message) -> None:
    """Do not say how far it has come."""
    if not isinstance(message, Where):
        _on_message(subscriber, source, message)
