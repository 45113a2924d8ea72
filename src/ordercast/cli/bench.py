"""`ordercast bench`: measure how fast a protocol is on this machine."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ordercast.cli.bench_service import PIPELINED, bench_service
from ordercast.cli.config import parse_options
from ordercast.cli.output import console, errors, print_json
from ordercast.core import LocalError
from ordercast.lab.bench.service_spec import ServiceBenchSpec
from ordercast.lab.bench.spec import BenchResult, BenchSpec, Load


def bench(
    protocol: Annotated[
        str, typer.Option(help="Protocol to measure. Default: hydra; with --service, unreplicated.")
    ] = "",
    service: Annotated[
        str, typer.Option(help="Measure calls of a service: a built-in one, or module:Class.", metavar="NAME")
    ] = "",
    receivers: Annotated[
        int,
        typer.Option(
            "--receivers",
            "--replicas",
            help="Number of receivers, one process each. The first process also sends, unless they are the"
            " replicas of a service.",
        ),
    ] = 3,
    reads: Annotated[
        float, typer.Option(help="Share of reads among the operations of a service.", min=0, max=1)
    ] = 0.0,
    size: Annotated[int, typer.Option(help="Bytes per message.")] = 64,
    rate: Annotated[
        float | None, typer.Option(help="Open loop: messages per second, sent on schedule.")
    ] = None,
    maximum: Annotated[
        bool, typer.Option("--max", help="Closed loop at maximum throughput (the default).")
    ] = False,
    clients: Annotated[
        int | None,
        typer.Option(help="Closed loop: number of clients, each with one message in flight.", min=1),
    ] = None,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Run each of --clients as a task that awaits its message.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Seconds to measure, after a warm-up of one second.")] = 5.0,
    window: Annotated[int, typer.Option(help="Bytes in flight with --max.")] = 2 << 20,
    plaintext: Annotated[
        bool, typer.Option(help="Do not encrypt, to measure what encryption costs.")
    ] = False,
    transport: Annotated[str, typer.Option(help="udp or tcp.")] = "udp",
    datagram: Annotated[
        int, typer.Option(help="Largest datagram in bytes; 0 means 60000, the default on one machine.")
    ] = 0,
    busy_poll: Annotated[
        bool, typer.Option(help="Never sleep. Use it only if each host has its own core.")
    ] = False,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="With --service: the program that calls runs a replica, too.")
    ] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="Protocol option as NAME=VALUE; may be repeated.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="New folder that keeps the traces and the logs.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Measure a protocol on real sockets: a cluster of processes on this machine, encrypted.

    A message counts when all receivers have delivered it. In open loop, latency starts when a message should
    have been sent, so a stall shows in all messages that waited for it. Every message is accounted for: lost
    messages and violations of the order are reported. The exit code is 1 if there are violations.

    With [bold]--service[/], tasks of one program call the service, each as soon as it has its last answer:
    [bold]--clients[/] tasks, or with --max 1024, whose calls go in bundles. Then an operation counts when it
    is answered, and the answers are compared with those of a single service.

    [bold]Examples[/]

    ordercast bench --protocol hydra --receivers 3 --option sequencers=2 --size 64 --max --seconds 5

    ordercast bench --rate 100000 --seconds 10 --json

    ordercast bench --clients 1

    ordercast bench --clients 64 --tasks

    ordercast bench --service kv --protocol unreplicated --clients 64
    """
    chosen = [name for name, given in (("--rate", rate), ("--max", maximum), ("--clients", clients)) if given]
    if len(chosen) > 1:
        raise LocalError(f"choose one of {' and '.join(chosen)}")
    if tasks and not clients:
        raise LocalError("--tasks needs --clients")
    load: Load = "rate" if rate else "clients" if clients else "max"
    options = parse_options(option or [])
    if transport not in ("udp", "tcp"):
        raise LocalError(f"--transport must be udp or tcp, not {transport}")
    if service:
        if rate:
            raise LocalError("--rate is not possible with --service: choose --max or --clients")
        asked = ServiceBenchSpec(
            protocol=protocol or "unreplicated",
            service=service,
            replicas=receivers,
            tasks=clients or PIPELINED,
            reads=reads,
            size=size,
            seconds=seconds,
            options=options,
            embedded=embedded,
            plaintext=plaintext,
            transport=transport,
            trace=keep is not None,
        )
        return bench_service(asked, keep, json=json)
    if embedded:
        raise LocalError("--embedded is only possible with --service")
    from ordercast.lab.bench.run import run_bench

    protocol = protocol or "hydra"
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
    tasks = ", one task each" if result.options["tasks"] else ""
    table = Table("figure", "value", title=f"{result.protocol}, {result.load}{tasks}")
    table.add_row("ordered messages per second", f"{result.ordered_per_s:,.0f}")
    if result.latency_us is not None:
        for name in ("p50", "p99", "p999", "max"):
            table.add_row(
                f"latency {name}, us, {result.latency_of}", f"{getattr(result.latency_us, name):,.0f}"
            )
    for role, value in result.cpu_us_per_message.items():
        table.add_row(f"CPU us per message, {role}", f"{value:.2f}")
    table.add_row("submitted", f"{result.submitted:,}")
    table.add_row("lost", f"{result.lost:,} ({result.drops_notified:,} drop notifications)")
    table.add_row("violations", str(len(result.violations)))
    console.print(table)
    for text in result.violations:
        console.print(f"[red]{text}[/]")
