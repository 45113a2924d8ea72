"""What a trace must say of its run, so that a stranger can judge it: `run.json` beside the events."""

import msgspec

from ordercast.core import Agreement, GroupId, Guarantees, HostId, NodeId, Plan

FORMAT = 1


class NodeDescription(msgspec.Struct, frozen=True):
    """One node of the run."""

    id: NodeId
    role: str
    host: HostId


class RunDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One run: who took part, what was promised, and whether it came to its end.

    ``complete`` says that every fault had healed and that the run went on until all that should be
    delivered could be: promises about the end (agreement, validity) are judged only then. ``settled`` says
    less, of a run that is not complete: nodes were missing at its end, each of which had taken part, but
    nothing was under way among the others.
    """

    format: int = FORMAT
    run: str
    source: str
    protocol: str
    seed: int | None = None
    guarantees: Guarantees
    nodes: tuple[NodeDescription, ...]
    groups: dict[GroupId, tuple[NodeId, ...]]
    complete: bool
    settled: bool = False
    trace_hash: str | None = None
    scenario: dict[str, object] = msgspec.field(default_factory=dict)

    @property
    def may_have_holes(self) -> bool:
        """Whether agreement is promised with a probability only."""
        return self.guarantees.agreement is Agreement.PROBABILISTIC

    @property
    def counts_holes(self) -> bool:
        """Whether what is missing at the end will not come any more, and is to be counted."""
        return self.may_have_holes and (self.complete or self.settled)


def describe(plan: Plan, *, run: str, source: str, seed: int | None, complete: bool) -> RunDescription:
    """The description of a run of this plan."""
    return RunDescription(
        run=run,
        source=source,
        protocol=plan.protocol,
        seed=seed,
        guarantees=plan.guarantees,
        nodes=tuple(NodeDescription(node.id, node.role, node.host) for node in plan.nodes),
        groups={group: tuple(members) for group, members in plan.groups.items()},
        complete=complete,
    )
