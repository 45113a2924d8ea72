"""View synchrony.

The definition of vs-multicast in the hybrid paper, section 5: if some process p of view V(i)
delivered m in V(i) and installed V(i+1), then all processes of V(i) that installed V(i+1) delivered
m before installing it. With it go the usual properties of views (Chockler, Keidar and Vitenberg,
"Group communication specifications"): a configuration has the same members everywhere, numbers grow
at each node, a node installs only views that it is in, and a message is delivered in one view only,
everywhere. If views tell the state of their group, it is the same at all nodes: a newcomer has the state of
the others. If only a majority may go on, every view has one as members: of the receivers of its group, or of
all receivers, as `crashes` says. That is judged if receivers do not come and go.

A node may install one view that leaves it out: the one that follows a view that it was in. This tells the
node that it is excluded. From then on it must deliver no message of the group until it is in a view again,
except messages that also go to another group of the node.

Two nodes are compared between v and v' if each installed v' next after v and did not crash in
between. What a node delivers before its first view is not judged.
"""

from collections.abc import Collection, Mapping

from ordercast.core import (
    Crashes,
    GroupId,
    MessageId,
    Nanos,
    NodeId,
    Partition,
    format_ns,
    message_name,
)
from ordercast.judge.finding import listed, message_at, messages_named
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import ADDED, CARRYING, LEAVING, LOST, REMOVED, REQUESTS, Event, Kind


class _Stay:
    """A node's time in one view of a group."""

    __slots__ = ("config", "delivered", "excluded", "whole")

    def __init__(self, config: int, excluded: bool) -> None:
        self.config = config
        self.excluded = excluded
        """The view leaves the node out."""
        self.delivered: dict[MessageId, Nanos] = {}
        self.whole = True
        """The node did not crash during the stay."""


