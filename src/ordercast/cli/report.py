"""`ordercast report`: a page with figures of what runs did, live or simulated, or of a whole sweep."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli.output import console, errors, print_json
from ordercast.cli.sweep import progress_shown

if TYPE_CHECKING:  # at run time only when they are needed: tables are read without Spark
    from ordercast.report.stored_tables import StoredTables

FOLDER = "report"
"""Where the report of a folder of runs goes, below that folder."""
SHOWN_MAX = 10


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run, a folder of runs, a sweep or a reproduction.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; DIR/report for runs, DIR itself for a sweep.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[*], or spark://host:port of a cluster.")
    ] = "local[*]",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Make a page of what runs did: one file, for a browser, a phone or a printer.

    DIR may hold any runs with traces: those of a live cluster after [bold]ordercast cluster down[/], of
    [bold]ordercast live --out[/], [bold]ordercast simulate --out[/] or [bold]ordercast bench --keep[/]. They
    are judged by what they promised and measured on Spark. The page shows for each run what was submitted and
    delivered over time, latency, drop notifications, configurations, and recoveries from crashes.
    It goes to DIR/report, with the tables of all numbers as Parquet. Runs that are not complete are reported
    with a note.

    Of a sweep or a reproduction, DIR/report.html is made again from the tables that are there, without Spark;
    the same tables always give the same file.

    The exit code is 1 if a run could not be read; it is named, and the others are reported. Whether promises
    were kept is told on the page; [bold]ordercast check[/] makes an exit code of it.

    [bold]Examples[/]

    ordercast cluster down && ordercast report .ordercast/demo/traces

    ordercast simulate --protocol hydra --out traces && ordercast report traces --out page

    ordercast sweep examples/every-protocol.toml --out out && ordercast report out
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
    found = survey(folder)  # what is wrong with the folder is told before Spark starts
    with progress_shown() as progress, running_spark(master, f"ordercast report {folder}") as spark:
        return report_folder(spark, found, folder, out, progress)


def _told(tables: "StoredTables") -> dict[str, Any]:
    """The report in a few numbers."""
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
