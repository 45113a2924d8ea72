"""A run that was recorded, simulated or live, as something to run again: its scenario and its submissions."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import Groups, LocalError, Nanos, NodeId
from ordercast.sim.scenario import Scenario, WorkloadSpec, to_scenario
from ordercast.sim.workload import Destinations, Workload
from ordercast.sim.world import World
from ordercast.trace import Kind, RunDescription, StoredRun, find_runs


class Submission(NamedTuple):
    """A message that a sender submits, so long after the start of a run."""

    at_ns: Nanos
    sender: NodeId
    groups: Groups
    size: int


def scenario_of(folder: Path) -> Scenario:
    """The scenario of a recorded run, with its submissions as the workload.

    A trace that has no scenario, as that of a cluster, says at least who took part; the options of its
    protocol are then taken to be the defaults.
    """
    run = _only(folder)
    described = run.description
    content = dict(described.scenario) or _without_scenario(described)
    spec = msgspec.convert(content.get("workload", {}), WorkloadSpec)
    count = len(submissions_of(folder))
    content["workload"] = msgspec.to_builtins(
        msgspec.structs.replace(spec, kind="trace", file=str(folder.absolute()), messages=count)
    )
    scenario = to_scenario(content)
    nodes = [(node.id, node.role, node.host) for node in described.nodes]
    if [(node.id, node.role, node.host) for node in scenario.plan().nodes] != nodes:
        raise LocalError(
            f"{folder}: the trace does not say with which options {described.protocol} ran,"
            " and with the defaults it has other nodes"
        )
    return scenario


def submissions_of(folder: Path) -> list[Submission]:
    """What was submitted in a recorded run, in order of time.

    Times of a simulated run count from its start; those of a live run, which are readings of clocks, from
    the first submission.
    """
    run = _only(folder)
    table = run.table(["message", "groups", "size"])
    table = table.filter(pc.equal(table["kind"].cast(pa.string()), Kind.SUBMIT))
    first = 0
    if run.description.source != "simulator" and len(table):
        first = pc.min(table["time_ns"]).as_py()
    columns = [table[name].to_pylist() for name in ("time_ns", "node", "groups", "size")]
    found = [
        Submission(max(0, time - first), node, tuple(groups or ()), size or 0)
        for time, node, groups, size in zip(*columns, strict=True)
    ]
    return sorted(found, key=lambda submission: submission.at_ns)


def _only(folder: Path) -> StoredRun:
    run, *more = find_runs(folder)
    if more:
        raise LocalError(f"{folder}: several runs; name the folder of one")
    return run


def _without_scenario(described: RunDescription) -> dict[str, Any]:
    receivers = {node for members in described.groups.values() for node in members}
    after = [node for node in described.nodes if node.id not in receivers]
    senders = [node for node in after if node.role == after[0].role]
    if not senders:
        raise LocalError(f"the run {described.run} has no sender")
    return {
        "protocol": described.protocol,
        "membership": [list(described.groups[group]) for group in sorted(described.groups)],
        "senders": len(senders),
        "colocated": senders[0].host in {node.host for node in described.nodes if node.id in receivers},
    }


class Replayed(Workload):
    """Submits what was submitted before: the same senders, times, groups and sizes."""

    def __init__(self, world: World, submissions: list[Submission]) -> None:
        super().__init__(world, Destinations(sorted(world.plan.groups)), len(submissions), 0)
        for submission in submissions:
            check_submission(submission, world.plan.senders, world.plan.groups)
        self._submissions = submissions
        self._next = 0

    def start(self) -> None:
        """Wait for the first."""
        self._wait()

    @property
    def finished(self) -> bool:
        """True when all were submitted."""
        return self.remaining <= 0

    def _wait(self) -> None:
        if self._next < len(self._submissions):
            submission = self._submissions[self._next]
            self.world.scheduler.at(max(self.world.now, submission.at_ns), self._arrive, submission)

    def _arrive(self, submission: Submission) -> None:
        self._next += 1
        self.remaining -= 1
        payload = numbered_payload(self._next, submission.size)
        self.world.submit(submission.sender, submission.groups, payload)
        self._wait()


def numbered_payload(number: int, size: int) -> bytes:
    """The bytes of a message: its number, as far as it fits, and zeros."""
    return number.to_bytes(8, "little")[:size] + bytes(max(0, size - 8))


def check_submission(submission: Submission, senders: Any, groups: Any) -> None:
    """`LocalError` if a plan has no such sender or group."""
    if submission.sender not in senders:
        raise LocalError(f"the trace has a submission of node {submission.sender}, which is no sender here")
    unknown = [group for group in submission.groups if group not in groups]
    if unknown or not submission.groups:
        raise LocalError(f"the trace has a submission to groups {submission.groups}, which are not here")
