"""Protocols of ordercast that replicate services: `ordercast bench --service kv` with writes only."""

from pathlib import Path

from benchmarks.services.contender import REPLICAS, VALUE_BYTES, Contender, Figures, MeasureError
from ordercast.catalogue import broken_protocols, find_protocol, protocol_names
from ordercast.core import Consistency, LocalError
from ordercast.lab.bench.service_run import run_service_bench
from ordercast.lab.bench.service_spec import ServiceBenchSpec

DURABLE, COMPACT, APART = "hydra_paxos_durable", "hydra_paxos_compact", "hydra_paxos_apart"
SUBJECT = "hydra_paxos"
_FEW: dict[str, object] = {"hydra": {"compact": True}}


class Ours(Contender):
    """One protocol, with its options for real machines, and perhaps others."""

    def __init__(
        self,
        protocol: str,
        name: str = "",
        options: dict[str, object] | None = None,
        *,
        embedded: bool = False,
    ) -> None:
        self.name = name or protocol
        self._protocol = protocol
        self._options = options or {}
        self._embedded = embedded

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Write, and compare all answers with those of a single service."""
        spec = ServiceBenchSpec(
            protocol=self._protocol,
            replicas=REPLICAS,
            tasks=tasks,
            only="put",
            size=VALUE_BYTES,
            seconds=seconds,
            options=self._options,
            embedded=self._embedded,
        )
        try:
            result = run_service_bench(spec, folder / "cluster")
        except LocalError as error:
            raise MeasureError(str(error)) from error
        if result.latency_us is None:
            raise MeasureError("nothing was answered")
        wrong = len(result.violations) + result.unknown
        return Figures(result.operations_per_s, result.latency_us.p50, result.latency_us.p99, wrong)


SHARDED = (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)


def protocols_that_serve() -> list[Contender]:
    """All of them, by the catalogue. HydraPaxos has a replica in the program, as PySyncObj has; it takes part
    again with the program apart from it, with few processes, and with its log on disk."""
    broken = broken_protocols()
    found = [find_protocol(name) for name in protocol_names() if name not in broken]
    # Those of transactions need a service in shards.
    plain = [one.name for one in found if one.serves and one.guarantees.consistency not in SHARDED]
    return [
        Ours(SUBJECT, options=_FEW, embedded=True),
        *(Ours(name) for name in plain if name != SUBJECT),
        Ours(SUBJECT, APART),
        Ours(SUBJECT, COMPACT, _FEW),
        Ours(SUBJECT, DURABLE, {"durable": True}),
    ]
