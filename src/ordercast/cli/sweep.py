"""`ordercast sweep`: simulate many runs on Spark, and write their traces and tables to one folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from ordercast.cli.output import console, errors, print_json, print_violations, violation_object
from ordercast.core import format_ns

if TYPE_CHECKING:
    # Imported only for a sweep: Spark is an optional extra and slow to import.
    from ordercast.pipeline.progress import Progress, Report
    from ordercast.pipeline.sweep import SweepOutcome
    from ordercast.report.summary import PointSummary

POINTS_SHOWN = 40
LONG_S = 10.0
"""Without a terminal, progress is printed at this interval."""


def sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP.toml", help="Sweep file.")],
    out: Annotated[Path, typer.Option(help="Folder for traces and tables; each sweep needs its own.")],
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[*], or spark://host:port for a cluster.")
    ] = "local[*]",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run a scenario with many seeds, protocols and parameters; judge and measure every run.

    Traces go to DIR/traces, Parquet tables to DIR/tables, and the report to DIR/report.html. Two judges check
    every trace. If a sweep was stopped, even killed, give the same command again: it continues where it
    stopped.

    [bold]Example[/]

    ordercast sweep examples/every-protocol.toml --out out

    [bold]A sweep file[/] has seeds, a scenario, a grid of lists, and optional cases:

    seeds = "0:10"

    \\[scenario]
    workload.messages = 200

    \\[grid]
    protocol = "*"
    "network.loss" = \\[0, 0.01]
    """
    from ordercast.pipeline.job import run_job
    from ordercast.pipeline.session import check_master, running_spark
    from ordercast.pipeline.sweep import claimed, outcome_of, sweep_tables
    from ordercast.pipeline.sweep_file import load_sweep
    from ordercast.report.stored_tables import StoredTables
    from ordercast.report.summary import both_verdicts, points

    # Report errors in the input before Spark takes seconds to start.
    check_master(master)
    asked = load_sweep(file)
    with claimed(out, asked):
        pass
    with progress_shown() as report, running_spark(master, f"ordercast sweep {asked.name}") as spark:
        page = run_job(spark, asked, out, report)
        outcome = outcome_of(sweep_tables(spark, out))
    tables = StoredTables(out)
    differ = [pair for pair in both_verdicts(tables) if pair.oracles != pair.columns]
    if json:
        names = [pair.run for pair in differ]
        about = {"sweep": asked.name, "out": str(out), "report": str(page), **_as_object(outcome)}
        print_json(about | {"judges_differ": names})
    else:
        _show_points(points(tables))
        _show(asked.name, out, outcome)
        for pair in differ:
            console.print(f"[bold red]the judges disagree[/] on {escape(pair.run)}", soft_wrap=True)
        console.print(f"report: {page}", markup=False, soft_wrap=True)
    return 0 if outcome.count("kept") == outcome.runs and not differ else 1


@contextmanager
def progress_shown() -> Iterator["Report"]:
    """Show the progress of a pipeline job: a bar on a terminal, otherwise a line every few seconds."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    rate = TextColumn("{task.fields[rate]}")
    bar = Bar(
        *columns, rate, TimeRemainingColumn(), console=errors, transient=True, disable=not errors.is_terminal
    )
    with bar:
        task = bar.add_task("starting Spark", total=None, rate="")
        told_s: float | None = None  # before Spark has started, there is no progress to print

        def report(progress: "Progress") -> None:
            nonlocal told_s
            rate = f"{progress.rate_per_s:.1f} per second" if progress.done else ""
            bar.update(
                task, description=progress.what, completed=progress.done, total=progress.total, rate=rate
            )
            now_s = time.monotonic()
            told_s = now_s if told_s is None else told_s
            if not errors.is_terminal and now_s - told_s >= LONG_S:
                told_s = now_s
                left = "" if progress.left_s is None else f", about {progress.left_s:.0f} s left"
                text = f"{progress.what}: {progress.done} of {progress.total}, {rate or 'none yet'}{left}"
                errors.print(text, markup=False, soft_wrap=True)

        yield report


def _show_points(found: "list[PointSummary]") -> None:
    """Print one line per protocol and set of parameters."""
    table = Table(box=None, pad_edge=False)
    for name in ("protocol", "parameters", "kept", "p50", "p99", "messages/s"):
        words = name in ("protocol", "parameters")
        table.add_column(name, justify="left" if words else "right", no_wrap=name != "parameters")
    for point in found[:POINTS_SHOWN]:
        times = (format_ns(round(ns), 3) if ns is not None else "" for ns in (point.p50_ns, point.p99_ns))
        kept, rate = point.statuses["kept"], point.messages_per_s
        table.add_row(
            escape(point.key.protocol),
            escape(point.key.text()),
            f"{kept} of {point.runs}" if kept == point.runs else f"[bold red]{kept} of {point.runs}[/]",
            *times,
            "" if rate is None else f"{rate:,.0f}",
        )
    console.print(table)
    if len(found) > POINTS_SHOWN:
        console.print(f"... and {len(found) - POINTS_SHOWN} more points, in the report")


def _as_object(outcome: "SweepOutcome") -> dict[str, object]:
    return {
        "runs": outcome.runs,
        **{status: outcome.count(status) for status in ("kept", "violated", "failed")},
        "protocols": outcome.protocols,
        "failures": [{"run": run, "error": error} for run, error in outcome.failures],
        "findings": outcome.findings,
        "violations": [violation_object(violation, run=run) for run, violation in outcome.violations],
    }


def _show(name: str, out: Path, outcome: "SweepOutcome") -> None:
    console.print(f"[bold]{name}[/]: {outcome.runs} runs, traces and tables in {out}", soft_wrap=True)
    width = max(map(len, outcome.protocols), default=0)
    for protocol, counts in outcome.protocols.items():
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        console.print(f"  {protocol:<{width}}  {said}", markup=False, soft_wrap=True)
    for run, error in outcome.failures:
        console.print(f"[bold red]failed[/]: {run}", soft_wrap=True)
        console.print(f"  {error}", markup=False, soft_wrap=True)
    if outcome.violations:
        found = [(f"in {run}", violation) for run, violation in outcome.violations]
        print_violations(found, outcome.findings - len(found))
    if outcome.count("kept") == outcome.runs:
        console.print("[green]kept every promise[/]")
