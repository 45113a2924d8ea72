"""Recorded runs, simulated or live: their scenario and their submissions, to run them again."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import LocalError
from ordercast.scenario.spec import Scenario, WorkloadSpec, to_scenario
from ordercast.scenario.submission import Submission
from ordercast.trace import Kind, RunDescription, StoredRun, find_runs


def scenario_of(folder: Path) -> Scenario:
    """The scenario of a recorded run, with its submissions as the workload.

    The trace of a cluster has no scenario, but it says which nodes took part. Then the protocol's options are
    assumed to be the defaults.
    """
    run = _only(folder)
    described = run.description
    content = dict(described.scenario) or _without_scenario(described)
    spec = msgspec.convert(content.get("workload", {}), WorkloadSpec)
    count = len(submissions_of(folder))
    content["workload"] = msgspec.to_builtins(
        msgspec.structs.replace(spec, kind="trace", file=str(folder.absolute()), messages=count, phase=())
    )
    scenario = to_scenario(content)
    nodes = [(node.id, node.role, node.host) for node in described.nodes]
    if [(node.id, node.role, node.host) for node in scenario.plan().nodes] != nodes:
        raise LocalError(
            f"{folder}: the trace does not say which options {described.protocol} had,"
            " and with the default options its nodes are different"
        )
    return scenario


def submissions_of(folder: Path) -> list[Submission]:
    """The submissions of a recorded run, in order of time.

    The times of a simulated run count from its start. The times of a live run are readings of clocks; they
    count from the first submission.
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
        raise LocalError(f"{folder}: the folder has several runs; name the folder of one run")
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
