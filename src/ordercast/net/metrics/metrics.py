"""The metrics of a host, as JSON and in Prometheus' text format.

Hot code increments plain integers (`metrics.packets_in += 1`); everything that costs more is done when
somebody reads the metrics. `FAMILIES` is the one list of all counters with their meaning; the exposition and
the documents follow it.
"""

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ordercast.core import MICROSECOND, SECOND, Nanos
from ordercast.net.metrics.histogram import Histogram

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}
_LATENCY_BOUNDS: tuple[Nanos, ...] = tuple(
    factor * 10**power * MICROSECOND // 10 for power in range(2, 8) for factor in (10, 25, 50)
)
"""Upper bounds of the exposed buckets: 100 us, 250 us, 500 us, 1 ms, ..., 50 s."""


class Family(NamedTuple):
    """One metric of the exposition, and the attributes with its values, one per label."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    label: str
    attributes: Mapping[str, str] = {}
    """The attribute of each value of the label; a metric without a label has one empty value. None if it is
    measured by a program."""


def _one(name: str, kind: Literal["counter", "gauge"], help: str, attribute: str) -> Family:
    return Family(name, kind, help, "", {"": attribute})


_REASONS = {
    "version": "rejected_version",
    "truncated": "rejected_truncated",
    "oversized": "rejected_oversized",
    "key": "rejected_key",
    "seal": "rejected_seal",
    "replay": "rejected_replay",
    "session": "rejected_session",
    "storage": "rejected_storage",
    "source": "rejected_source",
}

FAMILIES: tuple[Family, ...] = (
    Family(
        "ordercast_packets_total",
        "counter",
        "Datagrams that went over the network, by direction.",
        "direction",
        {"in": "packets_in", "out": "packets_out"},
    ),
    Family(
        "ordercast_bytes_total",
        "counter",
        "Bytes of these datagrams, headers of IP and UDP not counted.",
        "direction",
        {"in": "bytes_in", "out": "bytes_out"},
    ),
    Family(
        "ordercast_packets_rejected_total",
        "counter",
        "Datagrams refused before a process saw them, by reason.",
        "reason",
        _REASONS,
    ),
    _one(
        "ordercast_malformed_total",
        "counter",
        "Frames and messages of peers that cannot be read.",
        "malformed",
    ),
    _one(
        "ordercast_implausible_total",
        "counter",
        "Messages of peers that a process refused, because no correct peer claims what they say.",
        "implausible",
    ),
    _one("ordercast_handler_errors_total", "counter", "Handlers that raised: defects.", "handler_errors"),
    _one(
        "ordercast_overflow_total",
        "counter",
        "Datagrams to a peer dropped because the queue of its link was full.",
        "overflow",
    ),
    _one(
        "ordercast_away_total",
        "counter",
        "Datagrams to a peer dropped because it acknowledged nothing and counts as away.",
        "dropped_away",
    ),
    _one(
        "ordercast_fragments_repeated_total",
        "counter",
        "Fragments of large messages that peers had lost and requested again.",
        "fragments_repeated",
    ),
    _one(
        "ordercast_messages_submitted_total",
        "counter",
        "Application messages that senders here took.",
        "messages_submitted",
    ),
    _one(
        "ordercast_messages_refused_total",
        "counter",
        "Application messages not taken because the backlog was full.",
        "messages_refused",
    ),
    _one(
        "ordercast_messages_delivered_total",
        "counter",
        "Application messages delivered to receivers here.",
        "messages_delivered",
    ),
    _one("ordercast_drops_notified_total", "counter", "Drop notifications delivered.", "drops_notified"),
    _one(
        "ordercast_unconfirmed_total",
        "counter",
        "Messages of which their sender was told that nobody may have them.",
        "unconfirmed",
    ),
    _one(
        "ordercast_operations_answered_total",
        "counter",
        "Operations of a service that clients here got an answer to.",
        "operations_answered",
    ),
    _one(
        "ordercast_operations_waiting",
        "gauge",
        "Operations of a service whose callers here wait for an answer.",
        "operations_waiting",
    ),
    _one("ordercast_views_total", "counter", "Views and configurations that took effect.", "views"),
    _one("ordercast_config", "gauge", "The latest configuration that took effect.", "config"),
    _one(
        "ordercast_backlog_messages",
        "gauge",
        "Application messages taken here that the protocol has not taken yet.",
        "backlog_messages",
    ),
    _one(
        "ordercast_inbox_bytes", "gauge", "Delivered bytes that no application has taken yet.", "inbox_bytes"
    ),
    _one(
        "ordercast_link_queue_bytes",
        "gauge",
        "Bytes that wait for the window of their link.",
        "link_queue_bytes",
    ),
    _one("ordercast_links_away", "gauge", "Peers that count as away.", "links_away"),
    _one(
        "ordercast_trace_failures_total",
        "counter",
        "Times that the trace could not be written, and recording ended.",
        "trace_failures",
    ),
    _one("ordercast_tail_lost_total", "counter", "Lines that slow readers of a tail missed.", "tail_lost"),
)


class Metrics:
    """The counters of one host, and the latency from submission to delivery at its receivers."""

    __slots__ = (
        "_started",
        "answer_latency",
        "backlog_messages",
        "bytes_in",
        "bytes_out",
        "config",
        "dropped_away",
        "drops_notified",
        "fragments_repeated",
        "handler_errors",
        "implausible",
        "inbox_bytes",
        "latency",
        "link_queue_bytes",
        "links_away",
        "malformed",
        "messages_delivered",
        "messages_refused",
        "messages_submitted",
        "more",
        "operations_answered",
        "operations_waiting",
        "overflow",
        "packets_in",
        "packets_out",
        "rejected_key",
        "rejected_oversized",
        "rejected_replay",
        "rejected_seal",
        "rejected_session",
        "rejected_source",
        "rejected_storage",
        "rejected_truncated",
        "rejected_version",
        "role",
        "tail_lost",
        "trace_failures",
        "unconfirmed",
        "views",
    )

    def __init__(self) -> None:
        self._started = time.monotonic_ns()
        self.latency = Histogram()
        self.answer_latency = Histogram()
        """From the call of an operation to its answer."""
        self.packets_in = 0
        self.packets_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.rejected_version = 0
        self.rejected_truncated = 0
        self.rejected_oversized = 0
        self.rejected_key = 0
        self.rejected_seal = 0
        self.rejected_replay = 0
        self.rejected_session = 0
        self.rejected_storage = 0
        self.rejected_source = 0
        self.malformed = 0
        self.implausible = 0
        self.handler_errors = 0
        self.overflow = 0
        self.dropped_away = 0
        self.fragments_repeated = 0
        self.messages_submitted = 0
        self.messages_refused = 0
        self.messages_delivered = 0
        self.drops_notified = 0
        self.unconfirmed = 0
        self.operations_answered = 0
        self.operations_waiting = 0
        self.views = 0
        self.config = 0
        self.role = ""
        """The word of the protocol for how a process here takes part in the order, if it has one."""
        self.backlog_messages = 0
        self.inbox_bytes = 0
        self.link_queue_bytes = 0
        self.links_away = 0
        self.tail_lost = 0
        self.trace_failures = 0
        self.more: list[Callable[[], Iterable[tuple[Family, Mapping[str, int]]]]] = []
        """What programs on this host have measured besides: values of families, by label."""

    @property
    def rejected(self) -> int:
        """Datagrams refused, for all reasons together."""
        return sum(int(getattr(self, attribute)) for attribute in _REASONS.values())

    def counters(self) -> dict[str, int]:
        """Every counter and gauge by the name of its attribute."""
        return {name: int(getattr(self, name)) for family in FAMILIES for name in family.attributes.values()}

    def snapshot(self) -> dict[str, object]:
        """All metrics for JSON; readers get rates by comparing two snapshots."""
        return {
            "uptime_ns": time.monotonic_ns() - self._started,
            "cpu_ns": time.process_time_ns(),
            "rss_bytes": resident_bytes(),
            **self.counters(),
            "role": self.role,
            "latency": self.latency.to_dict(),
            "latency_ns": {name: self.latency.percentile(at) for name, at in PERCENTILES.items()},
            "answer_latency": self.answer_latency.to_dict(),
        }

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """The text exposition of all metrics, each with these labels (its host, its cluster)."""
        return "".join(f"{line}\n" for line in self._lines(labels or {}))

    def _lines(self, labels: Mapping[str, str]) -> Iterator[str]:
        for family in FAMILIES:
            values = {value: getattr(self, attribute) for value, attribute in family.attributes.items()}
            yield from _family_lines(family, values, labels)
        for more in self.more:
            for family, measured in more():
                yield from _family_lines(family, measured, labels)
        text = "From submission to delivery, by the clocks of both nodes."
        yield from _histogram_lines("ordercast_latency_seconds", text, self.latency, labels)
        text = "From the call of an operation to its answer."
        yield from _histogram_lines("ordercast_answer_seconds", text, self.answer_latency, labels)
        yield from _head("process_cpu_seconds_total", "counter", "CPU time of the process.")
        yield f"process_cpu_seconds_total{_labels(labels)} {time.process_time_ns() / SECOND:.6f}"
        yield from _head("process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM.")
        yield f"process_resident_memory_bytes{_labels(labels)} {resident_bytes()}"


def _family_lines(family: Family, values: Mapping[str, int], labels: Mapping[str, str]) -> Iterator[str]:
    yield from _head(family.name, family.kind, family.help)
    for value, measured in values.items():
        own = {family.label: value} if family.label else {}
        yield f"{family.name}{_labels({**own, **labels})} {measured}"


def _histogram_lines(name: str, text: str, taken: Histogram, labels: Mapping[str, str]) -> Iterator[str]:
    yield from _head(name, "histogram", text)
    for bound in _LATENCY_BOUNDS:
        yield f"{name}_bucket{_labels({'le': f'{bound / SECOND:g}', **labels})} {taken.at_most(bound)}"
    yield f"{name}_bucket{_labels({'le': '+Inf', **labels})} {taken.count}"
    yield f"{name}_sum{_labels(labels)} {taken.total / SECOND:.9f}"
    yield f"{name}_count{_labels(labels)} {taken.count}"


def resident_bytes() -> int:
    """The memory of this process in RAM, in bytes; 0 if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return "{" + pairs + "}" if labels else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
