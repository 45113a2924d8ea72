"""The summary of a run, simulated or live: its numbers, from its trace."""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import SECOND, Nanos
from ordercast.judge import Violation
from ordercast.scenario.ending import Ending
from ordercast.trace import ANSWERING, CARRYING, ORDERED, RETURNING, SETTLING, Kind, RunDescription


class Summary(msgspec.Struct, frozen=True):
    """The numbers of a run.

    ``delivered`` counts deliveries at all receivers together, without those tagged as out of order.
    ``throughput_per_s`` counts different delivered messages per second of virtual or real time.
    """

    protocol: str
    seed: int
    trace_hash: str
    events: int
    submitted: int
    delivered: int
    out_of_order: int
    dropped: int
    violations: list[Violation]
    latency_ns: dict[str, int | None]
    throughput_per_s: float
    duration_ns: Nanos
    complete: bool
    ending: Ending
    packets_lost: int
    overflowed: int
    """Packets that found the queue of a host's CPU full."""
    refused: int
    """Messages that a sender refused because its backlog was full."""
    timed_out: int
    """Messages whose answers a closed-loop client stopped waiting for."""
    answered: int | None = None
    """Operations that clients of a service got answers to, reads included; None if the run has no service."""
    unknown: int | None = None
    """Operations of which their clients were told that the outcome is unknown."""
    answer_latency_ns: dict[str, int | None] | None = None
    """From the invocation of an operation to its first answer."""


def sum_up(
    description: RunDescription,
    table: pa.Table,
    violations: list[Violation],
    *,
    seed: int,
    duration_ns: Nanos,
    ending: Ending,
    packets_lost: int,
    overflowed: int,
    refused: int,
    timed_out: int,
) -> Summary:
    """Compute the summary of a run; the arguments are the numbers that its trace does not have."""
    kinds = table.column("kind").cast(pa.string())
    counts = {kind: pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in Kind}
    delivered = table.filter(pc.is_in(kinds, pa.array(ORDERED, pa.string())))
    # A delivery that a protocol made up has no message and no time of submission.
    delivered = delivered.filter(pc.is_valid(delivered.column("submitted_ns")))
    times, submitted = (delivered.column(name).to_numpy() for name in ("time_ns", "submitted_ns"))
    return Summary(
        protocol=description.protocol,
        seed=seed,
        trace_hash=description.trace_hash or "",
        events=len(table),
        submitted=counts[Kind.SUBMIT],
        delivered=sum(counts[kind] for kind in ORDERED),
        out_of_order=sum(counts[kind] for kind in CARRYING if kind not in ORDERED),
        dropped=sum(counts[kind] for kind in SETTLING),
        violations=violations,
        latency_ns=_percentiles(times - submitted),
        throughput_per_s=_throughput(delivered, times, submitted),
        duration_ns=duration_ns,
        complete=description.complete,
        ending=ending,
        packets_lost=packets_lost,
        overflowed=overflowed,
        refused=refused,
        timed_out=timed_out,
        **(_answers(table, kinds) if description.service else {}),
    )


def _answers(table: pa.Table, kinds: pa.ChunkedArray) -> dict[str, Any]:
    """What clients of a service were told."""
    replies = table.filter(pc.is_in(kinds, pa.array(ANSWERING, pa.string())))
    messages, times, called = (replies[name].to_numpy() for name in ("message", "time_ns", "submitted_ns"))
    _, first = np.unique(messages, return_index=True)  # an answer may come again
    returned = table.filter(pc.is_in(kinds, pa.array(RETURNING, pa.string())))
    unknown = pc.count_distinct(returned["message"]).as_py()
    latency = _percentiles((times - called)[first])
    return {"answered": len(first), "unknown": unknown, "answer_latency_ns": latency}


def _percentiles(latencies: np.ndarray) -> dict[str, int | None]:
    names = ("p50", "p90", "p99", "max")
    if not len(latencies):
        return dict.fromkeys(names)
    values = np.percentile(latencies, (50, 90, 99, 100), method="higher")
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def _throughput(delivered: pa.Table, times: np.ndarray, submitted: np.ndarray) -> float:
    if not len(times) or times.max() == submitted.min():
        return 0.0
    messages: int = pc.count_distinct(delivered.column("message")).as_py()
    return round(messages * SECOND / int(times.max() - submitted.min()), 3)
