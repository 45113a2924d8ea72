"""How long receivers needed to recover after each fault of a run.

The faults are those of the run's scenario, at its times. In a live run, crashes and restarts come from the
trace, because real processes do not stop exactly on schedule; the other faults come from the scenario,
counted from the first event. For a fault at time t, and for each receiver:

- `recovery_ns`: from t to the receiver's first delivery of a message that was submitted at t or later.
  Messages in flight do not count, because the fault may not affect them. Null if the receiver delivered no
  such message: it did not recover, or nothing was submitted to its groups any more (`submitted` is 0).
- `silence_ns`: the longest time without a delivery at the receiver that begins between this fault and the
  next later one. A silence begins with a delivery or with the fault itself. It ends with a delivery, which
  may come after the next fault. The time after the last delivery of the run is no silence. Null if the
  receiver delivered nothing after the fault.

`struck` marks receivers on a host that the fault names: after a crash, their recovery includes the time
until the restart. For an open-loop workload both contain the workload's own pauses; compare with a run
without the fault. A heal or a restart is a fault of the scenario as well: its recovery is the time until it
took effect.

The trace of a live host that is killed has no time of the crash, so the time of its last event is used. A
host that only passes messages on records no events, so its crash is not `dated`: it is only known to come
after the start of the host. Its `recovery_ns` would mean nothing, and is null. The silence is right if it
is the longest.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.events import stored_runs
from ordercast.pipeline.schemas import RECOVERIES
from ordercast.scenario.faults import FaultSpec, Sides
from ordercast.trace import CARRYING, Kind, RunDescription, StoredRun


class Strike(NamedTuple):
    """One fault of a run."""

    kind: str
    at_ns: int
    detail: str
    """The fault as JSON."""
    hosts: Sequence[int]
    """Those that it names."""
    dated: bool = True


LIVE = "live"
_LIVES = pa.array([str(Kind.CRASH), str(Kind.RECOVER)], pa.string())
_SEEN = ("crash", "restart")


def recoveries(traces: DataFrame) -> DataFrame:
    """RECOVERIES of TRACES: a row for every fault of each run and every receiver."""
    return traces.select("run", "folder", "start_ns").mapInArrow(_recoveries, RECOVERIES)


def _recoveries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(RECOVERIES)
    for name, run, start in stored_runs(batches):
        rows = [{"run": name, **row} for row in recoveries_of(run, start)]
        yield pa.RecordBatch.from_pylist(rows, schema)


def recoveries_of(run: StoredRun, start: int = 0) -> list[dict[str, object]]:
    """The rows of one run, which began at this time; none if there were no faults."""
    planned, live = _planned(run.description), run.description.source == LIVE
    if not planned and not (live and _has_lives(run)):
        return []
    table = run.table(["groups", "submitted_ns", "label"])
    kinds = table["kind"].cast(pa.string())
    faults = planned
    if live:
        unseen = [strike for strike in planned if strike.kind not in _SEEN]
        faults = sorted([*unseen, *_seen(table, run.description, start)], key=lambda strike: strike.at_ns)
    sent = _submissions(table.filter(pc.equal(kinds, Kind.SUBMIT)), run.description, start)
    delivered = table.filter(pc.is_in(kinds, pa.array(CARRYING, pa.string())))
    # Without nulls, for with them NumPy would make floats of the times, and round them.
    delivered = delivered.filter(pc.is_valid(delivered["submitted_ns"]))
    nodes = delivered["node"].to_numpy()
    times, submitted = (delivered[name].to_numpy() - start for name in ("time_ns", "submitted_ns"))
    strikes = sorted({fault.at_ns for fault in faults})
    ends = dict(zip(strikes, [*strikes[1:], np.iinfo(np.int64).max], strict=True))
    hosts = {node.id: node.host for node in run.description.nodes}
    receivers = sorted({member for members in run.description.groups.values() for member in members})
    deliveries = {node: (times[nodes == node], submitted[nodes == node]) for node in receivers}
    return [
        {
            "fault": index,
            "kind": fault.kind,
            "at_ns": fault.at_ns,
            "detail": fault.detail,
            "node": node,
            "struck": hosts[node] in fault.hosts,
            "dated": fault.dated,
            "submitted": int((sent[node] >= fault.at_ns).sum()),
            "recovery_ns": _recovery(*deliveries[node], fault.at_ns) if fault.dated else None,
            "silence_ns": _silence(deliveries[node][0], fault, ends[fault.at_ns], hosts[node] in fault.hosts),
        }
        for index, fault in enumerate(faults)
        for node in receivers
    ]


def _planned(description: RunDescription) -> list[Strike]:
    """The faults of the scenario, in its order."""
    faults = msgspec.convert(description.scenario.get("fault", ()), tuple[FaultSpec, ...])
    return [
        Strike(str(type(fault).__struct_config__.tag), fault.at_ns, _json(fault), _named(fault))
        for fault in faults
    ]


def _json(fault: object) -> str:
    return msgspec.json.encode(fault).decode()


def _seen(table: pa.Table, description: RunDescription, start: int) -> Iterator[Strike]:
    """The crashes and returns of hosts that are in a trace."""
    hosts = {node.id: node.host for node in description.nodes}
    kinds = table["kind"].cast(pa.string())
    lives = table.filter(pc.is_in(kinds, _LIVES))
    others = table.filter(pc.invert(pc.is_in(kinds, _LIVES)))
    acted, times = _hosts_of(others["node"], hosts), others["time_ns"].to_numpy()
    begun: dict[int, int] = {}
    columns = (lives[name].to_pylist() for name in ("node", "kind", "time_ns", "label"))
    # Once for all nodes of a host.
    for host, kind, time, label in dict.fromkeys(
        (hosts[node], *row) for node, *row in zip(*columns, strict=True)
    ):
        if kind == Kind.CRASH:
            since = begun.get(host, 0)
            dated = bool(((acted == host) & (times >= since) & (times <= time)).any())
            yield Strike("crash", time - start, _json({"kind": "crash", "host": host}), [host], dated)
        else:
            begun[host] = time
            about = {"kind": "restart", "host": host, "state": label}
            yield Strike("restart", time - start, _json(about), [host])


def _hosts_of(nodes: pa.ChunkedArray, hosts: dict[int, int]) -> np.ndarray:
    by_node = np.full(max(hosts) + 1, -1)
    by_node[list(hosts)] = list(hosts.values())
    found: np.ndarray = by_node[nodes.to_numpy()]
    return found


def _has_lives(run: StoredRun) -> bool:
    """Whether a host crashed or came back; asked apart, because it is seldom, and a run may be large."""
    return any(
        pc.any(pc.is_in(segment.read(["kind"], [group])["kind"].cast(pa.string()), _LIVES)).as_py()
        for segment in run.open_segments()
        for group in range(len(segment.group_rows))
    )


def _submissions(table: pa.Table, description: RunDescription, start: int) -> dict[int, np.ndarray]:
    """For each receiver, when messages to one of its groups were submitted."""
    groups_of: dict[int, set[int]] = {}
    for group, members in description.groups.items():
        for member in members:
            groups_of.setdefault(member, set()).add(group)
    times = table["time_ns"].to_numpy() - start
    destinations = [frozenset(groups or ()) for groups in table["groups"].to_pylist()]
    found: dict[frozenset[int], np.ndarray] = {}
    for groups in map(frozenset, groups_of.values()):
        if groups not in found:
            found[groups] = times[[not groups.isdisjoint(wanted) for wanted in destinations]]
    return {member: found[frozenset(groups)] for member, groups in groups_of.items()}


def _named(fault: FaultSpec) -> Sequence[int]:
    if isinstance(fault, Sides):
        return [host for side in fault.sides for host in side]
    host = getattr(fault, "host", None)
    return [] if host is None else [host]


def _recovery(came: np.ndarray, left: np.ndarray, at: int) -> int | None:
    later = came[left >= at]
    return int(later.min() - at) if len(later) else None


def _silence(came: np.ndarray, fault: Strike, end: int, struck: bool) -> int | None:
    # The last delivery of a host that died may be all that dates its death.
    later = np.sort(came[came > fault.at_ns if struck else came >= fault.at_ns])
    # Each silence begins at the fault or at a delivery before the next fault, and ends at a delivery.
    bounds = np.concatenate(([fault.at_ns], later)) if fault.dated else later
    silences = np.diff(bounds)[bounds[:-1] < end]
    return int(silences.max()) if len(silences) else None
