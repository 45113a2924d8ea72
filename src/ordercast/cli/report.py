"""`ordercast report`: write a page with figures about runs, live or simulated, or about a whole sweep."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.output import console, errors, print_json
from ordercast.cli.sweep import progress_shown

if TYPE_CHECKING:  # imported only when needed
    from ordercast.report.stored_tables import StoredTables

FOLDER = "report"
"""The subfolder that gets the report of a folder of runs."""
SHOWN_MAX = 10


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of a run, of several runs, of a sweep or a reproduction."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report. Default: DIR/report for runs, DIR itself for a sweep."),
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[*], or spark://host:port for a cluster.")
    ] = "local[*]",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Write a report about runs: one HTML file for a browser, a phone or a printer.

    DIR may hold any runs with traces: from a live cluster after [bold]ordercast cluster down[/], or from
    [bold]ordercast live --out[/], [bold]ordercast simulate --out[/] or [bold]ordercast bench --keep[/]. Spark
    judges the runs by the promises of their protocols, and measures them. For each run the page shows
    messages submitted and delivered over time, latency, drop notifications, configurations, and recoveries
    from crashes. The page goes to DIR/report, together with all numbers as Parquet tables. Incomplete runs
    have a note.

    For a sweep or a reproduction, the command rebuilds DIR/report.html from the existing tables, without
    Spark. The same tables always give the same file.

    The exit code is 1 if a run could not be read; the command names that run and reports the others. The page
    shows whether promises were kept; use [bold]ordercast check[/] for an exit code.

    [bold]Examples[/]

    ordercast cluster down && ordercast report .ordercast/demo/traces

    ordercast simulate --protocol hydra --out traces && ordercast report traces --out page

    ordercast sweep examples/every-protocol.toml --out out && ordercast report out

    ordercast reproduce baseline --quick --out out && ordercast report out
    """
    from ordercast.report.build import has_tables
    from ordercast.report.build import report as build
    from ordercast.report.stored_tables import StoredTables

    if has_tables(folder):
        page, tables = build(folder, out), StoredTables(folder)
    else:
        page = _of_runs(folder, out or folder / FOLDER, master)
        tables = StoredTables(page.parent)
    told = _told(tables)
    if json:
        print_json({"report": str(page), **told})
    else:
        _show(page, told)
    return 1 if told["failed"] and tables.has("nodes") else 0


def _of_runs(folder: Path, out: Path, master: str) -> Path:
    from ordercast.pipeline.folder import report_folder
    from ordercast.pipeline.session import check_master, running_spark
    from ordercast.pipeline.traces import survey

    check_master(master)
    found = survey(folder)  # report errors in the folder before Spark starts
    with progress_shown() as progress, running_spark(master, f"ordercast report {folder}") as spark:
        return report_folder(spark, found, folder, out, progress)


def _told(tables: "StoredTables") -> dict[str, Any]:
    """The main numbers of the report."""
    runs = tables.rows("runs")
    failures = [{"run": run["run"], "error": run["error"]} for run in runs if run["status"] == "failed"]
    states = ("kept", "violated", "failed")
    counts = {state: sum(run["status"] == state for run in runs) for state in states}
    incomplete = [run["run"] for run in runs if run["complete"] is False]
    return {"runs": len(runs), **counts, "incomplete": incomplete, "failures": failures}


def _show(page: Path, told: dict[str, Any]) -> None:
    for failure in told["failures"][:SHOWN_MAX]:
        errors.print(f"note: {failure['run']}: {failure['error']}", markup=False, soft_wrap=True)
    for run in told["incomplete"][:SHOWN_MAX]:
        words = f"note: {run} is not complete; agreement and validity were not judged"
        errors.print(words, markup=False, soft_wrap=True)
    console.print(str(page), markup=False, soft_wrap=True)
