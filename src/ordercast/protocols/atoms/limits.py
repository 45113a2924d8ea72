"""What a peer may claim. A message that no correct peer sends is refused before anything changes.

All processes of a cluster have its key, so nobody else sends anything; these bounds keep a single process
that went wrong from stopping the others.
"""

from collections.abc import Collection

from ordercast.core import GroupId, Message, NodeId, RemoteError
from ordercast.protocols.atoms.messages import (
    Alive,
    Copy,
    Entries,
    Forward,
    Got,
    Kept,
    Plans,
    Publish,
    Pull,
    Route,
    Seal,
    Sealed,
    Told,
    Where,
)
from ordercast.protocols.atoms.records import NOBODY, GroupPlan, GroupReport, Post

_FROM_STORE = (Plans, Seal, Copy, Told)
_FROM_NODES = (Forward, Entries, Where, Pull, Kept, Alive, Sealed)


class Limits:
    """Who may send what."""

    __slots__ = ("_groups", "_store", "nodes")

    def __init__(
        self, groups: Collection[GroupId], nodes: Collection[NodeId], store: Collection[NodeId]
    ) -> None:
        self._groups = frozenset(groups)
        self.nodes = frozenset(nodes)
        self._store = frozenset(store)

    def check(self, source: NodeId, message: Message) -> None:
        """Refuse what this source does not send, and what is about a group that does not exist."""
        if isinstance(message, _FROM_STORE) and source not in self._store:
            raise RemoteError(f"node {source} is no store, but sent {type(message).__name__}")
        if isinstance(message, _FROM_NODES) and source not in self.nodes:
            raise RemoteError(f"node {source} is no sequencing node, but sent {type(message).__name__}")
        group = getattr(message, "group", None)
        if group is not None and group not in self._groups:
            raise RemoteError(f"node {source} names group {group}, which does not exist")
        match message:
            case Got(received=received, delivered=delivered) if delivered > received:
                raise RemoteError(f"node {source} has delivered more than it has received")
            case Publish(number=number, floor=floor) if floor > number:
                raise RemoteError(f"node {source} sends number {number}, but needs no answer below {floor}")
            case Route(ingress=ingress) if ingress != NOBODY and ingress not in self.nodes:
                raise RemoteError(f"node {source} names node {ingress}, which is no sequencing node")
            case Plans(since=since, upto=upto, latest=latest) if not since <= upto <= latest:
                raise RemoteError(f"node {source} sends plans from {since} to {upto} of {latest}")
            case Sealed(post=post) if post.node != source:
                raise RemoteError(f"node {source} reports in the name of node {post.node}")

    def check_stage(self, source: NodeId, message: Forward, plan: GroupPlan, mine: Post) -> None:
        """Refuse a message that is on another way than the plan says."""
        posts = [*(hop.post for hop in plan.hops), *plan.holders[1:]]
        stage = message.stage
        if not 0 < stage < len(posts) or posts[stage] != mine or posts[stage - 1].node != source:
            raise RemoteError(f"node {source} sent a message of group {plan.group} on a wrong way")
        if message.position <= plan.base:
            raise RemoteError(f"node {source} sent position {message.position} of epoch {plan.label}")

    def check_report(self, source: NodeId, report: GroupReport, plan: GroupPlan) -> None:
        """Refuse a report that contradicts the plan."""
        if report.next and report.next <= plan.base:
            raise RemoteError(f"node {source} reports position {report.next} of epoch {plan.label}")
