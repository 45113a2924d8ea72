"""`ordercast demo`: shows in one minute why order matters."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ordercast.cli.output import console, print_violations
from ordercast.core import format_ns, message_name
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate

_NETWORK = NetworkSpec(latency=UniformSpec(50, 2000), duplication=0.02)
_LOSSY = NetworkSpec(latency=UniformSpec(50, 2000), duplication=0.02, loss=0.05)


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the runs. Another seed gives other runs.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder to write the traces to.")] = None,
) -> int:
    """See why order matters: the same messages without order, with order, and with a crash.

    Three senders, three receivers, and a network with varying delays.
    """
    console.print("[bold]1. Unordered multicast[/]: each receiver delivers messages as they arrive")
    runs = [_run("unordered", _NETWORK, seed)]
    _show_orders(runs[0])
    console.print("\n[bold]2. Atomic multicast[/], the same senders and network: one order everywhere")
    runs.append(_run("atomic_multicast", _NETWORK, seed))
    _show_orders(runs[1])
    console.print(
        "\n[bold]3. Atomic multicast[/], 5% of packets are lost; receiver 0 (the leader) crashes after"
        " 10 ms and restarts after 300 ms"
    )
    runs.append(_run("atomic_multicast", _LOSSY, seed, crash=True))
    _show_orders(runs[2])
    console.print()
    _show_summary(runs)
    if out:
        for index, run in enumerate(runs, 1):
            console.print(f"trace of run {index}: {run.write(out / str(index))}", soft_wrap=True)
    found = [
        (f"in run {index}", violation) for index, run in enumerate(runs, 1) for violation in run.violations
    ]
    if found:
        print_violations(found)
        return 1
    console.print(
        "Every promise of every protocol was checked, event by event, and kept. Next:\n"
        "  ordercast protocols\n"
        "  ordercast simulate --protocol atomic_multicast --groups 2 --loss 0.05\n"
        "  ordercast swarm --protocol atomic_multicast --seeds 0:100"
    )
    return 0


def _run(protocol: str, network: NetworkSpec, seed: int, crash: bool = False) -> Run:
    faults = (Crash(at_ms=10, host=0), Restart(at_ms=300, host=0)) if crash else ()
    return simulate(
        Scenario(
            protocol=protocol,
            seed=seed,
            senders=3,
            network=network,
            workload=WorkloadSpec(messages=60, rate_per_s=1000),
            fault=faults,
        )
    )


def _show_orders(run: Run, shown: int = 9) -> None:
    receivers = run.description.groups[0]
    orders = {node: [message_name(message) for message in run.order(node)] for node in receivers}
    reference = orders[receivers[-1]]
    for node in receivers:
        cells = [
            name if name == expected else f"[red]{name}[/]"
            for name, expected in zip(orders[node][:shown], reference, strict=False)
        ]
        console.print(f"  receiver {node}:  {'  '.join(cells)} ...")
    same = all(order == reference for order in orders.values())
    console.print("  [green]the same order everywhere[/]" if same else "  [red]the orders differ[/]")


def _show_summary(runs: list[Run]) -> None:
    table = Table("run", "protocol", "submitted", "delivered", "p50", "p99", "broken")
    for index, run in enumerate(runs, 1):
        summary = run.summary()
        table.add_row(
            str(index),
            summary.protocol,
            str(summary.submitted),
            str(summary.delivered),
            *(format_ns(summary.latency_ns[name] or 0, 3) for name in ("p50", "p99")),
            str(len(run.violations)),
        )
    console.print(table)
