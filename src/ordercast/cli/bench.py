"""`ordercast bench`: how fast a protocol is on this machine."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ordercast.cli.config import parse_options
from ordercast.cli.output import console, errors, print_json
from ordercast.core import LocalError
from ordercast.lab.bench.spec import BenchResult, BenchSpec, Load


def bench(
    protocol: Annotated[str, typer.Option(help="Which one.")] = "hydra",
    receivers: Annotated[int, typer.Option(help="Receivers, a process each; the first one's sends too.")] = 3,
    size: Annotated[int, typer.Option(help="Bytes of each message.")] = 64,
    rate: Annotated[
        float | None, typer.Option(help="Open loop: so many messages a second, come what may.")
    ] = None,
    maximum: Annotated[
        bool, typer.Option("--max", help="Closed loop: as many as go through (the default).")
    ] = False,
    clients: Annotated[
        int | None, typer.Option(help="Closed loop: so many clients, each with one message under way.")
    ] = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Each of --clients is a task of its own, and awaits its message.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="How long to measure, after a second of warming up.")] = 5.0,
    window: Annotated[int, typer.Option(help="Bytes under way, for --max.")] = 2 << 20,
    plaintext: Annotated[bool, typer.Option(help="Without encryption, to see what it costs.")] = False,
    transport: Annotated[str, typer.Option(help="udp or tcp.")] = "udp",
    datagram: Annotated[int, typer.Option(help="Largest datagram; 0: 60000, as on one machine.")] = 0,
    busy_poll: Annotated[bool, typer.Option(help="Never sleep: for those who have a core a host.")] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="Option of the protocol, as NAME=VALUE; may be repeated.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Write traces, and keep them with the logs in this new folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure a protocol on real sockets: a cluster of processes on this machine, encrypted.

    Counted is what all receivers delivered. Latency in open loop begins when a message should have been
    sent, so a stall shows in all messages that had to wait for it. Every message is accounted for: lost ones
    and violations of the order are told, and violations make the exit code 1.

    [bold]Examples[/]

    ordercast bench --protocol hydra --receivers 3 --option sequencers=2 --size 64 --max --seconds 5

    ordercast bench --rate 100000 --seconds 10 --json

    ordercast bench --clients 1

    ordercast bench --clients 64 --tasks
    """
    from ordercast.lab.bench.run import run_bench

    chosen = [name for name, given in (("--rate", rate), ("--max", maximum), ("--clients", clients)) if given]
    if len(chosen) > 1:
        raise LocalError(f"choose one of {' and '.join(chosen)}")
    if tasks and not clients:
        raise LocalError("--tasks goes with --clients")
    load: Load = "rate" if rate else "clients" if clients else "max"
    options = parse_options(option or [])
    if transport not in ("udp", "tcp"):
        raise LocalError(f"--transport is udp or tcp, not {transport}")
    spec = BenchSpec(
        protocol=protocol,
        receivers=receivers,
        size=size,
        load=load,
        rate=rate or 0,
        clients=clients or 1,
        tasks=tasks,
        window_bytes=window,
        seconds=seconds,
        options=options,
        plaintext=plaintext,
        transport="tcp" if transport == "tcp" else "udp",
        datagram_bytes=datagram,
        busy_poll=busy_poll,
        trace=keep is not None,
    )
    if not json:
        errors.print(f"measuring {protocol} for {seconds:g} s ...")
    result = run_bench(spec, keep)
    if json:
        print_json(msgspec.to_builtins(result))
    else:
        _show(result)
    return 1 if result.violations else 0


def _show(result: BenchResult) -> None:
    tasks = ", a task each" if result.options["tasks"] else ""
    table = Table("figure", "value", title=f"{result.protocol}, {result.load}{tasks}")
    table.add_row("ordered messages a second", f"{result.ordered_per_s:,.0f}")
    if result.latency_us is not None:
        for name in ("p50", "p99", "p999", "max"):
            table.add_row(
                f"latency {name}, us, {result.latency_of}", f"{getattr(result.latency_us, name):,.0f}"
            )
    for role, value in result.cpu_us_per_message.items():
        table.add_row(f"CPU us a message, {role}", f"{value:.2f}")
    table.add_row("submitted", f"{result.submitted:,}")
    table.add_row("lost", f"{result.lost:,} ({result.drops_notified:,} notifications)")
    table.add_row("violations", str(len(result.violations)))
    console.print(table)
    for text in result.violations:
        console.print(f"[red]{text}[/]")
