"""`ordercast top`: a table of the hosts of a running cluster, updated each second."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.hosts import Hosts, note_elsewhere, reach_hosts
from ordercast.cli.output import console, print_json
from ordercast.core import SECOND, HostId, LocalError, Nanos, format_ns
from ordercast.net.metrics.histogram import Histogram
from ordercast.net.tools.client import NoAnswer

_REJECTED = "rejected_"
_COLUMNS = (
    *("host", "role", "in/s", "out/s", "sent/s", "deliv/s", "p50", "p99", "cpu"),
    *("backlog", "buffer", "drops", "bad", "refused", "lost", "config"),
)
_SERVICE = ("answ/s", "waiting", "unknown")
"""Columns of a cluster with a service, after those of messages."""
_ROLE_WIDTH = 14
_WIDE = 120
"""Width of a terminal that shows the whole table."""
_LEFT_OUT = ("in/s", "out/s", "cpu", "buffer", "bad", "refused")
"""Columns that a narrower terminal does not show."""


class Row(msgspec.Struct, frozen=True):
    """One host, measured between two readings."""

    host: HostId
    role: str
    packets_in_per_s: float
    packets_out_per_s: float
    submitted_per_s: float
    delivered_per_s: float
    answered_per_s: float
    """Answers to clients of a service here."""
    waiting: int
    """Operations of a service whose callers here wait for an answer."""
    unknown: int
    """Operations or messages whose outcome their sender here does not know."""
    p50_ns: Nanos | None
    """Latency of the messages delivered between the readings, like `p99_ns`; at a client of a service, of the
    answers."""
    p99_ns: Nanos | None
    cpu_percent: float
    rss_bytes: int
    backlog_messages: int
    buffered_bytes: int
    """Bytes delivered and not yet taken by an application, or waiting for a link."""
    drops_notified: int
    rejected: int
    refused: int
    """Messages of peers that cannot be read, or claim what no correct peer claims."""
    lost: int
    """Datagrams dropped because the peer was too slow or unreachable."""
    links_away: int
    trace_failures: int
    config: int


def top(
    once: Annotated[bool, typer.Option("--once", help="Measure one interval, print it, and exit.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between two readings.")] = 1.0,
    config: ConfigOption = CONFIG,
    json: Annotated[
        bool, typer.Option("--json", help="Measure one interval and print one JSON object.")
    ] = False,
) -> int:
    """Show all hosts on this machine: rates, latency, buffers, losses, configuration.

    Rates and latency cover the last interval; losses are counted since the host started.
    [dim]in/s, out/s[/]: datagrams. [dim]sent/s, deliv/s[/]: application messages that senders took and
    receivers delivered. [dim]answ/s, waiting, unknown[/]: of a service, operations that were answered, whose
    callers wait, and whose outcome is unknown. [dim]backlog[/]: messages that a protocol has not taken yet.
    [dim]buffer[/]: bytes that no application has taken yet, or that wait for a slow peer. [dim]drops[/]: drop
    notifications. [dim]bad[/]: datagrams rejected as forged, foreign, old or broken. [dim]refused[/]:
    messages of members that no correct member sends. [dim]lost[/]: datagrams dropped because a peer was too
    slow or unreachable. A narrow terminal shows fewer columns; --json has all. Ctrl-C exits.

    [bold]Examples[/]

    ordercast top

    ordercast top --once --json
    """
    cluster = read_config(config)
    with reach_hosts(cluster) as hosts:
        if not hosts.clients:
            raise LocalError("no host answers on this machine; check the cluster: ordercast cluster status")
        readings = _readings(hosts, interval)
        if json:
            print_json({"hosts": next(readings), "absent": hosts.absent, "elsewhere": hosts.elsewhere})
        elif once or not console.is_terminal:
            console.print(_table(next(readings), hosts))
            note_elsewhere(hosts)
        else:
            with Live(_table([], hosts), console=console, auto_refresh=False, screen=True) as live:
                for rows in readings:
                    live.update(_table(rows, hosts), refresh=True)
    return 0


def _readings(hosts: Hosts, interval: float) -> Iterator[list[Row]]:
    before = _read(hosts)
    while True:
        time.sleep(interval)
        hosts.renew()
        for host in [*hosts.absent]:
            hosts.reach(host)
        after = _read(hosts)
        yield [
            measure(host, hosts.roles[host], before[host], after[host])
            for host in sorted(after)
            if host in before
        ]
        before = after


def _read(hosts: Hosts) -> dict[HostId, dict[str, Any]]:
    found = {}
    for host, client in list(hosts.clients.items()):
        try:
            found[host] = client.metrics()
        except NoAnswer:
            hosts.lose(host)
    return found


def measure(host: HostId, role: str, before: dict[str, Any], after: dict[str, Any]) -> Row:
    """The rates between two readings of a host; since its start, if it restarted between them."""
    if after["uptime_ns"] < before["uptime_ns"]:
        empty = Histogram().to_dict()
        before = dict.fromkeys(before, 0) | {"latency": empty, "answer_latency": empty}
    elapsed: int = max(1, after["uptime_ns"] - before["uptime_ns"])

    def rate(name: str) -> float:
        return round(float(after[name] - before[name]) * SECOND / elapsed, 1)

    answers = _since("answer_latency", before, after)
    latency = answers if answers.count else _since("latency", before, after)
    return Row(
        host=host,
        role=", ".join(filter(None, (role, after["role"]))),
        packets_in_per_s=rate("packets_in"),
        packets_out_per_s=rate("packets_out"),
        submitted_per_s=rate("messages_submitted"),
        delivered_per_s=rate("messages_delivered"),
        answered_per_s=rate("operations_answered"),
        waiting=after["operations_waiting"],
        unknown=after["unconfirmed"],
        p50_ns=latency.percentile(50),
        p99_ns=latency.percentile(99),
        cpu_percent=round(100 * (after["cpu_ns"] - before["cpu_ns"]) / elapsed, 1),
        rss_bytes=after["rss_bytes"],
        backlog_messages=after["backlog_messages"],
        buffered_bytes=after["inbox_bytes"] + after["link_queue_bytes"],
        drops_notified=after["drops_notified"],
        rejected=sum(count for name, count in after.items() if name.startswith(_REJECTED)),
        refused=after["implausible"] + after["malformed"],
        lost=after["overflow"] + after["dropped_away"],
        links_away=after["links_away"],
        trace_failures=after["trace_failures"],
        config=after["config"],
    )


def _since(name: str, before: dict[str, Any], after: dict[str, Any]) -> Histogram:
    return Histogram.from_dict(after[name]).since(Histogram.from_dict(before[name]))


def columns_of(*, service: bool) -> list[str]:
    """The columns of a cluster, with a service or without."""
    place = _COLUMNS.index("deliv/s") + 1
    return [*_COLUMNS[:place], *(_SERVICE if service else ()), *_COLUMNS[place:]]


def _table(rows: list[Row], hosts: Hosts) -> Table:
    title = f"{hosts.cluster.name}: {hosts.cluster.protocol}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    columns = columns_of(service=bool(hosts.cluster.service))
    shown = [name for name in columns if console.width >= _WIDE or name not in _LEFT_OUT]
    for name in shown:
        if name == "role":
            table.add_column(name, min_width=_ROLE_WIDTH)
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = row_cells(row)
        table.add_row(*(cells[name] for name in shown))
    for host, role in sorted(hosts.absent.items()):
        table.add_row(str(host), Text(f"{role}: no answer", "red"))
    return table


def row_cells(row: Row) -> dict[str, str | Text]:
    """The cells of a row, by column name."""
    return {
        "host": str(row.host),
        "role": Text(f"{row.role}: not recorded", "red") if row.trace_failures else row.role,
        "in/s": f"{row.packets_in_per_s:,.0f}",
        "out/s": f"{row.packets_out_per_s:,.0f}",
        "sent/s": f"{row.submitted_per_s:,.0f}",
        "deliv/s": f"{row.delivered_per_s:,.0f}",
        "answ/s": f"{row.answered_per_s:,.0f}",
        "waiting": f"{row.waiting:,}",
        "unknown": _alarming(row.unknown),
        "p50": _duration(row.p50_ns),
        "p99": _duration(row.p99_ns),
        "cpu": f"{row.cpu_percent:.0f}%",
        "backlog": f"{row.backlog_messages:,}",
        "buffer": bytes_text(row.buffered_bytes),
        "drops": _alarming(row.drops_notified),
        "bad": _alarming(row.rejected),
        "refused": _alarming(row.refused),
        "lost": _alarming(row.lost),
        "config": str(row.config),
    }


def _duration(duration: Nanos | None) -> str:
    return "-" if duration is None else format_ns(duration, 3)


def _alarming(count: int) -> Text:
    return Text(f"{count:,}", "yellow" if count else "")


def bytes_text(size: int) -> str:
    """A size in a readable unit."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"
