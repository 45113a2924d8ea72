"""`ordercast simulate`: simulate one run, from a scenario file or from options, and judge it."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ordercast.cli.config import parse_options
from ordercast.cli.output import progress_bar
from ordercast.cli.run_output import show_run
from ordercast.core import LocalError
from ordercast.scenario.file import load_content
from ordercast.scenario.recorded_run import scenario_of
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario
from ordercast.toml_file import naming_lines_of

_SHAPE = "Deployment"
_LOAD = "Workload"
_WORLD = "Network and hosts"
_RESULT = "Results"


def simulate(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO.toml]", help="Scenario file; options override it.")
    ] = None,
    from_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of a recorded run to repeat instead.", rich_help_panel=_SHAPE
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Protocol name; `ordercast protocols` lists them.", rich_help_panel=_SHAPE),
    ] = None,
    receivers: Annotated[
        int | None, typer.Option(help="Receivers per group.", rich_help_panel=_SHAPE)
    ] = None,
    groups: Annotated[int | None, typer.Option(help="Number of groups.", rich_help_panel=_SHAPE)] = None,
    senders: Annotated[int | None, typer.Option(help="Number of senders.", rich_help_panel=_SHAPE)] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Protocol option as NAME=VALUE; may be repeated.", rich_help_panel=_SHAPE),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random choices.", rich_help_panel=_SHAPE)
    ] = None,
    messages: Annotated[
        int | None, typer.Option(help="Total number of messages.", rich_help_panel=_LOAD)
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Messages per second and sender.", rich_help_panel=_LOAD)
    ] = None,
    size: Annotated[int | None, typer.Option(help="Bytes per message.", rich_help_panel=_LOAD)] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="Workload kind: poisson, periodic, recorded or closed.", rich_help_panel=_LOAD),
    ] = None,
    latency_us: Annotated[
        float | None, typer.Option(help="Constant network delay, in microseconds.", rich_help_panel=_WORLD)
    ] = None,
    jitter_us: Annotated[
        float | None,
        typer.Option(
            help="Random delay of 0 to this many microseconds, on top of --latency-us (default 50).",
            rich_help_panel=_WORLD,
        ),
    ] = None,
    loss: Annotated[
        float | None, typer.Option(help="Fraction of packets lost, 0 to 1.", rich_help_panel=_WORLD)
    ] = None,
    duplication: Annotated[
        float | None, typer.Option(help="Fraction of packets duplicated, 0 to 1.", rich_help_panel=_WORLD)
    ] = None,
    reordering: Annotated[
        float | None,
        typer.Option(
            help="Fraction of packets delayed so that others overtake them, 0 to 1.", rich_help_panel=_WORLD
        ),
    ] = None,
    receive_ns: Annotated[
        int | None,
        typer.Option(help="CPU time to receive a packet, in nanoseconds.", rich_help_panel=_WORLD),
    ] = None,
    send_ns: Annotated[
        int | None, typer.Option(help="CPU time to send a packet, in nanoseconds.", rich_help_panel=_WORLD)
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            help="Fractions of messages that go to 1, 2, ... groups, such as 0.8,0.2.", rich_help_panel=_LOAD
        ),
    ] = None,
    skew_us: Annotated[
        float | None, typer.Option(help="Largest clock error, in microseconds.", rich_help_panel=_WORLD)
    ] = None,
    packets: Annotated[
        bool,
        typer.Option("--packets", help="Also record every packet in the trace.", rich_help_panel=_RESULT),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the trace to.", rich_help_panel=_RESULT)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_RESULT)
    ] = False,
) -> int:
    """Run one simulation and judge it.

    Options override the scenario file. The same seed always gives the same trace. With [bold]--from-trace[/],
    the simulation submits the same messages as a recorded run, live or simulated.

    [bold]Examples[/]

    ordercast simulate --protocol atomic_multicast --groups 2 --receivers 3 --messages 200 --loss 0.05

    ordercast simulate examples/leader-crash.toml --seed 4 --out traces
    """
    content = start_from(scenario, from_trace)
    changes: dict[tuple[str, ...], object] = {
        ("protocol",): protocol,
        ("receivers",): receivers,
        ("groups",): groups,
        ("senders",): senders,
        ("seed",): seed,
        ("workload", "messages"): messages,
        ("workload", "rate_per_s"): rate,
        ("workload", "bytes"): size,
        ("workload", "kind"): workload,
        ("workload", "spread"): _shares(spread),
        ("network", "latency"): _latency(latency_us, jitter_us),
        ("network", "loss"): loss,
        ("network", "duplication"): duplication,
        ("network", "reordering"): reordering,
        ("cpu", "receive_ns"): receive_ns,
        ("cpu", "send_ns"): send_ns,
        ("clocks", "skew_us"): skew_us,
        ("packets",): packets or None,
    }
    changes |= {("options", name): value for name, value in parse_options(option or []).items()}
    for keys, value in changes.items():
        if value is not None:
            _set(content, keys, value)
    if "protocol" not in content:
        raise LocalError("no protocol: give --protocol NAME, or a scenario file")
    if receivers is not None or groups is not None:
        content.pop("membership", None)
    with naming_lines_of(scenario):
        run = _run(to_scenario(content))
    folder = run.write(out) if out else None
    show_run(run, folder, json)
    return 1 if run.violations else 0


def start_from(scenario: Path | None, from_trace: Path | None) -> dict[str, Any]:
    """The content of a scenario file or of a recorded run."""
    if scenario and from_trace:
        raise LocalError("give a scenario file or --from-trace, not both")
    if from_trace:
        content: dict[str, Any] = msgspec.to_builtins(scenario_of(from_trace))
    else:
        content = load_content(scenario) if scenario else {}
    return content


def _latency(latency_us: float | None, jitter_us: float | None) -> dict[str, object] | None:
    if jitter_us is not None:
        low = 50.0 if latency_us is None else latency_us
        return {"kind": "uniform", "low_us": low, "high_us": low + jitter_us}
    return None if latency_us is None else {"kind": "constant", "us": latency_us}


def _shares(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(share) for share in text.split(",")]
    except ValueError:
        raise LocalError(f"--spread must list fractions such as 0.8,0.2, not '{text}'") from None


def _set(content: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    for key in keys[:-1]:
        content = content.setdefault(key, {})
    content[keys[-1]] = value


def _run(scenario: Scenario) -> Run:
    with progress_bar() as bar:
        task = bar.add_task(f"{scenario.protocol}, seed {scenario.seed}", total=None)
        return run_scenario(
            scenario, progress=lambda done, wanted: bar.update(task, completed=done, total=wanted)
        )
