"""A part of a scenario: the same run with fewer receivers, senders or groups.

The nodes that stay get new numbers, and so do their hosts. Faults, sites and listed messages follow them.
What was about a node or a host that is gone is left out.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

import msgspec

from ordercast.core import GroupId, HostId, NodeId, Plan
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.faults import FaultSpec, Heal, Sides, Weather
from ordercast.scenario.spec import LatencySpec, Scenario, SitesSpec, SubmissionSpec, WorkloadSpec

C = TypeVar("C", Join, Leave)

MakeScenarioPlan = Callable[[Scenario], Plan]
"""Makes the plan of a scenario."""


class _Moves(NamedTuple):
    """The new number of each node, host and group that stays."""

    nodes: dict[NodeId, NodeId]
    hosts: dict[HostId, HostId]
    groups: dict[GroupId, GroupId]


def part_of(
    scenario: Scenario,
    plan_of: MakeScenarioPlan,
    *,
    receivers: Collection[NodeId] = (),
    senders: Collection[int] = (),
    groups: Collection[GroupId] = (),
    apart: bool = False,
) -> Scenario | None:
    """The scenario without these receivers, senders (by place) and groups; None if nobody would be left.

    With `apart`, senders get their own hosts.
    """
    deployment, old = scenario.deployment(), plan_of(scenario)
    stay = [group for group in range(len(deployment.groups)) if group not in groups]
    members = [[node for node in deployment.groups[group] if node not in receivers] for group in stay]
    wanted = [place for place in range(deployment.senders) if place not in senders]
    emptied = any(deployment.groups[group] and not own for group, own in zip(stay, members, strict=True))
    if emptied or not any(members) or not wanted:
        return None
    joiners = [node for node in deployment.joiner_ids() if node not in receivers]
    left = (*sorted({node for own in members for node in own}), *joiners)
    renumbered = {node: new for new, node in enumerate(left)}
    smaller = msgspec.structs.replace(
        scenario,
        membership=tuple(tuple(renumbered[node] for node in own) for own in members),
        senders=len(wanted),
        colocated=scenario.colocated and not apart,
        fault=(),
        joiners=len(joiners),
        join=(),
        leave=(),
    )
    smaller = msgspec.structs.replace(smaller, workload=_narrowed(smaller.workload, len(stay)))
    new = plan_of(smaller)
    first, first_now = deployment.receivers, len(renumbered)
    nodes = renumbered | {first + place: first_now + now for now, place in enumerate(wanted)}
    nodes |= _others(old, new, first + deployment.senders, first_now + len(wanted))
    moves = _Moves(nodes, _hosts(old, new, nodes), {group: now for now, group in enumerate(stay)})
    if len(old.groups) != len(deployment.groups):  # the plan has groups of its own
        moves = moves._replace(groups={group: group for group in new.groups})
    return _moved(scenario, smaller, moves, old, new)


def _narrowed(spec: WorkloadSpec, groups: int) -> WorkloadSpec:
    return msgspec.structs.replace(spec, spread=spec.spread[:groups])


def _others(old: Plan, new: Plan, start: NodeId, start_now: NodeId) -> dict[NodeId, NodeId]:
    """Nodes that are neither receivers nor senders of the deployment, by their role and place in it."""
    now: dict[str, list[NodeId]] = {}
    for node in new.nodes[start_now:]:
        now.setdefault(node.role, []).append(node.id)
    moved: dict[NodeId, NodeId] = {}
    for node in old.nodes[start:]:
        if now.get(node.role):
            moved[node.id] = now[node.role].pop(0)
    return moved


def _hosts(old: Plan, new: Plan, nodes: dict[NodeId, NodeId]) -> dict[HostId, HostId]:
    hosts: dict[HostId, HostId] = {}
    for node in old.nodes:
        if nodes.get(node.id, len(new.nodes)) < len(new.nodes):
            hosts.setdefault(node.host, new.nodes[nodes[node.id]].host)
    return hosts


def _moved(scenario: Scenario, smaller: Scenario, moves: _Moves, old: Plan, new: Plan) -> Scenario:
    faults = (_moved_fault(fault, moves.hosts) for fault in scenario.fault)
    listed = (_moved_submission(one, moves, old, new) for one in scenario.workload.submission)
    return msgspec.structs.replace(
        _without_membership(smaller),
        fault=tuple(fault for fault in faults if fault is not None),
        join=_moved_changes(scenario.join, moves),
        leave=_moved_changes(scenario.leave, moves),
        workload=msgspec.structs.replace(
            smaller.workload, submission=tuple(one for one in listed if one is not None)
        ),
        network=msgspec.structs.replace(
            scenario.network, latency=_moved_latency(scenario.network.latency, moves.hosts)
        ),
    )


def _without_membership(scenario: Scenario) -> Scenario:
    """The same deployment by numbers alone, if they can say it."""
    groups = scenario.membership
    if not groups[0]:
        return scenario
    plain = msgspec.structs.replace(scenario, membership=(), groups=len(groups), receivers=len(groups[0]))
    return plain if plain.deployment() == scenario.deployment() else scenario


def _moved_fault(fault: FaultSpec, hosts: dict[HostId, HostId]) -> FaultSpec | None:
    match fault:
        case Heal() | Weather():
            return fault
        case Sides():
            sides = (tuple(hosts[host] for host in side if host in hosts) for side in fault.sides)
            left = tuple(side for side in sides if side)
            distinct = {host for side in left for host in side}
            if len(left) < 2 or len(distinct) != sum(map(len, left)):
                return None
            return msgspec.structs.replace(fault, sides=left)
        case _:
            if fault.host not in hosts:
                return None
            return msgspec.structs.replace(fault, host=hosts[fault.host])


def _moved_changes(changes: tuple[C, ...], moves: _Moves) -> tuple[C, ...]:
    return tuple(
        msgspec.structs.replace(one, node=moves.nodes[one.node], group=moves.groups[one.group])
        for one in changes
        if one.node in moves.nodes and one.group in moves.groups
    )


def _moved_submission(one: SubmissionSpec, moves: _Moves, old: Plan, new: Plan) -> SubmissionSpec | None:
    sender = moves.nodes.get(old.senders[one.sender])
    groups = tuple(moves.groups[group] for group in one.groups if group in moves.groups)
    if sender not in new.senders or not groups:
        return None
    return msgspec.structs.replace(one, sender=new.senders.index(sender), groups=groups)


def _moved_latency(spec: LatencySpec, hosts: dict[HostId, HostId]) -> LatencySpec:
    if not isinstance(spec, SitesSpec):
        return spec
    sites = (tuple(hosts[host] for host in site if host in hosts) for site in spec.sites)
    return msgspec.structs.replace(spec, sites=tuple(sites))
