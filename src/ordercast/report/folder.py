"""The report of a folder of runs, live or simulated: all of them in a table, then one after the other."""

from collections import Counter
from datetime import UTC, datetime

from ordercast.core import SECOND
from ordercast.report.page import Content, Html, element, join, section, table
from ordercast.report.run_changes import changes_of, changes_table, marks_of, recoveries_table
from ordercast.report.run_rows import DELIVERIES, RunRows
from ordercast.report.runs import count, duration, latencies, plural, throughputs, verdicts_line
from ordercast.report.stored_tables import Row, StoredTables
from ordercast.report.timeline import timeline

RUNS_SHOWN = 8
"""Runs that have figures of their own; the table has all."""
RUNS_LISTED = 200
NODES_SHOWN = 40
_VERDICTS = {"kept": ("kept", "good"), "violated": ("broken", "bad"), "failed": ("not judged", "bad")}


def head(tables: StoredTables) -> tuple[str, Html]:
    """What the report is about, how it went, and what could not be said."""
    runs = tables.rows("runs")
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    sources = list(dict.fromkeys(run["source"] for run in runs if run["source"]))
    events = sum(run["events"] or 0 for run in runs)
    title = f"Run {runs[0]['run']}" if len(runs) == 1 else f"Report on {plural(len(runs), 'run')}"
    about = f"{', '.join(protocols)}; {' and '.join(sources) or 'unknown source'}; {events:,} events."
    return title, join(
        [element("p", about), verdicts_line(Counter(run["status"] for run in runs)), _notes(runs)]
    )


def _notes(runs: list[Row]) -> Html:
    open_ended = [run["run"] for run in runs if run["status"] != "failed" and not run["complete"]]
    if not open_ended:
        return Html("")
    named = ", ".join(open_ended[:5]) + (f" and {len(open_ended) - 5} more" if len(open_ended) > 5 else "")
    words = (
        f"Not complete: {named}. Messages that are missing at the end of such a run may have been in flight, "
        "so agreement and validity were not judged."
    )
    return element("p", words)


def all_runs(tables: StoredTables) -> Html:
    """A row for each run."""
    latency = {row["run"]: row for row in tables.rows("latency")}
    rates = {row["run"]: row["messages_per_s"] for row in tables.rows("rates")}
    verdicts = {row["run"]: row for row in tables.rows("verdicts")}
    runs = tables.rows("runs")
    abouts, numbers = [], []
    for run in runs[:RUNS_LISTED]:
        word, kind = _VERDICTS[run["status"]]
        known, rate = latency.get(run["run"], {}), rates.get(run["run"])
        complete = None if run["complete"] is None else "yes" if run["complete"] else "no"
        about: list[Content] = [run["run"], run["protocol"], run["source"], _began(run)]
        about += [duration(run["duration_ns"]), element("span", word, kind=f"verdict {kind}"), complete]
        abouts.append(about)
        row: list[Content] = [run["run"]]
        row += [count(run[name]) for name in ("submitted", "delivered", "dropped")]
        row += [_holes(verdicts.get(run["run"]))]
        row += [duration(known.get(name)) for name in ("p50_ns", "p99_ns", "max_ns")]
        numbers.append([*row, None if rate is None else count(round(rate))])
    about_heads = ["run", "protocol", "source", "began (UTC)", "lasted", "promises", "complete"]
    heads = ["run", "submitted", "delivered", "drops", "holes", "p50", "p99", "longest", "messages/s"]
    more = len(runs) - len(abouts)
    rest = element("p", f"... and {plural(more, 'more run')}, in the table 'runs'.") if more else Html("")
    note = (
        "Each run is judged by the promises of its protocol, over whole columns. Latency is from submission "
        "to delivery, over all receivers. The rate (messages/s) counts first deliveries, without the first "
        "and the last fifth of the run. Holes are counted if agreement is probabilistic."
    )
    return section(
        "All runs",
        table("All runs", about_heads, abouts),
        table("All runs in numbers", heads, numbers),
        rest,
        element("p", note, kind="soft"),
    )


def _began(run: Row) -> str | None:
    if run["start_ns"] is None:
        return None
    return datetime.fromtimestamp(run["start_ns"] // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _holes(verdict: Row | None) -> str | None:
    if verdict is None or verdict["holes"] is None:
        return None
    return count(sum(row["count"] for row in verdict["holes"] if row["standing"] == "stayed"))


def together(tables: StoredTables) -> Html:
    """Latency and throughput of each protocol, if there are several runs."""
    runs = [run for run in tables.rows("runs") if run["status"] != "failed"]
    return join([latencies(tables), throughputs(tables)]) if len(runs) > 1 else Html("")


def each_run(tables: StoredTables) -> Html:
    """The first runs, each with its figures and tables."""
    runs = [run for run in tables.rows("runs") if run["status"] != "failed"]
    shown = [_one(RunRows(tables, run), number) for number, run in enumerate(runs[:RUNS_SHOWN], 1)]
    more = len(runs) - len(shown)
    if more > 0:
        words = (
            f"{plural(more, 'more run')} without figures here; ordercast report DIR/RUN shows a single run."
        )
        shown.append(element("p", words))
    return join(shown)


def _one(rows: RunRows, number: int) -> Html:
    changes = changes_of(rows)
    return section(
        rows.name,
        *timeline(rows, number, marks_of(changes, rows)),
        element("h3", "Changes"),
        changes_table(changes, rows),
        element("h3", "Recoveries"),
        recoveries_table(rows),
        element("h3", "Nodes"),
        _nodes(rows),
    )


def _nodes(rows: RunRows) -> Html:
    lines: list[list[Content]] = []
    for node, about in list(rows.nodes.items())[:NODES_SHOWN]:
        latency = rows.node_latency.get(node, {})
        totals = [rows.counts(kinds, node).sum() for kinds in (("submit",), DELIVERIES, ("drop",))]
        crashes = sum(row["node"] == node and row["kind"] == "crash" for row in rows.changes)
        groups = ", ".join(map(str, about["groups"])) or None
        line: list[Content] = [about["name"], node, about["host"], groups]
        line += [count(int(total)) for total in totals]
        line += [duration(latency.get(name)) for name in ("p50_ns", "p99_ns", "max_ns")]
        lines.append([*line, crashes])
    heads = ["node", "id", "host", "receives groups", "submitted", "delivered", "drops", "p50", "p99"]
    more = len(rows.nodes) - len(lines)
    rest = (
        element("p", f"... and {plural(more, 'more node')}, in the table 'nodes'.") if more > 0 else Html("")
    )
    return join([table("Nodes", [*heads, "longest", "crashes"], lines), rest])
