"""Which processes of a plan share a host, and at which hosts faults strike that name a role."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ordercast.core import HostId, LocalError, Plan
from ordercast.toml_file import KeyedError

ROLE, PLACE = "role", "place"


def share_hosts(plan: Plan) -> Plan:
    """The plan with receiver k of every group on one host, and with it whatever was on their hosts."""
    longest = max(plan.groups.values(), key=len)
    shared: dict[HostId, HostId] = {}
    for members in plan.groups.values():
        for one, other in zip(members, longest, strict=False):
            home = plan.nodes[other].host
            if shared.setdefault(plan.nodes[one].host, home) != home:
                raise LocalError(f"groups that overlap cannot share hosts, and node {one} is in two of them")
    return replace(plan, nodes=tuple(replace(n, host=shared.get(n.host, n.host)) for n in plan.nodes))


def names_role(fault: object) -> bool:
    """Whether a fault of a file names a role instead of a host."""
    return isinstance(fault, Mapping) and ROLE in fault


def place_faults(faults: Sequence[object], plan: Plan) -> list[object]:
    """The faults of a file, each at a host; a wrong role or place raises `KeyedError`."""
    return [_placed(index, fault, plan) for index, fault in enumerate(faults)]


def _placed(index: int, fault: object, plan: Plan) -> object:
    if not isinstance(fault, Mapping) or ROLE not in fault:
        return fault
    if "host" in fault:
        raise KeyedError(f"fault[{index}].host", "a fault is at a host or at a role: give one of both")
    rest: dict[str, Any] = {key: value for key, value in fault.items() if key not in (ROLE, PLACE)}
    return rest | {"host": _host(index, fault[ROLE], fault.get(PLACE, 0), plan)}


def _host(index: int, role: object, place: object, plan: Plan) -> HostId:
    """The host of the node with this role at this place among them."""
    nodes = [node for node in plan.nodes if node.role == role]
    if not nodes:
        known = ", ".join(sorted({node.role for node in plan.nodes}))
        what = f"{plan.protocol} has no role {role}; its roles are: {known}"
        raise KeyedError(f"fault[{index}].{ROLE}", what)
    if not isinstance(place, int) or not 0 <= place < len(nodes):
        what = f"there is no {role} {place!r}; they are counted from 0 to {len(nodes) - 1}"
        raise KeyedError(f"fault[{index}].{PLACE}", what)
    return nodes[place].host
