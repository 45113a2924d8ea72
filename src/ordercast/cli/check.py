"""`ordercast check`: judge traces on disk, wherever they come from."""

from pathlib import Path
from typing import Annotated

import typer

from ordercast.check import Violation, verdict
from ordercast.cli.output import (
    errors,
    print_json,
    print_verdict,
    progress_bar,
    violation_object,
)
from ordercast.trace import events_of, find_runs, trace_hash


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run, or a folder of runs.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judge the traces in a folder by the promises that they name.

    Exit code 1 and a counterexample for each promise that was not kept.

    [bold]Example[/]

    ordercast simulate --protocol unordered --out traces && ordercast check traces
    """
    runs = list(find_runs(folder))
    found: list[tuple[str, Violation]] = []
    altered: list[str] = []
    unjudged: list[str] = []
    events = suppressed = 0
    with progress_bar() as bar:
        for run in bar.track(runs, description="judging"):
            table = run.table()
            events += len(table)
            name = run.description.run
            if not run.description.complete:
                unjudged.append(name)
            if run.description.trace_hash not in (None, trace_hash(table)):
                altered.append(name)
            judged = verdict(run.description, events_of(table))
            found += [(name, violation) for violation in judged.violations]
            suppressed += sum(judged.suppressed.values())
    if json:
        violations = [violation_object(violation, run=name) for name, violation in found]
        counts: dict[str, object] = {"events": events, "runs": len(runs)}
        counts |= {"violations": violations, "suppressed": suppressed}
        print_json(counts | {"altered": altered, "incomplete": unjudged})
        return 1 if found else 0
    for name in altered:
        note = f"note: the events of {name} are not those that were written with it"
        errors.print(note, markup=False, soft_wrap=True)
    print_verdict(
        [(f"in {name}", violation) for name, violation in found],
        suppressed,
        [f"of {name}, which was not complete" for name in unjudged],
        f": {len(runs)} runs, {events} events",
    )
    return 1 if found else 0
