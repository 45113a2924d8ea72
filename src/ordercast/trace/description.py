"""The description of a run (`run.json`): what a judge needs to know besides the events."""

import msgspec

from ordercast.core import (
    Agreement,
    GroupId,
    Guarantees,
    HostId,
    Nanos,
    NodeId,
    Plan,
    ProtocolFailure,
)

FORMAT = 1


class NodeDescription(msgspec.Struct, frozen=True):
    """One node of the run."""

    id: NodeId
    role: str
    host: HostId


class Stretch(msgspec.Struct, frozen=True):
    """A stretch of time in which the protocol must go on: enough nodes are up and connected."""

    begin_ns: Nanos
    """From when on submissions count."""
    end_ns: Nanos
    silence_ns: Nanos
    """How long these receivers may be silent after one of these senders submits something to them."""
    senders: tuple[NodeId, ...]
    receivers: tuple[NodeId, ...]

    def counts(self, submitted_ns: Nanos) -> bool:
        """Whether the silence after a submission at this time is judged."""
        return self.begin_ns <= submitted_ns <= self.end_ns - self.silence_ns


class RunDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which nodes took part, what was promised, and whether the run is complete.

    ``complete``: every fault had healed, and the run went on until everything that should be delivered could
    be. Promises about the end (agreement, validity) are judged only then. ``settled`` is for a run that is
    not complete: some nodes that had taken part were missing at its end, but nothing was under way among the
    others.
    """

    format: int = FORMAT
    run: str
    source: str
    protocol: str
    service: str = ""
    """The name of the service that the run replicates; empty if it has none."""
    seed: int | None = None
    guarantees: Guarantees
    nodes: tuple[NodeDescription, ...]
    groups: dict[GroupId, tuple[NodeId, ...]]
    complete: bool
    settled: bool = False
    stretches: tuple[Stretch, ...] = ()
    """The stretches in which silence is judged; none if the run is not judged for liveness."""
    probed: bool = False
    """Whether probes were submitted at the end."""
    resumed: tuple[NodeId, ...] = ()
    """Nodes that had lives before this run. They may have saved state, such as their place in the order. What
    they did before is in the trace of an earlier run."""
    removed: tuple[NodeId, ...] = ()
    """Nodes that were removed from a live cluster before the end of the run."""
    one_clock: tuple[tuple[HostId, ...], ...] = ()
    """Hosts of a live run that have one clock in common, because they are on one machine."""
    trace_hash: str | None = None
    files: dict[str, int] | None = None
    """The number of rows in each of its Parquet files; None if the writer did not count them."""
    scenario: dict[str, object] = msgspec.field(default_factory=dict)
    failure: ProtocolFailure | None = None
    """The exception that ended the run, if a handler of the protocol raised one."""

    @property
    def receivers(self) -> frozenset[NodeId]:
        """The nodes that are in a group, or are of the same role: they may join one."""
        founders = {node for members in self.groups.values() for node in members}
        roles = {node.role for node in self.nodes if node.id in founders}
        return frozenset(node.id for node in self.nodes if node.role in roles)

    @property
    def messages_wanted(self) -> int | None:
        """The number of messages in the workload of a simulated scenario; None if the run has none."""
        workload = self.scenario.get("workload")
        wanted = workload.get("messages") if isinstance(workload, dict) else None
        if isinstance(workload, dict) and workload.get("kind") == "listed":
            wanted = len(workload.get("submission", ()))
        return wanted if self.source == "simulator" and isinstance(wanted, int) else None

    def clocks(self) -> dict[NodeId, int]:
        """For each node, the number of its clock. Times of nodes with the same number may be compared."""
        if self.source != "live":
            return dict.fromkeys((node.id for node in self.nodes), 0)
        shared = {host: number for number, hosts in enumerate(self.one_clock) for host in hosts}
        first = len(self.one_clock)
        return {node.id: shared.get(node.host, first + node.host) for node in self.nodes}

    @property
    def may_have_holes(self) -> bool:
        """Whether agreement is promised with a probability only."""
        return self.guarantees.agreement is Agreement.PROBABILISTIC

    @property
    def counts_holes(self) -> bool:
        """Whether holes are counted: messages that are missing at the end will not come any more."""
        return self.may_have_holes and (self.complete or self.settled)


def describe(plan: Plan, *, run: str, source: str, seed: int | None, complete: bool) -> RunDescription:
    """The description of a run of this plan."""
    return RunDescription(
        run=run,
        source=source,
        protocol=plan.protocol,
        service="" if plan.service is None else plan.service.name,
        seed=seed,
        guarantees=plan.guarantees,
        nodes=tuple(NodeDescription(node.id, node.role, node.host) for node in plan.nodes),
        groups={group: tuple(members) for group, members in plan.groups.items()},
        complete=complete,
    )
