"""`ordercast live`: run one scenario on real processes of this machine, and judge it."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ordercast.cli.output import console, print_json, progress_bar
from ordercast.cli.run_output import ending_text, number_rows, print_judgement, print_rows, run_object
from ordercast.cli.simulate import start_from
from ordercast.core import MILLISECOND, LocalError, format_ns
from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.lab.trial.silence import Silence
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.toml_file import naming_lines_of

LATE_NS = 20 * MILLISECOND
"""Submissions that are later than this are reported in a note."""


def live(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO.toml]", help="The scenario to run.")
    ] = None,
    from_trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a recorded run to repeat instead.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Protocol to run, instead of that of the scenario; with its default options."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed for when messages are sent, and to which groups.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the trace to.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run one scenario on real processes and sockets of this machine, and judge it.

    Each host of the scenario is an operating system process on loopback. A crash is SIGKILL, and a pause is
    SIGSTOP. Loss, duplication, reordering and partitions are applied to datagrams at their sender. For each
    crash, the command shows the longest silence at each receiver. Settings that only the simulator models
    (CPU, latency and the like) are ignored, and the command lists them.

    [bold]Examples[/]

    ordercast live examples/leader-crash.toml --out traces

    ordercast live --from-trace traces/hydra-7-5be98e0c

    ordercast live --protocol hydra
    """
    content = start_from(scenario, from_trace)
    if protocol is not None and protocol != content.get("protocol"):
        content |= {"protocol": protocol, "options": {}}  # the options were those of another protocol
    if not content:
        raise LocalError("nothing to run: name a scenario file, or give --from-trace DIR or --protocol NAME")
    if seed is not None:
        content["seed"] = seed
    with naming_lines_of(scenario):
        run, folder = _run(to_scenario(content), out)
    if json:
        print_json(_object(run, folder))
    else:
        _show(run, folder)
    return 1 if run.violations else 0


def _run(scenario: Scenario, out: Path | None) -> tuple[LiveRun, Path | None]:
    with progress_bar() as bar:
        task = bar.add_task(f"{scenario.protocol}, live", total=None)
        return run_live(scenario, out, lambda done, wanted: bar.update(task, completed=done, total=wanted))


def _object(run: LiveRun, folder: Path | None) -> dict[str, Any]:
    silences = [
        msgspec.to_builtins(one, str_keys=True) | {"longest_ns": one.longest_ns} for one in run.silences
    ]
    more = {"ignored": run.ignored, "late_ns": run.late_ns, "silences": silences}
    return run_object(run, folder) | more


def _show(run: LiveRun, folder: Path | None) -> None:
    summary = run.summary()
    console.print(f"[bold]{summary.protocol}[/], live, seed {summary.seed}")
    rows = number_rows(summary)
    rows["packets"] = f"{summary.packets_lost} lost on purpose or because buffers were full"
    rows["lasted"] = f"{format_ns(summary.duration_ns, 4)}, {ending_text(run)}"
    rows["trace"] = f"{summary.events} events" + (f", in {folder}" if folder else "")
    print_rows(rows)
    for silence in run.silences:
        print_rows({"crash": _silence_text(silence)})
    if run.late_ns > LATE_NS:
        late = f"submissions were up to {format_ns(run.late_ns, 3)} late, because this machine is too busy"
        console.print(f"  [yellow]note[/]: {late}", soft_wrap=True)
    for words in run.ignored:
        console.print(f"  [yellow]ignored[/]: {words}", soft_wrap=True)
    print_judgement(run)


def _silence_text(silence: Silence) -> str:
    told = [
        f"node {node} {'forever' if found is None else format_ns(found, 3)}"
        for node, found in silence.receivers.items()
    ]
    return f"of host {silence.host} at {format_ns(silence.time_ns, 4)}; longest silence: {', '.join(told)}"
