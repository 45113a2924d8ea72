"""`ordercast shrink`: make a failing scenario smaller, and write it to a file."""

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ordercast.cli import INTERRUPTED
from ordercast.cli.chosen import chosen_scenario
from ordercast.cli.output import console, print_json, progress_bar, violation_object
from ordercast.core import Fault, LocalError, format_ns
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario
from ordercast.scenario.writer import write_scenario
from ordercast.sim.shrinking import TRIES, Shrunk, Size, measured
from ordercast.sim.shrinking import shrink as search
from ordercast.toml_file import naming_lines_of


def shrink(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENARIO.toml | RUN]", help="Scenario file, or folder of a run, that fails."
        ),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol of the swarm seed.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed that fails.")] = None,
    fault: Annotated[
        Fault | None, typer.Option(help="The only kind of fault, if the swarm was restricted to one.")
    ] = None,
    property: Annotated[
        str | None,
        typer.Option(help="Property that must stay violated. Default: the first one that is violated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: PROTOCOL-SEED-small.toml.", metavar="FILE")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    tries: Annotated[int, typer.Option(help="Most runs to try.", min=1)] = TRIES,
    seconds: Annotated[float, typer.Option(help="Most seconds to search.", min=0)] = 300.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Make a failing scenario smaller, so that a person can follow it.

    The command takes a seed of a swarm, a scenario file, or the folder of a simulated run. It removes faults,
    messages, hosts and groups, and simplifies the network and the options, as long as the same property is
    violated. It writes what is left as a scenario file, which fails in the same way. Ctrl-C ends the search
    and keeps the smallest scenario so far.

    [bold]Examples[/]

    ordercast shrink --protocol my_sequencer --seed 17

    ordercast replay my_sequencer-17-small.toml
    """
    with naming_lines_of(scenario if scenario and scenario.is_file() else None):
        chosen = chosen_scenario(scenario, protocol, seed, fault)
        target = out or Path(f"{chosen.protocol}-{chosen.seed}-small.toml")
        if target.exists() and not force:
            raise LocalError(f"{target} exists; choose another file with --out, or overwrite it with --force")
        found, interrupted = _search(chosen, property, tries, seconds)
    write_scenario(target, found.scenario, _comment(found))
    if load_scenario(target) != found.scenario:
        raise LocalError(f"{target} does not say the same as the scenario that was found")
    if json:
        print_json(_object(found, target))
    else:
        _show(found, target, interrupted)
    return INTERRUPTED if interrupted else 0


class _Best:
    """The smallest scenario so far, for the case that the user does not want to wait."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.tries = 0

    def note(self, scenario: Scenario, tries: int) -> None:
        """Take note of the progress of a search."""
        self.scenario, self.tries = scenario, tries


def _search(scenario: Scenario, violated: str | None, tries: int, seconds: float) -> tuple[Shrunk, bool]:
    """The smallest scenario that was found, and whether Ctrl-C ended the search."""
    deadline = time.monotonic() + seconds
    best = _Best(scenario)
    with progress_bar() as bar:
        task = bar.add_task("shrinking", total=tries)

        def report(smallest: Scenario, tried: int) -> None:
            best.note(smallest, tried)
            left = f"{len(smallest.fault)} faults, {len(smallest.workload.submission)} messages"
            bar.update(task, completed=tried, description=left)

        try:
            found = search(
                scenario,
                violated=violated,
                tries=tries,
                enough=lambda: time.monotonic() > deadline,
                report=report,
            )
        except KeyboardInterrupt:
            return measured(scenario, best.scenario, violated, best.tries), True
    return found, False


def _comment(found: Shrunk) -> str:
    return (
        f"Violates {found.violation.property}: {found.violation.detail}\n"
        "See what happens: ordercast replay THIS_FILE"
    )


def _object(found: Shrunk, target: Path) -> dict[str, object]:
    return {
        "out": str(target),
        "violation": violation_object(found.violation),
        "reason": found.reason,
        "before": found.before._asdict(),
        "after": found.after._asdict(),
        "tries": found.tries,
        "finished": found.finished,
        "scenario": msgspec.to_builtins(found.scenario),
    }


def _show(found: Shrunk, target: Path, interrupted: bool) -> None:
    console.print(f"[bold red]{found.violation.headline()}[/]")
    console.print(f"  {found.violation.detail}", markup=False, soft_wrap=True)
    if found.reason:
        console.print(f"  why: {found.reason}", markup=False, soft_wrap=True)
    for name, before, after in zip(Size._fields, found.before, found.after, strict=True):
        if name == "lasted_ns":
            console.print(f"  {'lasted':<11}{format_ns(before, 3)} -> {format_ns(after, 3)}")
        else:
            console.print(f"  {name:<11}{before} -> {after}")
    spent = "the search was interrupted" if interrupted else "the budget was spent"
    end = "nothing more can be removed" if found.finished else spent
    console.print(f"  after {found.tries} runs; {end}")
    console.print(f"  to see it: ordercast replay {target}", soft_wrap=True)