class ViewSynchrony(Oracle):
    """Nodes that go from one view to the next together deliver the same messages in between."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._receives = case.members
        self._members: dict[tuple[GroupId, int], tuple[NodeId, tuple[NodeId, ...]]] = {}
        self._stays: dict[tuple[NodeId, GroupId], _Stay] = {}
        self._moves: dict[tuple[GroupId, int, int], tuple[NodeId, dict[MessageId, Nanos]]] = {}
        self._seen_in: dict[tuple[GroupId, MessageId], tuple[int, NodeId, Nanos]] = {}
        self._states: dict[tuple[GroupId, int], tuple[NodeId, int]] = {}
        self._begun: set[NodeId] = set()
        """The nodes that have installed a view."""
        self._unsettled: set[NodeId] = {*case.description.removed}
        """The nodes that came later, were removed, or asked to join or to leave."""

    def handlers(self) -> dict[Kind, Handler]:
        """Views, deliveries, and the crashes that interrupt a stay."""
        return {
            Kind.VIEW: self._on_view,
            **dict.fromkeys(CARRYING, self._on_deliver),
            Kind.CRASH: self._on_crash,
            Kind.RECOVER: self._on_recover,
            **dict.fromkeys(REQUESTS, self._on_request),
            **dict.fromkeys(LEAVING, self._on_left),
        }

    def _on_request(self, event: Event) -> None:
        self._unsettled.add(event.node)

    def _on_left(self, event: Event) -> None:
        """A node left a group, with a view that leaves it out or, if it begins anew, without one."""
        for group in event.groups or ():
            stay = self._stays.get((event.node, group))
            if stay is not None and not stay.excluded:
                del self._stays[event.node, group]

    def _on_view(self, event: Event) -> None:
        config = event.config or 0
        self._begun.add(event.node)
        for group in event.groups or ():
            self._judge_view(event, group, config)
            if event.stamp_clock is not None and event.label not in (ADDED, REMOVED):
                self._judge_state(event, group, config, event.stamp_clock)
            stay = self._stays.get((event.node, group))
            excluded = event.node not in (event.members or ())
            inside = stay is not None and not stay.excluded and not excluded
            if stay is not None and inside and stay.whole and stay.config < config:
                self._judge_move(event, group, stay, config)
            self._stays[event.node, group] = _Stay(config, excluded)

    def _judge_view(self, event: Event, group: GroupId, config: int) -> None:
        members = tuple(sorted(event.members or ()))
        what = f"node {event.node} installed view {config} of group {group}"
        first, known = self._members.setdefault((group, config), (event.node, members))
        if known != members:
            self._tell(
                event,
                (event.node, first),
                f"{what} with members {listed(members)}, node {first} with {listed(known)}",
            )
        stay = self._stays.get((event.node, group))
        if event.node not in members and (stay is None or stay.excluded):
            self._tell(event, (event.node,), f"{what}, which has only the members {listed(members)}")
        if stay is not None and stay.config >= config:
            self._tell(event, (event.node,), f"{what} while it was in view {stay.config}")

    def _judge_state(self, event: Event, group: GroupId, config: int, state: int) -> None:
        first, known = self._states.setdefault((group, config), (event.node, state))
        if known != state:
            self._tell(
                event,
                (event.node, first),
                f"node {event.node} installed view {config} of group {group} with the state {state},"
                f" node {first} with the state {known}",
            )

    def finish(self) -> None:
        """Judge whether a minority went on."""
        promised, groups = self.description.guarantees, self.description.groups
        if promised.partition is not Partition.MAJORITY_CONTINUES:
            return
        together = promised.crashes is Crashes.MINORITY_OF_ALL
        for config in sorted({config for _, config in self._members}):
            known = {g: self._members[g, config][1] for g in groups if (g, config) in self._members}
            if together and known.keys() == groups.keys():
                self._judge_size(config, _union(known), _union(groups))
            elif not together:
                for group, members in known.items():
                    self._judge_size(config, members, groups[group])

    def _judge_size(self, config: int, members: Collection[NodeId], receivers: Collection[NodeId]) -> None:
        counted = self._unsettled.union(receivers)
        here = sorted(counted & self._unsettled.union(members))
        if 2 * len(here) <= len(counted):
            detail = (
                f"view {config} has only the members {listed(here)}, no majority of the receivers"
                f" {listed(sorted(counted))}"
            )
            self.report(tuple(here), (), (), detail, at_end=True)

    def _judge_move(self, event: Event, group: GroupId, stay: _Stay, config: int) -> None:
        move = (group, stay.config, config)
        first, delivered = self._moves.setdefault(move, (event.node, stay.delivered))
        if delivered.keys() == stay.delivered.keys():
            return
        lacks = [message for message in delivered if message not in stay.delivered]
        extra = [message for message in stay.delivered if message not in delivered]
        parts = [
            f"node {holder} delivered {messages_named(messages)}, but node {other} did not"
            for holder, other, messages in ((first, event.node, lacks), (event.node, first, extra))
            if messages
        ]
        self._tell(
            event,
            (event.node, first),
            f"nodes {event.node} and {first} both went from view {stay.config} of group {group} to"
            f" {config}; in between {', '.join(parts)}",
            (*lacks, *extra),
        )

    def _on_deliver(self, event: Event) -> None:
        message = event.message
        if message is None:
            return
        for group in event.groups or ():
            stay = self._stays.get((event.node, group))
            if stay is None:
                continue
            if stay.excluded:
                if not self._entitled(event):
                    self._tell(
                        event,
                        (event.node,),
                        f"node {event.node} delivered {message_name(message)} of group {group}"
                        f" after view {stay.config}, which leaves it out",
                        (message,),
                    )
                    return
                continue
            stay.delivered[message] = event.time_ns
            here = (stay.config, event.node, event.time_ns)
            config, first, first_ns = self._seen_in.setdefault((group, message), here)
            if config != stay.config:
                self._tell(
                    event,
                    (event.node, first),
                    f"node {event.node} delivered {message_name(message)} in view {stay.config}"
                    f" of group {group}, node {first} delivered"
                    f" {message_at(message, first_ns)} in view {config}",
                    (message,),
                )

    def _entitled(self, event: Event) -> bool:
        """Whether some group of a message is one that the node receives and is not excluded from."""
        return any(
            self._receives.is_in(event.node, group)
            and ((event.node, group) not in self._stays or not self._stays[event.node, group].excluded)
            for group in event.groups or ()
        )

    def _on_crash(self, event: Event) -> None:
        if event.node not in self._begun and event.node in _union(self.description.groups):
            self._unsettled.add(event.node)
        for group in self.description.groups:
            stay = self._stays.get((event.node, group))
            if stay is not None:
                stay.whole = False

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            for group in self.description.groups:
                self._stays.pop((event.node, group), None)

    def _tell(
        self,
        event: Event,
        nodes: tuple[NodeId, ...],
        what: str,
        messages: tuple[MessageId, ...] = (),
    ) -> None:
        self.report(nodes, messages, (event.time_ns,), f"{what} (at {format_ns(event.time_ns)})")


def _union(sets: Mapping[GroupId, Collection[NodeId]]) -> set[NodeId]:
    return {node for nodes in sets.values() for node in nodes}
