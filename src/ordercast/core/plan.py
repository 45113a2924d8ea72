"""A plan: which node plays which role at which host, and how to make its process.

A protocol package turns a `Deployment` (how many receivers, in which groups, how many senders) into a
`Plan`. The simulator and the live runtime take a plan and nothing else.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import msgspec

from ordercast.core.errors import LocalError
from ordercast.core.extension import Extension
from ordercast.core.guarantees import Consistency, Crashes, Fault, Gaps, Guarantees, Membership
from ordercast.core.ids import NODE_MAX, GroupId, HostId, NodeId
from ordercast.core.message import Codec
from ordercast.core.process import Env, Member, Process
from ordercast.core.service import ServiceSpec
from ordercast.core.time import SECOND, Nanos

Factory = Callable[[Env], Process]


class Pace(NamedTuple):
    """How fast a protocol is on a network that loses nothing, while enough nodes are up and connected."""

    delivery_ns: Nanos
    """A receiver hears something within this time after something is submitted to it."""
    recovery_ns: Nanos
    """That is true from this time on after the last fault."""


def unhurried(delay: Nanos) -> Pace | None:
    """The pace of a plan that says nothing about it: a second, and a hundred times the delay."""
    return Pace(SECOND + 100 * delay, SECOND + 100 * delay)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of a protocol's own options: typed fields with defaults."""

    @property
    def detection_ns(self) -> Nanos:
        """Within this time the others notice that a node has failed; 0 if nobody looks for failures."""
        return 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the user asks for, in terms that all protocols share.

    Receivers are nodes ``0 .. receivers-1`` and senders follow them. ``groups`` lists the receivers of
    each group at the start; groups may overlap where the protocol allows it. A group may have no receiver if
    receivers subscribe to groups.
    """

    groups: tuple[tuple[NodeId, ...], ...]
    senders: int = 1
    colocated: bool = False
    """Put each sender on a receiver's host instead of on its own."""
    joiners: int = 0
    """How many receivers are in no group at the start, and may join later. They follow the other receivers.
    """
    service: ServiceSpec | None = None
    """The service that the receivers of each group replicate; the senders are its clients. None if messages
    are only ordered."""

    def __post_init__(self) -> None:
        if not any(self.groups):
            raise LocalError("a deployment needs at least one group with a receiver")
        if self.senders < 1:
            raise LocalError("a deployment needs at least one sender")
        seen = {node for members in self.groups for node in members}
        if seen != set(range(len(seen))):
            raise LocalError("the receivers of a deployment must be numbered from 0 without gaps")
        if self.joiners < 0:
            raise LocalError("the number of joiners must not be negative")
        if any(len(set(members)) != len(members) for members in self.groups):
            raise LocalError("a receiver is listed twice in one group")

    @classmethod
    def disjoint(cls, groups: int, receivers: int, senders: int, *, colocated: bool = False) -> "Deployment":
        """A deployment with so many groups of so many receivers each; no receiver is in two groups."""
        members = (range(group * receivers, (group + 1) * receivers) for group in range(groups))
        return cls(tuple(tuple(nodes) for nodes in members), senders, colocated)

    @property
    def receivers(self) -> int:
        """How many receivers there are in all groups together, with those that may join later."""
        return 1 + max(node for members in self.groups for node in members) + self.joiners

    def joiner_ids(self) -> tuple[NodeId, ...]:
        """The receivers that are in no group at the start."""
        return tuple(range(self.receivers - self.joiners, self.receivers))

    def home_groups(self, protocol: str) -> dict[NodeId, GroupId]:
        """The group of each receiver, for a protocol whose groups must not overlap."""
        home: dict[NodeId, GroupId] = {}
        for group, nodes in enumerate(self.groups):
            for node in nodes:
                if node in home:
                    both = f"{home[node]} and {group}"
                    raise LocalError(f"{protocol} needs disjoint groups, but receiver {node} is in {both}")
                home[node] = group
        return home

    def sender_ids(self) -> tuple[NodeId, ...]:
        """The nodes of the senders."""
        return tuple(range(self.receivers, self.receivers + self.senders))

    def sender_host(self, sender: NodeId) -> HostId:
        """The host a sender runs on."""
        return (sender - self.receivers) % self.receivers if self.colocated else sender


