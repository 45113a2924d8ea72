"""The changes of a run in the order of time: crashes, restarts, configurations; and recoveries.

Each change has a number, by which the figures mark it.
"""

from collections.abc import Iterable
from statistics import median
from typing import Any, Literal, NamedTuple

import msgspec

from ordercast.report.figures import Mark
from ordercast.report.page import Content, Html, element, join, table
from ordercast.report.run_rows import RunRows
from ordercast.report.runs import duration
from ordercast.report.stored_tables import Row

MARKS_MAX = 12
"""More lines than that hide the curves."""
CHANGES_MAX = 40
_STATES = {"saved": "with its saved state", "lost": "without its saved state"}


class Change(NamedTuple):
    """One change, at all nodes that it concerned."""

    first_ns: int
    last_ns: int
    kind: Literal["crash", "return", "configuration"]
    words: str
    nodes: int
    dated: bool = True


def changes_of(rows: RunRows) -> list[Change]:
    """All changes of a run, in the order of time."""
    found = [*_lives(rows), *_views(rows)]
    return sorted(found, key=lambda change: (change.first_ns, change.kind, change.words))


def marks_of(changes: Iterable[Change], rows: RunRows) -> tuple[Mark, ...]:
    """Marks for those changes whose time is known; without configurations if there are too many."""
    numbered = [(number, change) for number, change in enumerate(changes, 1) if change.dated]
    if len(numbered) > MARKS_MAX:
        numbered = [(number, change) for number, change in numbered if change.kind != "configuration"]
    return tuple(
        Mark(x=rows.time.of(change.first_ns), label=str(number), kind=change.kind)
        for number, change in (numbered if len(numbered) <= MARKS_MAX else [])
    )


def _lives(rows: RunRows) -> list[Change]:
    """Crashes and restarts, each once for all nodes of its host."""
    undated = {(_host(row), row["at_ns"]) for row in rows.recoveries if not row["dated"]}
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows.changes:
        if row["kind"] in ("crash", "recover"):
            host = rows.nodes[row["node"]]["host"]
            found.setdefault((row["kind"], row["time_ns"], host), []).append(row)
    changes = []
    for (kind, time, host), each in found.items():
        who = rows.host_name(host)
        if kind == "crash":
            dated = (host, time) not in undated
            later = "" if dated else "; it records no events, so this is the time of its start"
            changes.append(Change(time, time, "crash", f"{who} crashed{later}", len(each), dated))
        else:
            state = _STATES.get(each[0]["label"] or "", "")
            changes.append(Change(time, time, "return", f"{who} restarted {state}".rstrip(), len(each)))
    return changes


def _views(rows: RunRows) -> list[Change]:
    """Configurations, each once for all nodes that installed it; a restarted node may install it again."""
    found: dict[tuple[object, ...], dict[int, int]] = {}
    for row in rows.changes:
        if row["kind"] == "view":
            about = (row["group"], row["config"], row["label"], row["issuer"], tuple(row["members"] or ()))
            found.setdefault(about, {}).setdefault(row["node"], row["time_ns"])
    return [
        Change(min(times.values()), max(times.values()), "configuration", _view_words(*about), len(times))
        for about, times in found.items()
    ]


def _view_words(*about: object) -> str:
    group, config, label, issuer, members = about
    what = f": issuer {issuer} {label}" if label and issuer is not None else f": {label}" if label else ""
    listed = ", ".join(map(str, members)) if isinstance(members, tuple) else ""
    return f"configuration {config} of group {group}{what}; members {listed or 'none'}"


def changes_table(changes: list[Change], rows: RunRows) -> Html:
    """What happened, number by number."""
    if not changes:
        return element("p", "No changes: no crash, no restart, no new configuration.", kind="soft")
    lines: list[list[Content]] = [
        [number, _when(rows, change.first_ns, change.dated), change.words, change.nodes, _spread(change)]
        for number, change in enumerate(changes[:CHANGES_MAX], 1)
    ]
    heads = ["no.", "time", "what", "nodes", "from first to last node"]
    more = len(changes) - len(lines)
    rest = element("p", f"... and {more:,} more, in the table 'changes'.") if more else Html("")
    return join([table("Changes", heads, lines, ["what"]), rest])


def _when(rows: RunRows, ns: int, dated: bool) -> str:
    return rows.when(ns) if dated else f"after {rows.when(ns)}"


def _spread(change: Change) -> str | None:
    """How long it took from the first node to the last."""
    return duration(change.last_ns - change.first_ns) if change.last_ns > change.first_ns else None


def recoveries_table(rows: RunRows) -> Html:
    """How long receivers needed to recover after each crash and each restart."""
    found: dict[tuple[int, bool], list[Row]] = {}
    for row in rows.recoveries:
        found.setdefault((row["fault"], row["struck"]), []).append(row)
    lines = [_recovery_line(each, rows) for _, each in sorted(found.items())]
    if not lines:
        return element("p", "No crash and no other fault.", kind="soft")
    heads = ["time", "fault", "receivers", "recovered", "median", "longest", "longest silence"]
    note = (
        "A receiver has recovered when it delivers a message that was submitted after the fault. A silence "
        "is a time without a delivery. It begins between the fault and the next one, and ends with a "
        "delivery."
    )
    return join([table("Recoveries", heads, lines, ["fault"]), element("p", note, kind="soft")])


def _recovery_line(faults: list[Row], rows: RunRows) -> list[Content]:
    first = faults[0]
    could = [row for row in faults if row["submitted"] and row["dated"]]
    times = [row["recovery_ns"] for row in could if row["recovery_ns"] is not None]
    silences = [row["silence_ns"] for row in faults if row["silence_ns"] is not None]
    at = _when(rows, first["at_ns"], first["dated"])
    where = f"{len(faults)} on its host" if first["struck"] else f"{len(faults)} elsewhere"
    recovered = f"{len(times)} of {len(could)}" if could else None
    middle = duration(median(times) if times else None)
    longest = [duration(max(each, default=None)) for each in (times, silences)]
    host = _host(first)
    what = first["kind"] if host is None else f"{first['kind']} of {rows.host_name(host)}"
    return [at, what, where, recovered, middle, *longest]


def _host(fault: Row) -> int | None:
    """The one host that a fault names, if it names one."""
    detail: dict[str, Any] = msgspec.json.decode(fault["detail"])
    return detail.get("host")
