"""A sweep summed up from its tables: a line for each point, and where the two judges differ."""

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

import msgspec

from ordercast.report.stored_tables import Row, StoredTables


class PointKey(NamedTuple):
    """All runs of a protocol with the same parameters."""

    protocol: str
    parameters: str

    def text(self) -> str:
        """The parameters, as people write them."""
        return parameters_text(self.parameters) or "all runs"


def parameters_text(parameters: str) -> str:
    """A JSON object of parameters as text, with the last part of dotted names, without the protocol."""
    content: dict[str, Any] = msgspec.json.decode(parameters)
    content.pop("protocol", None)
    return ", ".join(f"{name.split('.')[-1]} {_value(value)}" for name, value in content.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class PointSummary(NamedTuple):
    """The results of a point over all seeds; None if not measured."""

    key: PointKey
    runs: int
    statuses: Counter[str]
    submitted: int
    delivered: int
    p50_ns: float | None
    p99_ns: float | None
    max_ns: float | None
    messages_per_s: float | None


def points(tables: StoredTables) -> list[PointSummary]:
    """Every point of a sweep, in its order."""
    latencies = {PointKey(row["protocol"], row["parameters"]): row for row in tables.rows("point_latency")}
    rates = {row["run"]: row["messages_per_s"] for row in tables.rows("rates")}
    found = []
    for key, runs in by_point(tables.rows("runs")).items():
        latency = latencies.get(key, {})
        known = [rates[run["run"]] for run in runs if run["run"] in rates]
        found.append(
            PointSummary(
                key=key,
                runs=len(runs),
                statuses=Counter(run["status"] for run in runs),
                submitted=sum(run["submitted"] or 0 for run in runs),
                delivered=sum(run["delivered"] or 0 for run in runs),
                p50_ns=latency.get("p50_ns"),
                p99_ns=latency.get("p99_ns"),
                max_ns=latency.get("max_ns"),
                messages_per_s=median(known) if known else None,
            )
        )
    return found


def by_point(runs: Iterable[Row]) -> dict[PointKey, list[Row]]:
    """The runs of each point."""
    found: dict[PointKey, list[Row]] = {}
    for run in runs:
        found.setdefault(PointKey(run["protocol"], run["parameters"]), []).append(run)
    return found


class VerdictPair(NamedTuple):
    """The properties that a run broke, by each of the two judges; None if one could not judge it."""

    run: str
    protocol: str
    oracles: frozenset[str] | None
    columns: frozenset[str] | None


def both_verdicts(tables: StoredTables) -> list[VerdictPair]:
    """The runs that have been judged by columns, beside what the oracles said."""
    told: dict[str, set[str]] = {}
    for row in tables.rows("violations"):
        if row["judge"] == "oracles":
            told.setdefault(row["run"], set()).add(row["property"])
    ran = {run["run"] for run in tables.rows("runs") if run["status"] != "failed"}
    return [
        VerdictPair(
            verdict["run"],
            verdict["protocol"],
            frozenset(told.get(verdict["run"], ())) if verdict["run"] in ran else None,
            None
            if verdict["error"] or verdict.get("damage")
            else frozenset(one["property"] for one in verdict["findings"]),
        )
        for verdict in tables.rows("verdicts")
    ]
