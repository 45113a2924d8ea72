"""What a scenario asks beyond a protocol's contract, and when its promises about the end do not hold."""

from collections.abc import Set

from ordercast.core import Fault, HostId, NodeId, Plan
from ordercast.scenario import faults
from ordercast.scenario.crashes import by_role, returns, too_many
from ordercast.scenario.spec import Scenario, ScenarioError


def beyond_contract(scenario: Scenario, plan: Plan) -> list[Fault]:
    """Faults of a scenario that the protocol does not claim to bear."""
    network, clocks, kinds = scenario.network, scenario.clocks, [type(fault) for fault in scenario.fault]
    # Infrastructure may come back as the plan says, whatever the guarantees say of receivers.
    restarts = [
        fault.state
        for fault in scenario.fault
        if isinstance(fault, faults.Restart) and fault.state not in returns(plan, fault.host)
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
    }
    return [fault for fault, struck in happened.items() if struck and fault not in plan.guarantees.tolerates]


def hindrance_of(plan: Plan, down: Set[NodeId], *, cut: bool) -> str:
    """Why a world in which these nodes are down, or the network is cut, need not go on; empty if it must."""
    if cut:
        return "a partition was still in force"
    for group, members in plan.groups.items():
        missing = [node for node in members if node in down]
        if too_many(plan.guarantees.crashes, len(missing), len(members)):
            return f"of group {group}, nodes {', '.join(map(str, missing))} were down"
    for role, nodes in by_role(plan).items():
        missing = [node.id for node in nodes if node.id in down]
        if nodes[0].fails and too_many(nodes[0].fails, len(missing), len(nodes)):
            named = ", ".join(map(str, missing))
            return f"of {len(nodes)} nodes with the role {role}, too many were down: {named}"
    return ""


def check_faults(scenario: Scenario, hosts: list[HostId]) -> None:
    """Refuse faults of hosts that are not there."""
    for index, fault in enumerate(scenario.fault):
        named = getattr(fault, "host", None)
        sides = [host for side in getattr(fault, "sides", ()) for host in side]
        for host in [*sides, *([] if named is None else [named])]:
            if host not in hosts:
                key = "sides" if named is None else "host"
                raise ScenarioError(f"fault[{index}].{key}", f"there is no host {host}")
