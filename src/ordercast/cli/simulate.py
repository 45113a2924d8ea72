"""`ordercast simulate`: one run, from a scenario file or from options, judged and summed up."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ordercast.cli.output import progress_bar
from ordercast.cli.run_output import show_run
from ordercast.core import LocalError
from ordercast.scenario.file import load_scenario
from ordercast.scenario.recorded_run import scenario_of
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario
from ordercast.toml_file import naming_lines_of

_SHAPE = "What runs"
_LOAD = "What is sent"
_WORLD = "The network and the hosts"
_RESULT = "The result"


def simulate(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO.toml]", help="Start from this file.")
    ] = None,
    from_trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Start from this recorded run instead.", rich_help_panel=_SHAPE),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="See `ordercast protocols`.", rich_help_panel=_SHAPE)
    ] = None,
    receivers: Annotated[
        int | None, typer.Option(help="Receivers in each group.", rich_help_panel=_SHAPE)
    ] = None,
    groups: Annotated[int | None, typer.Option(help="Groups.", rich_help_panel=_SHAPE)] = None,
    senders: Annotated[int | None, typer.Option(help="Senders.", rich_help_panel=_SHAPE)] = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides everything random.", rich_help_panel=_SHAPE)
    ] = None,
    messages: Annotated[int | None, typer.Option(help="How many in all.", rich_help_panel=_LOAD)] = None,
    rate: Annotated[
        float | None, typer.Option(help="Messages a second of each sender.", rich_help_panel=_LOAD)
    ] = None,
    size: Annotated[int | None, typer.Option(help="Bytes of a message.", rich_help_panel=_LOAD)] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="poisson, periodic, recorded or closed.", rich_help_panel=_LOAD),
    ] = None,
    latency_us: Annotated[
        float | None, typer.Option(help="A constant delay.", rich_help_panel=_WORLD)
    ] = None,
    jitter_us: Annotated[
        float | None,
        typer.Option(help="Delay evenly between --latency-us and that much more.", rich_help_panel=_WORLD),
    ] = None,
    loss: Annotated[
        float | None, typer.Option(help="Share of packets lost, 0 to 1.", rich_help_panel=_WORLD)
    ] = None,
    duplication: Annotated[
        float | None, typer.Option(help="Share of packets doubled.", rich_help_panel=_WORLD)
    ] = None,
    reordering: Annotated[
        float | None, typer.Option(help="Share of packets overtaken.", rich_help_panel=_WORLD)
    ] = None,
    receive_ns: Annotated[
        int | None, typer.Option(help="CPU time of a packet in.", rich_help_panel=_WORLD)
    ] = None,
    send_ns: Annotated[
        int | None, typer.Option(help="CPU time of a packet out.", rich_help_panel=_WORLD)
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(help="Shares of messages to 1, 2, ... groups: 0.8,0.2", rich_help_panel=_LOAD),
    ] = None,
    skew_us: Annotated[
        float | None, typer.Option(help="Clocks are wrong by up to this.", rich_help_panel=_WORLD)
    ] = None,
    packets: Annotated[
        bool, typer.Option("--packets", help="Trace every packet too.", rich_help_panel=_RESULT)
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the trace below this folder.", rich_help_panel=_RESULT)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_RESULT)
    ] = False,
) -> int:
    """Run one simulation and judge it.

    Options override what the scenario file says. The same seed gives the same trace, always. With
    [bold]--from-trace[/], what was submitted in a recorded run, live or simulated, is submitted again.

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
    for keys, value in changes.items():
        if value is not None:
            _set(content, keys, value)
    if "protocol" not in content:
        raise LocalError("say which protocol: --protocol NAME, or a scenario file")
    if receivers is not None or groups is not None:
        content.pop("membership", None)
    with naming_lines_of(scenario):
        run = _run(to_scenario(content))
    folder = run.write(out) if out else None
    show_run(run, folder, json)
    return 1 if run.violations else 0


def start_from(scenario: Path | None, from_trace: Path | None) -> dict[str, Any]:
    """What a scenario file or a recorded run says."""
    if scenario and from_trace:
        raise LocalError("start from a scenario file or from a trace, not from both")
    if from_trace:
        content: dict[str, Any] = msgspec.to_builtins(scenario_of(from_trace))
    else:
        content = msgspec.to_builtins(load_scenario(scenario)) if scenario else {}
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
        raise LocalError(f"--spread lists shares, as 0.8,0.2, not '{text}'") from None


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
