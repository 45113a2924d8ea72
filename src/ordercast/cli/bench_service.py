"""`ordercast bench --service`: measure how fast a protocol answers the calls of a service."""

from pathlib import Path

import msgspec
from rich.table import Table

from ordercast.catalogue import serving_protocol
from ordercast.cli.output import console, errors, print_json
from ordercast.lab.bench.service_spec import ServiceBenchResult, ServiceBenchSpec
from ordercast.services import find_service

PIPELINED = 1024
"""Tasks of a measurement at maximum throughput."""


def bench_service(spec: ServiceBenchSpec, keep: Path | None, *, json: bool) -> int:
    """Measure a service, and print the result; the exit code is 1 if an answer was wrong."""
    from ordercast.lab.bench.service_run import run_service_bench

    serving_protocol(spec.protocol)
    find_service(spec.service)
    if not json:
        errors.print(f"measuring {spec.service} on {spec.protocol} for {spec.seconds:g} s ...")
    result = run_service_bench(spec, keep)
    if json:
        print_json(msgspec.to_builtins(result))
    else:
        _show(result)
    return 1 if result.violations else 0


def _show(result: ServiceBenchResult) -> None:
    title = f"{result.service} on {result.protocol}, {result.tasks} task{'s' if result.tasks > 1 else ''}"
    table = Table("figure", "value", title=title)
    table.add_row("operations per second", f"{result.operations_per_s:,.0f}")
    if result.latency_us is not None:
        for name in ("p50", "p99", "p999", "max"):
            value = getattr(result.latency_us, name)
            table.add_row(f"latency {name}, us, as the task sees it", f"{value:,.0f}")
    for role, cost in result.cpu_us_per_operation.items():
        table.add_row(f"CPU us per operation, {role}", f"{cost:.2f}")
    table.add_row("answered", f"{result.answered:,} ({result.unknown:,} outcomes unknown)")
    table.add_row("violations", f"{len(result.violations)} in {result.checked:,} answers")
    console.print(table)
    for text in result.violations:
        console.print(text, style="red", markup=False)