@dataclass(frozen=True, slots=True)
class Node:
    """One process of a plan."""

    id: NodeId
    role: str
    host: HostId
    factory: Factory
    fails: Crashes | None = None
    """How nodes of this role may fail, if they are infrastructure. The guarantees cover the failures of
    receivers and senders.

    ``ANY``: the nodes keep no important state. Each may crash for good, or come back with or without its
    state, as long as one node is left. ``MINORITY``: the nodes form a quorum. Fewer than half may be down for
    good; others that crash come back with their state. ``ONE``: so do all but one, which may be down for good
    if another one is left. ``NONE``: all nodes that crash come back with their state. None: nothing is
    promised, and the swarm does not crash their hosts.
    """
    spare: bool = False
    """A live cluster starts the node only on request, by an `Action` of the protocol."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a driver needs to run a protocol."""

    protocol: str
    guarantees: Guarantees
    nodes: tuple[Node, ...]
    groups: Mapping[GroupId, tuple[NodeId, ...]]
    senders: tuple[NodeId, ...]
    codec: Codec
    pace: Callable[[Nanos], Pace | None] = unhurried
    """The pace of the protocol, by its own timeouts, on a network that takes at most the given time for a
    packet; None if its options promise nothing there."""
    packets_held_max: int = sys.maxsize
    """How many numbered packets a receiver holds; it may drop more, and notify of them."""
    joiners: tuple[NodeId, ...] = ()
    """Receivers that are in no group at the start, and may join later."""
    homes: Mapping[NodeId, GroupId] = field(default_factory=dict)
    """Receivers that can be in one group only, and in which; all others may join any."""
    removed: frozenset[NodeId] = frozenset()
    """Nodes that were removed from a live cluster. They keep their ids, and take no part any more."""
    changes: int = 0
    """How many times a host has come to the live cluster or was removed, since its first plan."""
    service: ServiceSpec | None = None
    """The service that receivers replicate. Then senders are `Caller`s, and each operation is answered."""
    asks: bool = False
    """Whether operations of the service may ask other groups, and each group may have its own service."""

    def __post_init__(self) -> None:
        if [node.id for node in self.nodes] != list(range(len(self.nodes))):
            raise LocalError(f"{self.protocol}: node ids must be 0, 1, 2, ... in order")
        if len(self.nodes) > NODE_MAX:
            raise LocalError(
                f"{self.protocol}: {len(self.nodes)} nodes are too many; the limit is {NODE_MAX}"
            )
        known = range(len(self.nodes))
        named = self.participants()
        if any(node not in known for node in named):
            raise LocalError(
                f"{self.protocol}: a group or the list of senders names a node that does not exist"
            )
        self._check_membership()
        self._check_service()
        if not self.removed.isdisjoint(named):
            raise LocalError(f"{self.protocol}: a group or the list of senders names a node that was removed")
        fails = {node.role: node.fails for node in self.nodes}
        for node in self.nodes:
            if node.fails is not None and node.id in named:
                raise LocalError(
                    f"{self.protocol}: node {node.id} is a receiver or a sender, so it must not set `fails`"
                )
            if node.fails is not fails[node.role]:
                raise LocalError(f"{self.protocol}: nodes of role {node.role!r} differ in how they may fail")

    def _check_service(self) -> None:
        if self.service is None or self.asks:
            return
        if self.service.parts:
            raise LocalError(f"{self.protocol} replicates one service, not several: {self.service.name}")
        if self.service.asks:
            raise LocalError(
                f"{self.protocol} cannot replicate {self.service.name}, whose operations ask other services"
            )

    def _check_membership(self) -> None:
        promised = self.guarantees
        if promised.membership is Membership.FIXED and self.joiners:
            raise LocalError(f"the groups of {self.protocol} are fixed, so nobody can join them later")
        if promised.membership is not Membership.FIXED and promised.gaps is Gaps.NOTIFIED:
            raise LocalError(
                f"{self.protocol}: where receivers join later, nobody knows where their numbers begin, so"
                " gaps cannot be notified"
            )

    @property
    def groups_max(self) -> int:
        """The most groups that one message can go to."""
        promised = self.guarantees.groups_max
        return len(self.groups) if promised is None else min(promised, len(self.groups))

    @property
    def shards(self) -> int:
        """Into how many shards a service is cut; 0 if each group has a service of its own."""
        sharded = self.guarantees.consistency in (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)
        return len(self.groups) if sharded else 0

    def infrastructure(self) -> tuple[Node, ...]:
        """The nodes that are neither receivers nor senders, and were not removed."""
        named = self.participants() | self.removed
        return tuple(node for node in self.nodes if node.id not in named)

    def participants(self) -> frozenset[NodeId]:
        """The receivers, also those that may join later, and the senders."""
        return frozenset((*self.senders, *self.joiners)).union(*self.groups.values())

    def present(self) -> dict[NodeId, str]:
        """The role of each node that was not removed."""
        return {node.id: node.role for node in self.nodes if node.id not in self.removed}

    def must_remember(self, host: HostId) -> tuple[Node, ...]:
        """The nodes of a host whose later lives must have the state that earlier ones saved."""
        forgets = Fault.AMNESIA in self.guarantees.tolerates
        named = self.participants()
        return tuple(
            node
            for node in self.nodes
            if node.host == host and not (forgets if node.id in named else node.fails is Crashes.ANY)
        )

    def member(self, process: Process) -> Member:
        """The process of a sender as a `Member`, to which an application submits messages."""
        if not isinstance(process, Member):
            raise LocalError(f"{self.protocol}: {type(process).__name__} takes no messages")
        return process


