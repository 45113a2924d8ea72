"""The specification of a measurement, and its result."""

from typing import Literal, TypeAlias

import msgspec

from ordercast.core import LocalError
from ordercast.core.bundle import MESSAGE_BYTES_MAX

Load: TypeAlias = Literal["max", "rate", "clients"]
GROUP = "bench"


class BenchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement. The first receiver's host also sends, and all receivers get every message."""

    protocol: str = "hydra"
    receivers: int = 3
    size: int = 64
    """Bytes of each message."""
    load: Load = "max"
    """*rate*: open loop, messages are sent when they are due, even if earlier ones are late. *max*: closed
    loop, a window of bytes is kept under way. *clients*: closed loop, each client has one under way."""
    rate: float = 0
    """Messages per second, for *rate*."""
    clients: int = 1
    """Number of clients, for *clients*."""
    tasks: bool = False
    """For *clients*: each is a task that awaits its own message. Otherwise messages that become due together
    are sent together."""
    window_bytes: int = 2 << 20
    """Bytes under way at a time, for *max*."""
    seconds: float = 5.0
    warmup_s: float = 1.0
    options: dict[str, object] = {}
    """Options of the protocol."""
    plaintext: bool = False
    transport: Literal["udp", "tcp"] = "udp"
    datagram_bytes: int = 0
    busy_poll: bool = False
    trace: bool = False
    """Write traces, for `ordercast check`."""
    by_packet: bool = False
    """Account for bundles and not for each message, for long runs with too many messages. That is enough to
    find lost and disordered messages, but not for latencies."""

    def __post_init__(self) -> None:
        if self.receivers < 1 or self.clients < 1 or self.window_bytes < 1:
            raise LocalError("receivers, clients and window_bytes must each be at least 1")
        if self.tasks and self.load != "clients":
            raise LocalError("tasks are only possible with load = clients")
        if not 0 <= self.size <= MESSAGE_BYTES_MAX:
            raise LocalError(f"size must be 0 to {MESSAGE_BYTES_MAX} bytes, not {self.size}")
        if self.by_packet and self.load == "clients":
            raise LocalError(
                "by_packet is not possible with load = clients, where every message is accounted for"
            )
        if self.seconds <= 0 or self.warmup_s < 0 or (self.load == "rate" and self.rate <= 0):
            raise LocalError("seconds and rate must be positive, and warmup_s must not be negative")


class Latency(msgspec.Struct, frozen=True):
    """Percentiles in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a measurement."""

    protocol: str
    load: str
    ordered_per_s: float
    """Messages per second that all receivers delivered."""
    latency_us: Latency | None
    latency_of: str
    cpu_us_per_message: dict[str, float]
    """CPU microseconds per message of the processes of each role, and of all together."""
    submitted: int
    lost: int
    """Messages that not every receiver delivered, though all had time to."""
    drops_notified: int
    violations: list[str]
    seconds: float
    options: dict[str, object]
    trace: str = ""
    """The folder of the trace, if one was written."""
