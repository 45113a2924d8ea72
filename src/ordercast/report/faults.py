"""The sections of a report about broken promises, failures, recoveries, and the two judges."""

from collections import Counter
from statistics import median

from ordercast.core import FAILED, format_ns, message_name
from ordercast.report.page import Content, Html, element, join, section, table
from ordercast.report.runs import count, duration, plural
from ordercast.report.stored_tables import Row, StoredTables
from ordercast.report.summary import PointKey, both_verdicts, parameters_text

CASES_MAX = 20
"""Counterexamples that are shown; the others are counted."""
NAMES_MAX = 8
REPLAYED = (None, "simulator")
"""Sources whose runs happen the same way again; tables of older sweeps do not name theirs."""


def violations(tables: StoredTables) -> Html:
    """Counterexamples, each with the command that replays it."""
    runs = {run["run"]: run for run in tables.rows("runs")}
    found: dict[tuple[str, str], list[Row]] = {}
    for row in _findings(tables):
        found.setdefault((row["run"], row["property"]), []).append(row)
    shown = [_case(rows, runs.get(run)) for (run, _), rows in list(found.items())[:CASES_MAX]]
    more = len(found) - len(shown)
    if more > 0:
        shown.append(element("p", f"... and {plural(more, 'more broken promise')} of other runs or kinds."))
    return section("Broken promises", *shown)


def _findings(tables: StoredTables) -> list[Row]:
    """What both judges found, each finding with the judge's name."""
    rows = tables.rows("violations")
    for verdict in tables.rows("verdicts"):
        for finding in verdict["findings"]:
            about = {"run": verdict["run"], "protocol": verdict["protocol"], "seed": verdict["seed"]}
            rows.append({**about, "judge": "columns", **finding})
    return rows


def _case(rows: list[Row], run: Row | None) -> Html:
    first = rows[0]
    judges = " and ".join(sorted({row["judge"] for row in rows}))
    about = (
        f" in {first['run']}, seed {first['seed']}" if first["seed"] is not None else f" in {first['run']}"
    )
    verb = "" if first["property"] == FAILED else " violated"
    lines = [element("p", element("b", first["property"], kind="bad"), f"{verb}{about}; found by {judges}")]
    if run and (words := parameters_text(run["parameters"])):
        lines.append(element("p", words, kind="soft"))
    lines.append(element("p", first["detail"]))
    start = (run["start_ns"] or 0) if run else 0
    named = {
        "nodes": [str(node) for node in first["nodes"]],
        "messages": [message_name(message) for message in first["messages"]],
        "times": [format_ns(time - start) for time in first["times_ns"]],
    }
    told = "; ".join(f"{name} {_listed(values)}" for name, values in named.items() if values)
    lines.append(element("p", told, kind="soft"))
    if run and run["folder"] and run["source"] in REPLAYED:
        lines.append(element("pre", f"ordercast replay {run['folder']} --no-packets"))
    return element("div", join(lines), kind="case")


def _listed(values: list[str]) -> str:
    more = len(values) - NAMES_MAX
    return ", ".join(values[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def failures(tables: StoredTables) -> Html:
    """Runs that failed, and why."""
    failed = [run for run in tables.rows("runs") if run["status"] == "failed"]
    rows: list[list[Content]] = [[run["run"], run["error"]] for run in failed[:CASES_MAX]]
    more = len(failed) - len(rows)
    rest = element("p", f"... and {plural(more, 'more failed run')}.") if more else Html("")
    return section(
        "Failed runs", table("Failed runs", ["run", "error"], rows, ["error"]) if rows else Html(""), rest
    )


def recoveries(tables: StoredTables) -> Html:
    """How long receivers needed after each kind of fault."""
    runs = {run["run"]: run for run in tables.rows("runs")}
    found: dict[tuple[str, str, str, bool], list[Row]] = {}
    for row in tables.rows("recoveries"):
        run = runs.get(row["run"])
        if run:
            key = (run["protocol"], run["parameters"], row["kind"], row["struck"])
            found.setdefault(key, []).append(row)
    rows: list[list[Content]] = []
    places = {
        (run["protocol"], run["parameters"]): place for place, run in enumerate(reversed(runs.values()))
    }
    for key in sorted(found, key=lambda key: (-places[key[:2]], key)):
        protocol, parameters, kind, struck = key
        faults = found[key]
        could = [row for row in faults if row["submitted"] and row.get("dated", True)]
        times = [row["recovery_ns"] for row in could if row["recovery_ns"] is not None]
        silences = [row["silence_ns"] for row in faults if row["silence_ns"] is not None]
        where = "the hosts it names" if struck else "the others"
        about = [protocol, PointKey(protocol, parameters).text(), kind, where]
        counts = [count(len(could)), count(len(times))]
        longest = [duration(max(each, default=None)) for each in (times, silences)]
        rows.append([*about, *counts, duration(median(times) if times else None), *longest])
    if not rows:
        return Html("")
    heads = ["protocol", "parameters", "fault", "receivers on", "cases", "recovered"]
    heads += ["median", "longest", "longest silence"]
    note = (
        "A case is one fault and one receiver to which messages were submitted after the fault. The receiver "
        "has recovered when it delivers one of these messages. The time counts from the fault, so for a "
        "crashed host it includes the time until its restart. A silence is a time without a delivery at a "
        "receiver. It begins between the fault and the next one, and ends with a delivery."
    )
    words = table("Recoveries after faults", heads, rows, ["parameters"])
    return section("Recoveries after faults", words, element("p", note, kind="soft"))


def judges(tables: StoredTables) -> Html:
    """Whether the two judges, which share no code, have the same verdicts."""
    if not tables.has("verdicts"):
        return Html("")
    counts: dict[str, Counter[str]] = {}
    differ: list[list[Content]] = []
    for pair in both_verdicts(tables):
        counted = counts.setdefault(pair.protocol, Counter())
        if pair.oracles is None or pair.columns is None:
            counted["one"] += 1
        elif pair.oracles == pair.columns:
            counted["violated" if pair.oracles else "kept"] += 1
        else:
            counted["differ"] += 1
            said = (", ".join(sorted(one)) or "kept" for one in (pair.oracles, pair.columns))
            differ.append([pair.run, *said])
    rows = [
        [protocol, *(count(counted[name]) for name in ("kept", "violated", "differ", "one"))]
        for protocol, counted in counts.items()
    ]
    heads = ["protocol", "both: kept", "both: same violations", "they differ", "judged by only one"]
    note = (
        "The oracles read a trace event by event; the column judges read whole columns. They are written "
        "independently, so that an error in one of them shows as a difference."
    )
    parts = [element("p", note, kind="soft"), table("Verdicts of both judges", heads, rows)]
    if differ:
        heads = ["run", "oracles", "columns"]
        parts.append(table("Runs on which the judges differ", heads, differ[:CASES_MAX]))
    return section("Two judges", *parts)
