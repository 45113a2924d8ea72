"""`ordercast live`: run scenarios on real processes of this machine, and judge them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.live_folder import run_folder
from ordercast.cli.live_output import live_object, show_live
from ordercast.cli.output import print_json, progress_bar
from ordercast.cli.simulate import start_from
from ordercast.core import LocalError
from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.toml_file import naming_lines_of


def live(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENARIO.toml|FOLDER]", help="The scenario to run, or a folder of them."),
    ] = None,
    from_trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a recorded run to repeat instead.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Protocol to run, instead of that of the scenario; with its default options, and without"
            " faults at roles that it does not have."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed for when messages are sent, and to which groups.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write the trace to.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Run a scenario on real processes and sockets of this machine, and judge it.

    Each host of the scenario is an operating system process on loopback. A crash is SIGKILL, and a pause is
    SIGSTOP. Loss, duplication, reordering and partitions are applied to datagrams at their sender. For each
    crash, the command shows the longest silence at each receiver. Settings that only the simulator models
    (CPU, latency and the like) are ignored, and the command lists them.

    Beside the trace, the applications on the hosts keep an account of what they sent, got and were told. The
    command judges it too: nothing is missing without notice, nothing comes twice, all receivers have one
    order, and nobody waits longer than five times the detection time. The exit code is 1 if the trace or the
    account shows a broken promise.

    With a folder, the command runs all its scenarios (*.toml) one after the other and prints a table. If one
    cannot be read or run, the others still run, and the exit code is 2 unless another one broke a promise.

    [bold]Examples[/]

    ordercast live examples/leader-crash.toml --out traces

    ordercast live --from-trace traces/hydra-7-5be98e0c

    ordercast live --protocol hydra

    ordercast live examples/faults --json
    """
    changes: dict[str, Any] = {} if seed is None else {"seed": seed}

    def run_one(path: Path | None, title: str) -> tuple[LiveRun, Path | None]:
        content = _content(path, from_trace, protocol) | changes
        with naming_lines_of(path):
            return _run(to_scenario(content), out, title)

    if scenario is not None and scenario.is_dir() and from_trace is None:
        return run_folder(scenario, run_one, json=json)
    run, folder = run_one(scenario, "")
    if json:
        print_json(live_object(run, folder))
    else:
        show_live(run, folder)
    return 1 if run.violations or run.complaints else 0


def _content(scenario: Path | None, from_trace: Path | None, protocol: str | None) -> dict[str, Any]:
    content = start_from(scenario, from_trace)
    if protocol is not None and protocol != content.get("protocol"):
        content |= {"protocol": protocol, "options": {}}  # the options were those of another protocol
        roles = find_protocol(protocol).roles
        content["fault"] = [one for one in content.get("fault", ()) if one.get("role", roles[0]) in roles]
    if not content:
        raise LocalError(
            "nothing to run: name a scenario file or a folder, or give --from-trace DIR or --protocol NAME"
        )
    return content


def _run(scenario: Scenario, out: Path | None, title: str) -> tuple[LiveRun, Path | None]:
    with progress_bar() as bar:
        task = bar.add_task(title or f"{scenario.protocol}, live", total=None)
        return run_live(scenario, out, lambda done, wanted: bar.update(task, completed=done, total=wanted))
