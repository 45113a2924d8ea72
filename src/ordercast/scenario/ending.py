"""The end of a run: whether it is complete, and if not, why.

Promises about the end (agreement, validity) are judged only if a run is complete. A run is not complete if it
ended under conditions in which the protocol does not promise to make progress.
"""

from collections.abc import Callable, Set
from typing import Literal, NamedTuple, TypeAlias

from ordercast.core import Agreement, HostId, NodeId, Partition, Plan
from ordercast.scenario.crashes import by_role, counted_together, too_many
from ordercast.scenario.spec import Scenario

Ending: TypeAlias = Literal[
    "settled",
    "settled after healing",
    "settled without crashed nodes",
    "deliveries missing",
    "protocol failed",
]
"""How a run ended: all expected deliveries came under the conditions of the scenario, or only after the
network had become good, or all but what crashed nodes lack or had submitted, or others never came; or a
handler of the protocol raised an exception."""


def ending_of(*, missing: bool, healed: bool, only_crashed: bool = False) -> Ending:
    """How a run ended, by whether deliveries are missing, if only to crashed nodes or of them, or came only
    after the network healed."""
    if missing:
        return "settled without crashed nodes" if only_crashed else "deliveries missing"
    return "settled after healing" if healed else "settled"


def may_branch(scenario: Scenario, plan: Plan) -> bool:
    """Whether the receivers of a group may split, and discard what some of them delivered.

    Then nobody can tell before the end which deliveries are to come, and that all have come does not mean
    that the sides have met again: only silence shows the end.
    """
    discards = plan.guarantees.partition is Partition.SIDE_BRANCHES_DISCARDED
    return discards and bool(scenario.fault or scenario.network.loss)


def hindrance_of(plan: Plan, down: Set[NodeId], *, finished: bool, cut: bool) -> str:
    """Why a run is not complete; empty if it is.

    `finished` says whether the workload finished, `down` which nodes were down at the end, and `cut` whether
    a partition was still in force.
    """
    if not finished:
        return "the workload had not finished"
    if cut:
        return "a partition was still in force"
    for circle, members in counted_together(plan).items():
        missing = [node for node in members if node in down]
        if too_many(plan.guarantees.crashes, len(missing), len(members)):
            return f"too many receivers of {circle} were down: {', '.join(map(str, missing))}"
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
    """Hosts that had taken part and were missing at the end, if the run settled without them."""


def cluster_finish(
    plan: Plan, took_part: Set[HostId], gone: Set[HostId], *, dead: bool, settle: Callable[[], bool]
) -> Finish:
    """The end of the run of a cluster, which has no scenario.

    The run is not complete if a host is missing: one that is dead, or that its application has left or never
    joined. Then only holes are counted, and only if every receiver has taken part. `settle` waits until
    nothing more is delivered. It is called only if the result depends on it.
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
