"""The sections of a report about published claims: what was reproduced, claim by claim, figure by figure."""

from collections import Counter
from itertools import groupby

import msgspec

from ordercast.report.figures import Figure
from ordercast.report.page import Content, Html, breakable, element, join, section, table
from ordercast.report.runs import count, figure_html, plural
from ordercast.report.stored_tables import Row, StoredTables

VERDICTS = {True: ("met", "good"), False: ("missed", "bad"), None: ("not measured", "open")}


def head(tables: StoredTables) -> tuple[str, Html]:
    """What was run, and how it went."""
    verdicts = Counter(row["met"] for row in tables.rows("claims"))
    parts = [
        element("span", f"{verdicts[met]:,} {word}", kind=f"verdict {kind}")
        for met, (word, kind) in VERDICTS.items()
        if verdicts[met]
    ]
    runs = tables.rows("runs")
    broken = sum(run["status"] != "kept" for run in runs)
    done = f"{plural(len(runs), 'simulated run')}; {broken or 'none'} of them broke a promise or failed."
    rows: list[list[Content]] = [
        [row["title"], row["source"], count(row["cases"]), len(row["seeds"])]
        for row in tables.rows("experiments")
    ]
    heads = ["experiment", "source", "cases", "seeds"]
    lead = [element("p", "Of the selected claims: ", join(parts, ", "), "."), element("p", done)]
    return "Published claims, reproduced", join(
        [*lead, *([table("Experiments", heads, rows, ["source"])] if rows else [])]
    )


def claims(tables: StoredTables) -> Html:
    """A row for each claim: what was published, what is accepted, what was measured."""
    rows: list[list[Content]] = []
    for row in tables.rows("claims"):
        word, kind = VERDICTS[row["met"]]
        simulated = row["simulated_seconds"]
        seconds = None if simulated is None else f"{simulated:.1f}"
        accepted = f"{_number(row['accept_low'])} to {_number(row['accept_high'])}"
        lines = [element("span", line, kind="line") for line in _about(row) if line]
        claim = element("code", breakable(row["id"]))
        verdict = element("span", word, kind=f"verdict {kind}")
        numbers = [_number(row["measured"]), _number(row["published"]), accepted]
        rows.append([claim, verdict, *numbers, len(row["seeds"]) or None, seconds, join(lines)])
    heads = [
        "claim",
        "verdict",
        "measured",
        "published",
        "accepted",
        "seeds",
        "simulated s",
        "metric and notes",
    ]
    return section("Claims", table("Claims", heads, rows, ["claim"])) if rows else Html("")


def _about(row: Row) -> list[str]:
    return [f"{row['metric']} ({row['source']}; {row['setup']})", row["note"]]


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def figures(tables: StoredTables) -> Html:
    """The figures of all experiments, in their order; those that belong together side by side."""
    found = [msgspec.json.decode(row["content"], type=Figure) for row in tables.rows("figures")]
    drawn = []
    for _, together in groupby(found, key=lambda figure: figure.beside or figure.id):
        parts = [figure_html(figure) for figure in together]
        drawn.append(element("div", *parts, kind="beside") if len(parts) > 1 else parts[0])
    return section("Figures", *drawn)
