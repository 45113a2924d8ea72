"""What may be said of a run at its end: whether it is complete, and if not, why.

The promises about the end (agreement, validity) are judged if a run is complete. It is not while the world is
one in which the protocol did not promise to go on.
"""

from collections.abc import Callable, Set
from typing import Literal, NamedTuple, TypeAlias

from ordercast.core import Agreement, HostId, NodeId, Plan
from ordercast.scenario.crashes import by_role, too_many

Ending: TypeAlias = Literal["settled", "settled after healing", "deliveries missing"]
"""How a run ended: everything expected came under the conditions of the scenario, or only after they had
become good, or never."""


def ending_of(*, missing: bool, healed: bool) -> Ending:
    """How a run ended in which deliveries are missing, or came only after healing, or neither."""
    if missing:
        return "deliveries missing"
    return "settled after healing" if healed else "settled"


def hindrance_of(plan: Plan, down: Set[NodeId], *, finished: bool, cut: bool) -> str:
    """Why a run is not complete; empty if it is.

    `finished` says whether the workload came to its end, `down` which nodes were down at the end, and `cut`
    whether a part of the network was cut off.
    """
    if not finished:
        return "the workload had not finished"
    if cut:
        return "a partition was still in force"
    for group, members in plan.groups.items():
        missing = [node for node in members if node in down]
        if too_many(plan.guarantees.crashes, len(missing), len(members)):
            return f"too many receivers of group {group} were down: {', '.join(map(str, missing))}"
    for role, nodes in by_role(plan).items():
        missing = [node.id for node in nodes if node.id in down]
        if nodes[0].fails and too_many(nodes[0].fails, len(missing), len(nodes)):
            named = ", ".join(map(str, missing))
            return f"too many of the {len(nodes)} nodes with the role {role} were down: {named}"
    return ""


class Finish(NamedTuple):
    """What the description of a run says about its end (see `RunDescription`)."""

    complete: bool = False
    settled: bool = False
    gone: frozenset[HostId] = frozenset()
    """Hosts that had taken part and were missing, if it settled without them."""


def cluster_finish(
    plan: Plan, took_part: Set[HostId], gone: Set[HostId], *, dead: bool, settle: Callable[[], bool]
) -> Finish:
    """The end of a cluster's run, of which no scenario says what should happen.

    It is not complete if a host is missing: a dead one, or one that an application has left or never joined.
    Then holes alone are of interest, and only if every receiver has taken part. `settle` waits until nothing
    more is delivered, and is called only if that makes a difference.
    """
    if not dead and not gone:
        return Finish(complete=settle())
    probabilistic = plan.guarantees.agreement is Agreement.PROBABILISTIC
    if not probabilistic or not receiving_hosts(plan) <= took_part:
        return Finish()
    return Finish(settled=True, gone=frozenset(gone)) if settle() else Finish()


def receiving_hosts(plan: Plan) -> set[HostId]:
    """The hosts with a receiver."""
    return {plan.nodes[node].host for members in plan.groups.values() for node in members}
