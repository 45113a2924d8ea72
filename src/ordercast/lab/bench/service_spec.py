"""The specification of a measurement of a service, and its result."""

import msgspec

from ordercast.core import LocalError
from ordercast.lab.bench.spec import Latency


class ServiceBenchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: tasks of one program call a service, each as soon as it has its last answer."""

    protocol: str = "unreplicated"
    service: str = "kv"
    """A built-in service, or a class with `generate` as module:Class."""
    replicas: int = 3
    tasks: int = 1024
    """How many tasks call at the same time. With very many, calls are bundled, and throughput is at its
    limit."""
    reads: float = 0.0
    """The share of reads."""
    only: str = ""
    """The one operation that is called, by its name; by default all that the service's generator draws."""
    size: int = 64
    """Bytes of a value."""
    seconds: float = 5.0
    warmup_s: float = 1.0
    options: dict[str, object] = {}
    """Options of the protocol."""
    embedded: bool = False
    """Whether the program that calls runs a replica, too."""
    plaintext: bool = False
    transport: str = "udp"
    trace: bool = False
    """Write traces, for `ordercast check`."""
    profile: str = ""
    """A file for a profile of the client's process."""

    def __post_init__(self) -> None:
        if self.replicas < 1 or self.tasks < 1 or self.size < 0:
            raise LocalError("replicas and tasks must each be at least 1, and size must not be negative")
        if not 0 <= self.reads <= 1:
            raise LocalError(f"reads must be a share between 0 and 1, not {self.reads:g}")
        if self.seconds <= 0 or self.warmup_s < 0:
            raise LocalError("seconds must be positive, and warmup_s must not be negative")


class ServiceBenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a measurement."""

    protocol: str
    service: str
    tasks: int
    operations_per_s: float
    """Operations per second that were answered."""
    latency_us: Latency | None
    """From the call to the answer, as the task sees it."""
    cpu_us_per_operation: dict[str, float]
    """CPU microseconds per operation of the processes of each role, and of all together."""
    answered: int
    unknown: int
    violations: list[str]
    """Answers that a single service would not have given, in the order of the places that replies name."""
    checked: int
    """How many answers were compared with those of a single service."""
    seconds: float
    options: dict[str, object]
    trace: str = ""
    """The folder of the trace, if one was written."""
