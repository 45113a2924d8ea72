"""Protocols of ordercast that replicate services, measured as `ordercast bench --service kv` does."""

from pathlib import Path

from benchmarks.services.contender import REPLICAS, VALUE_BYTES, Contender, Figures, MeasureError
from ordercast.catalogue import broken_protocols, find_protocol, protocol_names
from ordercast.core import LocalError
from ordercast.lab.bench.service_run import run_service_bench
from ordercast.lab.bench.service_spec import ServiceBenchSpec


class Ours(Contender):
    """One protocol, with its options for real machines."""

    def __init__(self, protocol: str) -> None:
        self.name = protocol

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Measure, and compare all answers with those of a single service."""
        spec = ServiceBenchSpec(
            protocol=self.name, replicas=REPLICAS, tasks=tasks, size=VALUE_BYTES, seconds=seconds
        )
        try:
            result = run_service_bench(spec, folder / "cluster")
        except LocalError as error:
            raise MeasureError(str(error)) from error
        if result.latency_us is None:
            raise MeasureError("nothing was answered")
        wrong = len(result.violations) + result.unknown
        return Figures(result.operations_per_s, result.latency_us.p50, result.latency_us.p99, wrong)


def protocols_that_serve() -> list[Contender]:
    """All of them, by the catalogue."""
    broken = broken_protocols()
    return [Ours(name) for name in protocol_names() if name not in broken and find_protocol(name).serves]
