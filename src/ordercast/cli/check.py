"""`ordercast check`: judge traces on disk, from any source."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape

from ordercast.cli.judged_runs import JudgedRun, judge_by_oracles, judge_on_spark
from ordercast.cli.output import (
    VIOLATIONS_SHOWN,
    console,
    errors,
    holes_object,
    print_holes,
    print_json,
    print_uncounted,
    print_violations,
    uncounted_object,
    violation_object,
)
from ordercast.cli.properties import at_end_named, print_properties
from ordercast.judge.finding import listed


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run, or a folder of runs.")],
    master: Annotated[
        str | None,
        typer.Option(help="Judge on Spark: local[*], or spark://host:port for a cluster.", metavar="M"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    properties: Annotated[
        bool,
        typer.Option(
            "--properties",
            is_eager=True,
            callback=print_properties,
            help="List the properties that runs are judged by, and exit.",
        ),
    ] = False,
) -> int:
    """Judge the traces in a folder: is each record whole, and did each protocol keep its promises?

    There are four verdicts on a run. It [bold]kept every promise[/]; a promise was [bold]violated[/], with a
    counterexample; the [bold]trace is damaged[/] (rows are missing, doubled, at a wrong place or changed),
    with the file and the row; or the run [bold]cannot be read[/]. Every run is judged, even if another one
    cannot be read. Promises are not judged if rows of the trace may be missing.

    The exit code is 1 if a promise was violated or a trace is damaged. Otherwise it is 2 if a run cannot be
    read, and 0 if every run kept its promises.

    Without [bold]--master[/], oracles read one event after the other in this process. With it, Spark tasks
    judge the same properties over whole columns; this is for many runs or for large ones. The two judges
    were written independently; use both if much depends on the verdict. Spark does not compare a run of
    more than a million events with its stored hash, and it does not count deliveries tagged as out of
    order. Spark takes seconds to start, so a few small runs are judged faster without it.

    [bold]Examples[/]

    ordercast simulate --protocol unordered --out traces && ordercast check traces

    ordercast check traces --master 'local[*]'
    """
    runs = judge_by_oracles(folder) if master is None else judge_on_spark(folder, master)
    for run in runs:
        if run.error:
            errors.print(f"ordercast: {run.name}: {run.error}", markup=False, soft_wrap=True)
    if json:
        print_json(_content(runs))
    else:
        _print(runs)
    verdicts = {run.verdict for run in runs}
    if verdicts & {"violated", "damaged"}:
        return 1
    return 2 if "unreadable" in verdicts else 0


def _content(runs: list[JudgedRun]) -> dict[str, Any]:
    """What was found, for programs."""
    late = [run.out_of_order for run in runs if run.judged]
    return {
        "events": sum(run.events for run in runs),
        "runs": len(runs),
        "verdicts": [{"run": run.name, "verdict": run.verdict} for run in runs],
        "out_of_order": None if None in late else sum(count or 0 for count in late),
        "violations": [violation_object(found, run=run.name) for run in runs for found in run.violations],
        "suppressed": sum(run.suppressed for run in runs),
        "holes": [holes_object(run.holes, run=run.name) for run in runs if run.holes is not None]
        + [uncounted_object(run=run.name) for run in _uncounted(runs)],
        "damaged": [
            {"run": run.name, **msgspec.to_builtins(damage)} for run in runs for damage in run.damage
        ],
        "altered": [run.name for run in runs if any(damage.what == "hash" for damage in run.damage)],
        "unhashed": [run.name for run in runs if run.unhashed],
        "unreadable": [{"run": run.name, "detail": run.error} for run in runs if run.error],
        "incomplete": [run.name for run in _incomplete(runs)],
    }


def _print(runs: list[JudgedRun]) -> None:
    """Print what was found, for people."""
    _print_damage([run for run in runs if run.damage])
    found = [(f"in {run.name}{_doubt(run)}", violation) for run in runs for violation in run.violations]
    if found:
        print_violations(found, sum(run.suppressed for run in runs))
    _print_kept(runs)
    late = sum(run.out_of_order or 0 for run in runs)
    if late:
        console.print(f"{late} deliver{'y' if late == 1 else 'ies'} tagged as out of order")
    holes = [(f"in {run.name}", run.holes) for run in runs if run.holes is not None]
    if holes:
        print_holes(holes)
    print_uncounted(run.name for run in _uncounted(runs))


def _print_damage(runs: list[JudgedRun]) -> None:
    found = [(run.name, damage) for run in runs for damage in run.damage]
    for name, damage in found[:VIOLATIONS_SHOWN]:
        console.print(f"[bold red]trace damaged[/] in {escape(name)}", soft_wrap=True)
        console.print(f"  {damage}", markup=False, soft_wrap=True)
    if len(found) > VIOLATIONS_SHOWN:
        console.print(f"  ... and at least {len(found) - VIOLATIONS_SHOWN} more")


def _doubt(run: JudgedRun) -> str:
    return ", whose trace was changed; this may be the fault of the change" if run.damage else ""


def _print_kept(runs: list[JudgedRun]) -> None:
    """Print which runs kept their promises, and what was not judged."""
    kept, incomplete = [run for run in runs if run.verdict == "kept"], _incomplete(runs)
    events = sum(run.events for run in runs)
    if len(kept) == len(runs):
        judged = " that could be judged" if incomplete else ""
        count = f"{len(runs)} run{'' if len(runs) == 1 else 's'}, {events} events"
        console.print(f"[green]kept every promise[/]{judged}: {count}", soft_wrap=True)
    elif kept:
        judged = " that could be judged" if any(not run.complete for run in kept) else ""
        names = escape(listed(run.name for run in kept))
        console.print(
            f"[green]kept every promise[/]{judged}: {names} ({len(kept)} of {len(runs)} runs)", soft_wrap=True
        )
    for run in runs:
        if run.damage and not run.judged:
            _print_unjudged(f"the promises of {run.name}, because its trace is damaged")
    for run in incomplete:
        at_end = at_end_named(serves=run.serves)
        _print_unjudged(f"{at_end} of {run.name}, because the run is not complete")


def _print_unjudged(what: str) -> None:
    console.print(f"[yellow]not judged[/]: {escape(what)}", soft_wrap=True)


def _incomplete(runs: list[JudgedRun]) -> list[JudgedRun]:
    return [run for run in runs if run.judged and not run.complete]


def _uncounted(runs: list[JudgedRun]) -> list[JudgedRun]:
    return [run for run in runs if run.judged and run.uncounted]
