"""`ordercast replay`: run a seed again and print its events up to the first violation."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ordercast.cli.chosen import chosen_scenario
from ordercast.cli.output import console, print_json, print_violations, violation_object
from ordercast.core import Fault, format_ns, message_text
from ordercast.judge import END_OF_RUN
from ordercast.sim.run import Run, simulate
from ordercast.toml_file import naming_lines_of


def replay(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO.toml | RUN]", help="Scenario file, or folder of a run, to replay."),
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol of the swarm seed.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed to replay.")] = None,
    fault: Annotated[
        Fault | None, typer.Option(help="The only kind of fault, if the swarm was restricted to one.")
    ] = None,
    packets: Annotated[bool, typer.Option(help="Show every packet.")] = True,
    whole: Annotated[
        bool, typer.Option("--whole", help="Show the whole run, not only up to the first violation.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show what a seed did, event by event, up to the first violation.

    The command replays a seed of a swarm, a scenario file (with its own seed or with `--seed`), or a stored
    run. A replay is always exact. If packets are shown, the trace hash covers them too.

    [bold]Example[/]

    ordercast replay --protocol atomic_multicast --seed 17 --no-packets
    """
    with naming_lines_of(scenario if scenario and scenario.is_file() else None):
        chosen = chosen_scenario(scenario, protocol, seed, fault)
        run = simulate(msgspec.structs.replace(chosen, packets=packets))
    lines = _lines(run)
    end = len(lines) if whole or not run.violations else _end(run)
    if json:
        print_json(
            {
                "protocol": run.description.protocol,
                "seed": run.scenario.seed,
                "trace_hash": run.description.trace_hash,
                "scenario": run.description.scenario,
                "events": lines[:end],
                "violations": [violation_object(violation) for violation in run.violations],
                "reasons": _reasons(run),
            }
        )
    else:
        _show(run, lines[:end], len(lines) - end)
    return 1 if run.violations else 0


def _lines(run: Run) -> list[str]:
    """The events of a run in words; a packet with the fields of its message."""
    return [
        str(event._replace(label=message_text(run.carried[place])) if place in run.carried else event)
        for place, event in enumerate(run.events())
    ]


def _end(run: Run) -> int:
    """How many events lead to the first violation.

    If a violation shows only at the end, these are the events up to the last one that is not about a packet:
    nothing that the packets after it did was of use.
    """
    steps = [violation.step for violation in run.violations if violation.step != END_OF_RUN]
    if steps or run.description.failure:
        return min(steps, default=len(run.rows) - 1) + 1
    rows = range(len(run.rows))
    return max((place for place in rows if place not in run.carried), default=-1) + 1


def _reasons(run: Run) -> list[str]:
    """The reasons of violations at the end of the run, each once."""
    return list(dict.fromkeys(reason for found in run.violations if (reason := run.reason(found))))


def _show(run: Run, lines: list[str], more: int) -> None:
    scenario = run.scenario
    roles: dict[str, list[str]] = {}
    for described in run.description.nodes:
        roles.setdefault(described.role, []).append(str(described.id))
    console.print(f"[bold]{run.description.protocol}[/], seed {scenario.seed}")
    for role, nodes in roles.items():
        console.print(f"  {role}: nodes {', '.join(nodes)}")
    for group, members in run.description.groups.items():
        console.print(f"  group {group}: nodes {', '.join(map(str, members))}")
    if scenario.options:
        options = ", ".join(f"{name} = {value}" for name, value in scenario.options.items())
        console.print(f"  options: {options}", markup=False, soft_wrap=True)
    for fault in scenario.fault:
        console.print(f"  fault: {fault}", markup=False, soft_wrap=True)
    for change in scenario.changes:
        console.print(f"  change: {change}", markup=False, soft_wrap=True)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if more:
        console.print(f"  ... and {more} more events; --whole shows them")
    if run.violations:
        print_violations(("", violation) for violation in run.violations)
        for reason in _reasons(run):
            console.print(f"  why: {reason}", markup=False, soft_wrap=True)
        for node, explanation in run.waits.items():
            for wait in explanation.waits[:3]:
                text = f"  node {node}: {wait.subject} waits for {wait.blocker}"
                console.print(f"{text}, since {format_ns(wait.since)}", markup=False, soft_wrap=True)
    else:
        console.print("[green]kept every promise[/] of its protocol")
