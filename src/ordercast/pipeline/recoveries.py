"""How long receivers needed to go on after each fault of a run.

For a fault that strikes at time t, and for each receiver:

- `recovery_ns`: from t to the receiver's first delivery of a message that was submitted at t or later. What
  was under way does not count, because it may have been past what the fault broke. Null if the receiver
  never delivered one: it did not recover, or nothing was submitted to its groups any more (`submitted` is 0).
- `silence_ns`: the longest time without a delivery at the receiver that begins between this fault and the
  next later one. A silence begins with a delivery or with the fault itself, and ends with a delivery, which
  may lie behind the next fault. What follows the last delivery of the run is its end, no silence. Null if
  the receiver delivered nothing after the fault.

`struck` marks receivers on a host that the fault names: after a crash, their recovery includes the time until
the restart. For an open-loop workload both contain the workload's own pauses; compare with a run without
the fault. A heal or a restart is a fault of the scenario as well: its recovery says how long it took until
its good effect was felt.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.deliveries import stored_runs
from ordercast.pipeline.schemas import RECOVERIES
from ordercast.sim.faults import FaultSpec, Partition
from ordercast.trace import CARRYING, Kind, RunDescription, StoredRun


def recoveries(traces: DataFrame) -> DataFrame:
    """RECOVERIES of TRACES: a row for every fault of each run's scenario and every receiver."""
    return traces.select("run", "folder").mapInArrow(_recoveries, RECOVERIES)


def _recoveries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(RECOVERIES)
    for name, run in stored_runs(batches):
        rows = [{"run": name, **row} for row in recoveries_of(run)]
        yield pa.RecordBatch.from_pylist(rows, schema)


def recoveries_of(run: StoredRun) -> list[dict[str, object]]:
    """The rows of one run; none if its scenario is not known or has no faults."""
    faults = msgspec.convert(run.description.scenario.get("fault", ()), tuple[FaultSpec, ...])
    if not faults:
        return []
    table = run.table(["groups", "submitted_ns"])
    kinds = table["kind"].cast(pa.string())
    sent = _submissions(table.filter(pc.equal(kinds, Kind.SUBMIT)), run.description)
    delivered = table.filter(pc.is_in(kinds, pa.array(CARRYING, pa.string())))
    # Without nulls, for with them NumPy would make floats of the times, and round them.
    delivered = delivered.filter(pc.is_valid(delivered["submitted_ns"]))
    nodes, times, submitted = (delivered[name].to_numpy() for name in ("node", "time_ns", "submitted_ns"))
    strikes = sorted({fault.at_ns for fault in faults})
    ends = dict(zip(strikes, [*strikes[1:], np.iinfo(np.int64).max], strict=True))
    hosts = {node.id: node.host for node in run.description.nodes}
    receivers = sorted({member for members in run.description.groups.values() for member in members})
    deliveries = {node: (times[nodes == node], submitted[nodes == node]) for node in receivers}
    return [
        {
            "fault": index,
            "kind": type(fault).__struct_config__.tag,
            "at_ns": fault.at_ns,
            "detail": msgspec.json.encode(fault).decode(),
            "node": node,
            "struck": hosts[node] in _named(fault),
            "submitted": int((sent[node] >= fault.at_ns).sum()),
            "recovery_ns": _recovery(*deliveries[node], fault.at_ns),
            "silence_ns": _silence(deliveries[node][0], fault.at_ns, ends[fault.at_ns]),
        }
        for index, fault in enumerate(faults)
        for node in receivers
    ]


def _submissions(table: pa.Table, description: RunDescription) -> dict[int, np.ndarray]:
    """For each receiver, when messages to one of its groups were submitted."""
    groups_of: dict[int, set[int]] = {}
    for group, members in description.groups.items():
        for member in members:
            groups_of.setdefault(member, set()).add(group)
    times = table["time_ns"].to_numpy()
    destinations = [frozenset(groups or ()) for groups in table["groups"].to_pylist()]
    found: dict[frozenset[int], np.ndarray] = {}
    for groups in map(frozenset, groups_of.values()):
        if groups not in found:
            found[groups] = times[[not groups.isdisjoint(wanted) for wanted in destinations]]
    return {member: found[frozenset(groups)] for member, groups in groups_of.items()}


def _named(fault: FaultSpec) -> Sequence[int]:
    if isinstance(fault, Partition):
        return [host for side in fault.sides for host in side]
    host = getattr(fault, "host", None)
    return [] if host is None else [host]


def _recovery(came: np.ndarray, left: np.ndarray, at: int) -> int | None:
    later = came[left >= at]
    return int(later.min() - at) if len(later) else None


def _silence(came: np.ndarray, at: int, end: int) -> int | None:
    later = np.sort(came[came >= at])
    if not len(later):
        return None
    # Each silence begins at the fault or at a delivery before the next fault, and ends at a delivery.
    bounds = np.concatenate(([at], later))
    begins = bounds[:-1] < end
    return int(np.diff(bounds)[begins].max())
