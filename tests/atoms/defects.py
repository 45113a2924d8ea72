"""What broken processes do: replacements for methods of the protocol."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ordercast.core import GroupId, Message, NodeId
from ordercast.protocols.atoms import registry as registry_module
from ordercast.protocols.atoms.commands import Final
from ordercast.protocols.atoms.distribution import Distribution
from ordercast.protocols.atoms.log_keeping import LogKeeping
from ordercast.protocols.atoms.messages import Entries, Got, Pull, Seal, Where
from ordercast.protocols.atoms.ordering import Ordering
from ordercast.protocols.atoms.records import GroupPlan, Placed
from ordercast.protocols.atoms.sequencing_node import LIFE, SequencingNode
from ordercast.protocols.atoms.store import StoreReplica
from ordercast.protocols.atoms.subscriber import Subscriber

_on_start = SequencingNode.on_start
_on_seal = SequencingNode._on_seal
_run = SequencingNode._run
_final = StoreReplica._final
_inside = Ordering._inside
_on_got = Distribution.on_got
_on_pull = LogKeeping.on_pull
_on_message = Subscriber.on_message


# Sequencing nodes


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


def answer_no_pull(keeping: LogKeeping, source: NodeId, message: Pull) -> None:
    """Say nothing about what is forgotten."""
    if message.start >= keeping.logs[message.group].low:
        _on_pull(keeping, source, message)


# Distributors


def never_lower(distribution: Distribution, source: NodeId, message: Got) -> None:
    """Believe that what a subscriber has received it keeps for ever."""
    known = distribution.subscribers.get(source)
    if known is not None and message.received < known.received:
        message = Got(message.group, message.delivered, known.received)
    _on_got(distribution, source, message)


# The store


def any_report(store: StoreReplica, plan: GroupPlan) -> Final | None:
    """Take the report of a node that does not keep the log for that of the last holder."""
    reports = store._reports.get((plan.group, plan.label), {})
    others = [post.node for post in reports if post not in plan.holders]
    if not others:
        return None
    store._registry.__dict__["reporter"] = lambda plan: others[0]
    try:
        return _final(store, plan)
    finally:
        del store._registry.__dict__["reporter"]


def reported_parts(store: StoreReplica, plan: GroupPlan) -> Final | None:
    """Forget the parts of those who have not reported."""
    found = _final(store, plan)
    told = store._reports.get((plan.group, plan.label), {})
    if found is None:
        return None
    return msgspec.structs.replace(found, parts=tuple(part for part in found.parts if part.post in told))


def altered_final(**changes: Any) -> Callable[[StoreReplica, GroupPlan], Final | None]:
    """Lose a part of what is known of a log."""

    def final(store: StoreReplica, plan: GroupPlan) -> Final | None:
        found = _final(store, plan)
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
