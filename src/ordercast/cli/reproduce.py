"""`ordercast reproduce`: run the experiments of the papers and compare with the published results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordercast.cli.output import console, print_json
from ordercast.cli.sweep import progress_shown
from ordercast.core import LocalError
from ordercast.judge.finding import listed

if TYPE_CHECKING:
    # Imported only when something is reproduced: Spark is an optional extra and slow to import.
    from ordercast.pipeline.claims import ClaimResult

REPRODUCED = Path(".ordercast", "reproduced")
_SHOWN = ("id", "published", "accept_low", "accept_high", "measured", "met", "note")
_VERDICTS = {True: "[green]met[/]", False: "[bold red]missed[/]", None: "[dim]not measured[/]"}


def reproduce(
    claims: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID or prefix]...", help="Claims to reproduce. Default: all."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for traces, tables and the report. Default: a folder below .ordercast/reproduced "
            "that is named after the claims.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer seeds and loads.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with measured inputs, for experiments that need them."),
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[*], or spark://host:port for a cluster.")
    ] = "local[*]",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Reproduce published numbers, claim by claim.

    A claim is a number from a paper, with the band in which our measured number counts as the same. An
    experiment simulates what the paper did and measures the number. A claim without an experiment is not
    measured.

    DIR gets report.html for a browser, claims.json, figures.json with all points of the figures, and all
    tables and traces. If the command was stopped, give the same command again: it continues where it stopped.

    The exit code is 1 if a selected claim was missed, or if a run broke a promise of its protocol.

    [bold]Examples[/]

    ordercast reproduce baseline --quick --out out

    ordercast reproduce hydra.micro baseline.atomic_group_size --out out
    """
    from ordercast.experiments import Setup, measuring
    from ordercast.experiments.published import all_claims, select_claims
    from ordercast.pipeline.reproduce import reproduce as run
    from ordercast.pipeline.session import running_spark

    selected = select_claims(claims or [], all_claims())
    if data is not None and not data.is_dir():
        raise LocalError(f"--data {data}: {'not a folder' if data.exists() else 'no such folder'}")
    setup = Setup(quick=quick, data=data.absolute() if data else None)
    works = [experiment.prepare(setup) for experiment in measuring(claim.id for claim in selected)]
    with progress_shown() as report, running_spark(master, "ordercast reproduce") as spark:
        done = run(spark, works, selected, out or _default_out(claims or [], quick), report)
    if json:
        print_json({"claims": [{name: getattr(claim, name) for name in _SHOWN} for claim in done.claims]})
    else:
        _show(done.claims, done.report, done.broken)
    missed = any(claim.met is False for claim in done.claims)
    return 1 if missed or done.broken else 0


def _default_out(claims: list[str], quick: bool) -> Path:
    """A folder for this selection alone: two selections cannot share one."""
    words = [*(claims or ["all"]), *(["quick"] if quick else [])]
    return REPRODUCED / "-".join(words)


def _show(claims: "list[ClaimResult]", report: Path, broken: int) -> None:
    from ordercast.experiments.published import DERIVED, read_claims

    measured = [claim for claim in claims if claim.met is not None]
    width = max((len(claim.id) for claim in measured), default=0)
    for claim in measured:
        value = "nothing" if claim.measured is None else f"{claim.measured:.4g}"
        band = f"{claim.accept_low:.4g} to {claim.accept_high:.4g}"
        text = f"{claim.id:<{width}}  {value:>8}   published {claim.published:.4g}, accepted {band}: "
        console.print(f"{text}{_VERDICTS[claim.met]}", soft_wrap=True)
        if not claim.met:
            console.print(f"  {claim.note}", markup=False, soft_wrap=True)
    derived = {claim.id for claim in read_claims(DERIVED)}
    if found := [claim.id for claim in measured if claim.id in derived]:
        console.print(
            f"not published as such, but derived from published results: {listed(found)}", soft_wrap=True
        )
    counts = {met: sum(claim.met is met for claim in claims) for met in _VERDICTS}
    said = ", ".join(f"{count} {_VERDICTS[met]}" for met, count in counts.items() if count)
    console.print(f"{len(claims)} claim{'' if len(claims) == 1 else 's'}: {said}")
    if broken:
        console.print(f"[bold red]{broken} runs broke a promise or failed[/]; see the report")
    console.print(f"report: {report}", markup=False, soft_wrap=True)