def screen_groups(
    protocol: str, membership: Membership, groups: Mapping[GroupId, tuple[NodeId, ...]]
) -> None:
    """Refuse groups without a receiver that a user asks for, unless receivers subscribe: then they may come
    later. A protocol may add groups without any to its plan."""
    empty = [group for group, members in groups.items() if not members]
    if empty and membership is not Membership.SUBSCRIPTIONS:
        raise LocalError(f"group {empty[0]} has no receiver; {protocol} needs one in every group")


@dataclass(frozen=True, slots=True)
class Action:
    """A command of one protocol for its live clusters: it starts a spare host."""

    name: str
    summary: str
    roles: frozenset[str]
    """The command starts the first spare host that has a node with one of these roles."""


def _the_defaults(rng: Random) -> dict[str, object]:
    return {}


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol as users see it: its name, its guarantees, its options, and its deployment."""

    name: str
    summary: str
    paper: str
    guarantees: Guarantees
    options: type[Options]
    deploy: Callable[[Deployment, Options], Plan]
    roles: tuple[str, ...]
    serves: bool = False
    """Whether it replicates services: a deployment may have one."""
    vary: Callable[[Random], dict[str, object]] = _the_defaults
    """Draws options for a seed of the swarm, so that seeds differ in their options too. Options that it does
    not draw keep their defaults."""
    live: Mapping[str, object] = field(default_factory=dict)
    """Options with a different default on real machines, mostly timeouts: a live process may wait for a CPU
    for many milliseconds without being dead."""
    new_cluster: Mapping[str, object] = field(default_factory=dict)
    """Options that are written into the file of a new cluster."""
    with_programs: Mapping[str, object] = field(default_factory=dict)
    """More options for the file of a new cluster in which programs come and go as receivers."""
    actions: tuple[Action, ...] = ()
    newcomers: tuple[str, ...] = ()
    """The roles of nodes that may come to a live cluster or be removed; the first is the usual one."""
    extend: Callable[[Deployment, Options, Extension], Plan] | None = None
    """Deploys with nodes that came later and without nodes that were removed, if `newcomers` names roles."""
    stands_on: Callable[[Mapping[str, object]], "Protocol"] | None = None
    """For a layer: the protocol below it, by the options that were chosen. The layer's option `below` has the
    options of that protocol."""

    def all_actions(self, chosen: Mapping[str, object]) -> tuple[Action, ...]:
        """The actions of this protocol, and of those that it stands on with these options."""
        if self.stands_on is None:
            return self.actions
        return (*self.actions, *self.stands_on(chosen).all_actions(_below(chosen)))

    def base(self, chosen: Mapping[str, object]) -> "Protocol":
        """The protocol that all layers stand on with these options; this one, if it is not a layer."""
        return self if self.stands_on is None else self.stands_on(chosen).base(_below(chosen))

    def all_newcomers(self, chosen: Mapping[str, object]) -> tuple[str, ...]:
        """The roles of newcomers of this protocol, or of the one that it stands on with these options."""
        return (
            self.newcomers if self.stands_on is None else self.stands_on(chosen).all_newcomers(_below(chosen))
        )

    def deploy_extended(self, deployment: Deployment, options: Options, extension: Extension) -> Plan:
        """The plan after all changes so far; `LocalError` if the protocol takes no changes."""
        if extension == Extension():
            return self.deploy(deployment, options)
        if self.extend is None:
            raise LocalError(
                f"{self.name} cannot take in or remove hosts while it runs: its hosts are fixed by the file"
            )
        for new in extension.added:
            if new.role not in self.newcomers and self.stands_on is None:
                raise LocalError(
                    f"{self.name} takes in no {new.role}; it takes in: {', '.join(self.newcomers)}"
                )
        return self.extend(deployment, options, extension)

    def action(self, name: str, chosen: Mapping[str, object]) -> Action:
        """The action with this name, or `LocalError` with a list of all names."""
        known = self.all_actions(chosen)
        for action in known:
            if action.name == name:
                return action
        names = ", ".join(action.name for action in known) or "none"
        raise LocalError(f"{self.name} has no action '{name}'; its actions are: {names}")

    def cluster_options(self, chosen: Mapping[str, object], *, programs: bool) -> dict[str, object]:
        """The options for the file of a new cluster: the chosen ones, and those that the protocol adds."""
        options = {**self.new_cluster, **(self.with_programs if programs else {}), **chosen}
        if self.stands_on is not None:
            below = self.stands_on(chosen).cluster_options(_below(chosen), programs=programs)
            options |= {"below": below} if below else {}
        return options

    def live_options(self, chosen: Mapping[str, object]) -> dict[str, object]:
        """The options for a live cluster: the chosen ones, and the live defaults for the others."""
        merged = {**self.live, **chosen}
        for name, default in self.live.items():
            value = chosen.get(name)
            if isinstance(default, Mapping) and isinstance(value, Mapping):
                merged[name] = {**default, **value}
        if self.stands_on is not None:
            merged["below"] = self.stands_on(chosen).live_options(_below(merged))
        return merged


def _below(options: Mapping[str, object]) -> Mapping[str, object]:
    """The options of the protocol below, among those of a layer."""
    below = options.get("below", {})
    return below if isinstance(below, Mapping) else {}
