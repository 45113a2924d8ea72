"""The table of a cluster's hosts, from the supervisor's report and the status of each host."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from rich.table import Table

from ordercast.cli.hosts import is_here
from ordercast.cli.output import console
from ordercast.core import SECOND, HostId
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.host_mark import Mark
from ordercast.net.cluster.supervisor import HostState
from ordercast.net.cluster.supervisor_client import detached_hosts, report
from ordercast.net.tools.client import ControlClient, NoAnswer

ANSWER_S = 2.0
FIGURES = ("messages_submitted", "messages_delivered", "drops_notified", "packets_in", "packets_out")
_NUMBERS = ("sent", "delivered", "drops")
_COLOURS = {"up": "green", "dead": "red", "silent": "yellow"}


def ask_hosts(cluster: Cluster, hosts: Iterable[HostId] | None = None) -> dict[HostId, dict[str, Any]]:
    """The status of each host on this machine that answers."""
    answers = {}
    for host in (spec.id for spec in cluster.hosts) if hosts is None else hosts:
        with suppress(NoAnswer), ControlClient(host, cluster.socket_path(host), ANSWER_S) as client:
            answers[host] = client.status()
    return answers


def status_object(cluster: Cluster) -> dict[str, Any]:
    """The status of the cluster for programs."""
    found, marks = report(cluster), detached_hosts(cluster.folder)
    states = {host.id: host for host in found.hosts} if found else _left_alone(marks)
    answers = ask_hosts(cluster)
    return {
        "cluster": cluster.name,
        "protocol": cluster.protocol,
        "folder": str(cluster.folder),
        "supervisor": found.pid if found else None,
        "run": found.run if found else next((mark.run for mark in marks.values()), None),
        "detached": bool(marks),
        "hosts": [
            _host_object(cluster, spec, states.get(spec.id), answers.get(spec.id)) for spec in cluster.hosts
        ],
    }


def _left_alone(marks: Mapping[HostId, Mark]) -> dict[HostId, HostState]:
    """The states of hosts that have outlived their supervisor."""
    return {host: HostState(host, "running", mark.pid) for host, mark in marks.items()}


def _host_object(
    cluster: Cluster, spec: HostSpec, process: HostState | None, answer: dict[str, Any] | None
) -> dict[str, Any]:
    metrics = answer["metrics"] if answer else {}
    return {
        "id": spec.id,
        "nodes": list(cluster.node_names[spec.id]),
        "address": str(spec.address),
        "state": _state(spec, process, answer),
        "ended": process.ended if process else "",
        "pid": answer["pid"] if answer else process.pid if process else None,
        "uptime_s": answer["uptime_ns"] / SECOND if answer else None,
        "keys": answer["keys"] if answer else [],
        **{name: metrics.get(name) for name in FIGURES},
    }


def _state(spec: HostSpec, process: HostState | None, answer: dict[str, Any] | None) -> str:
    """The state of a host. `silent`: its process runs but does not answer, as while it starts."""
    if answer is not None:
        return "up"
    if process is None:
        return "down" if is_here(spec.address) else "elsewhere"
    return "silent" if process.state == "running" else process.state


def print_status(content: dict[str, Any]) -> None:
    """Print the status of the cluster for people."""
    here = f"supervisor {content['supervisor']}" if content["supervisor"] else "no supervisor here"
    kept = ", detached hosts" if content["detached"] else ""
    console.print(f"{content['cluster']}: {content['protocol']}, {here}{kept}", markup=False)
    table = Table(box=None, pad_edge=False)
    for title in ("id", "runs", "state", "pid", "address", "up", *_NUMBERS):
        right = title in ("pid", "up", *_NUMBERS)
        table.add_column(title, justify="right" if right else "left", no_wrap=title != "runs")
    for host in content["hosts"]:
        table.add_row(*_row(host))
    console.print(table)
    for host in content["hosts"]:
        if host["ended"]:
            console.print(f"host {host['id']} has ended: {host['ended']}", markup=False)


def _row(host: dict[str, Any]) -> list[str]:
    state = host["state"]
    colour = _COLOURS.get(state)
    shown = f"[{colour}]{state}[/]" if colour else state
    figures = (host[name] for name in FIGURES[: len(_NUMBERS)])
    return [
        str(host["id"]),
        "\n".join(host["nodes"]),
        shown,
        str(host["pid"] or ""),
        host["address"],
        _time(host["uptime_s"]),
        *("" if figure is None else str(figure) for figure in figures),
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
