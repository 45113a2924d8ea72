"""Checks the faults and the changes of members of a scenario against its plan: unknown hosts, nodes and
groups, faults that the protocol does not tolerate, and changes that make no sense."""

from ordercast.core import Fault, GroupId, HostId, Membership, NodeId, Plan
from ordercast.scenario import faults
from ordercast.scenario.changes import ChangeSpec, Join
from ordercast.scenario.crashes import returns
from ordercast.scenario.spec import Scenario, ScenarioError


def beyond_contract(scenario: Scenario, plan: Plan) -> list[Fault]:
    """The faults of a scenario that the protocol does not promise to tolerate."""
    network, clocks, kinds = scenario.network, scenario.clocks, [type(fault) for fault in scenario.fault]
    # The plan says how infrastructure may come back; the guarantees are about receivers.
    # Whether a host with a damaged disk comes back is up to the host.
    damaged = {
        fault.host
        for fault in scenario.fault
        if isinstance(fault, faults.Disk) and fault.what in faults.DAMAGES
    }
    restarts = [
        fault.state
        for fault in scenario.fault
        if isinstance(fault, faults.Restart)
        and fault.state not in returns(plan, fault.host)
        and not (fault.state == "saved" and fault.host in damaged)
    ]
    happened = {
        Fault.LOSS: network.loss > 0,
        Fault.DUPLICATION: network.duplication > 0,
        Fault.REORDERING: network.reordering > 0,
        Fault.PARTITION: faults.Partition in kinds,
        Fault.CRASH: faults.Crash in kinds,
        Fault.RESTART: "saved" in restarts,
        Fault.AMNESIA: "lost" in restarts,
        Fault.PAUSE: faults.Pause in kinds,
        Fault.CLOCK: clocks.skew_us > 0 or clocks.drift_ppm > 0 or faults.SetClock in kinds,
        Fault.DISK: faults.Disk in kinds,
    }
    return [fault for fault, struck in happened.items() if struck and fault not in plan.guarantees.tolerates]


def check_faults(scenario: Scenario, hosts: list[HostId]) -> None:
    """Raise `ScenarioError` if a fault names a host that does not exist."""
    for index, fault in enumerate(scenario.fault):
        named = getattr(fault, "host", None)
        sides = [host for side in getattr(fault, "sides", ()) for host in side]
        for host in [*sides, *([] if named is None else [named])]:
            if host not in hosts:
                key = "sides" if named is None else "host"
                raise ScenarioError(f"fault[{index}].{key}", f"there is no host {host}")


def check_changes(scenario: Scenario, plan: Plan) -> None:
    """Raise `ScenarioError` if a receiver asks to join or to leave a group, and cannot."""
    crashed = {fault.host for fault in scenario.fault if isinstance(fault, faults.Crash)}
    inside = {(node, group) for group, members in plan.groups.items() for node in members}
    for change in scenario.changes:
        key = f"{change.key}[{getattr(scenario, change.key).index(change)}]"
        _check_change(scenario, plan, change, key)
        if plan.nodes[change.node].host not in crashed:  # who crashes may lose what it had asked for
            _check_turn(inside, change, key)


def _check_change(scenario: Scenario, plan: Plan, change: ChangeSpec, key: str) -> None:
    if plan.guarantees.membership is Membership.FIXED:
        raise ScenarioError(key, f"the groups of {plan.protocol} are fixed: nobody can join or leave them")
    if scenario.workload.kind == "closed":
        raise ScenarioError(
            key, "the clients of a closed workload wait for all receivers: no group may change"
        )
    if change.group not in plan.groups:
        raise ScenarioError(f"{key}.group", f"there is no group {change.group}")
    receivers = set(plan.joiners).union(*plan.groups.values())
    if change.node not in receivers:
        raise ScenarioError(f"{key}.node", f"node {change.node} is not a receiver, so it is in no group")
    home = plan.homes.get(change.node, change.group)
    if home != change.group:
        raise ScenarioError(f"{key}.group", f"node {change.node} can only be in group {home}")


def _check_turn(inside: set[tuple[NodeId, GroupId]], change: ChangeSpec, key: str) -> None:
    """Check that a node joins a group that it is not in, or leaves one that it is in; note the change."""
    place = (change.node, change.group)
    if (place in inside) == isinstance(change, Join):
        what = "in it already" if place in inside else "not in it"
        who = f"node {change.node} cannot {change.key} group {change.group} at {change.at_ms:g} ms"
        raise ScenarioError(key, f"{who}, because it is {what}")
    inside ^= {place}
