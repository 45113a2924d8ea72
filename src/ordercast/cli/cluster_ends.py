"""Both ends of a cluster's run: waiting until its hosts answer, and finishing its trace."""

import time
from contextlib import suppress
from typing import NamedTuple

from ordercast.cli.cluster_table import ask_hosts
from ordercast.cli.output import console, errors
from ordercast.core import Agreement, HostId, LocalError
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.supervisor import Order, Report
from ordercast.net.cluster.supervisor_client import (
    await_end,
    is_supervised,
    last_lines,
    order,
    report,
    supervisor_log,
)
from ordercast.net.tools.client import ControlClient, NoAnswer

POLL_S = 0.1
SETTLE_MAX_S = 10.0
"""How long is waited for nothing to be delivered any more."""
_PROGRESS = ("messages_submitted", "messages_delivered", "drops_notified", "views", "backlog_messages")


def await_cluster(cluster: Cluster, timeout_s: float) -> None:
    """Wait until all hosts that run answer; a cluster that does not come up is taken down again."""
    try:
        await_hosts(cluster, timeout_s)
    except (LocalError, KeyboardInterrupt):
        if is_supervised(cluster):
            order(cluster, Order("down", timeout_s=2.0))
            await_end(cluster, 30)
        raise


def await_hosts(cluster: Cluster, timeout_s: float, only: HostSpec | None = None) -> None:
    """Wait until the hosts that run answer, or only one; `LocalError` with its last words if one dies."""
    end = time.monotonic() + timeout_s
    while True:
        found = report(cluster)
        if found is None:
            raise LocalError(f"the supervisor ended: {last_lines(supervisor_log(cluster))}")
        waiting = _waiting(cluster, found, only)
        if not waiting:
            return
        if time.monotonic() > end:
            hosts = ", ".join(map(str, waiting))
            said = _words(cluster, waiting[0])
            raise LocalError(f"no answer of host {hosts} within {timeout_s:g} s: {said}")
        time.sleep(POLL_S)


def _waiting(cluster: Cluster, found: Report, only: HostSpec | None) -> list[HostId]:
    asked = [host for host in found.hosts if only is None or host.id == only.id]
    for host in asked:
        if host.state == "dead":
            ended = f"host {host.id} ended at start ({host.ended})"
            raise LocalError(f"{ended}: {_words(cluster, host.id)}")
    running = [host.id for host in asked if host.state == "running"]
    answers = ask_hosts(cluster, running)
    return [host for host in running if host not in answers]


def _words(cluster: Cluster, host: HostId) -> str:
    path = cluster.log_path(host)
    return f"{last_lines(path)} (see {path})"


class Ending(NamedTuple):
    """How a run ended (see `RunDescription`)."""

    complete: bool = False
    settled: bool = False
    gone: frozenset[HostId] = frozenset()
    """Hosts that had taken part and were missing, if it settled without them."""


def ending(cluster: Cluster, found: Report, quiet_s: float) -> Ending:
    """Wait until a run has settled, if that makes a difference.

    It is not complete if a host is missing: a dead one, or one that an application has left or never joined.
    Then holes alone are of interest, and only if every receiver has taken part.
    """
    running = [host.id for host in found.hosts if host.state == "running"]
    dead = any(host.state == "dead" for host in found.hosts)
    receiving, took_part = _receiving(cluster), _took_part(cluster, found.run)
    wanted = receiving | took_part
    gone = wanted.difference(ask_hosts(cluster, sorted(wanted)))
    if not dead and not gone:
        return Ending(complete=_settle(cluster, running, quiet_s))
    if cluster.plan().guarantees.agreement is not Agreement.PROBABILISTIC or not receiving <= took_part:
        return Ending()
    settled = _settle(cluster, running, quiet_s)
    return Ending(settled=settled, gone=frozenset(gone) if settled else frozenset())


def _settle(cluster: Cluster, running: list[HostId], quiet_s: float) -> bool:
    """Wait until nothing has been delivered for a while, and no node holds anything to deliver.

    Some protocols take longer for one message than a while is. False if that does not happen.
    """
    end = time.monotonic() + SETTLE_MAX_S
    before, since = _progress(cluster, running), time.monotonic()
    while time.monotonic() < end:
        if len(before) < len(running):
            return False
        if time.monotonic() - since >= quiet_s and not _holds(cluster, running):
            break
        time.sleep(min(POLL_S, quiet_s / 4))
        now = _progress(cluster, running)
        if now != before:
            before, since = now, time.monotonic()
    quiet = time.monotonic() - since >= quiet_s  # what is held then will not be delivered
    return quiet and all(figures[-1] == 0 for figures in before.values())


def _holds(cluster: Cluster, hosts: list[HostId]) -> bool:
    """Whether a packet waits at a node."""
    for host in hosts:
        with suppress(NoAnswer), ControlClient(host, cluster.socket_path(host)) as client:
            nodes = client.explain().nodes.values()
            if any(wait.first is not None for node in nodes for wait in node.waits):
                return True
    return False


def _receiving(cluster: Cluster) -> set[HostId]:
    """The hosts with a receiver."""
    plan = cluster.plan()
    return {plan.nodes[node].host for members in plan.groups.values() for node in members}


def _took_part(cluster: Cluster, run: str) -> set[HostId]:
    """The hosts that are or were there."""
    from ordercast.net.host.recording.spool_to_parquet import hosts_of

    return set(hosts_of(cluster.traces / run))


def _progress(cluster: Cluster, hosts: list[HostId]) -> dict[HostId, list[int]]:
    answers = ask_hosts(cluster, hosts)
    return {host: [answer["metrics"][name] for name in _PROGRESS] for host, answer in answers.items()}


def unfinished_runs(cluster: Cluster) -> list[str]:
    """The runs whose trace has no description yet."""
    from ordercast.trace.store import DESCRIPTION

    if not cluster.traces.is_dir():
        return []
    folders = sorted(path for path in cluster.traces.iterdir() if path.is_dir())
    return [path.name for path in folders if not (path / DESCRIPTION).exists()]


def finish_trace(cluster: Cluster, run: str, ended: Ending) -> None:
    """Bring the trace of a run to its end, and say where it is."""
    from ordercast.net.host.recording.spool_to_parquet import finish_run

    if not (cluster.traces / run).is_dir():
        return
    try:
        where = finish_run(
            cluster.traces,
            cluster.plan(),
            run,
            complete=ended.complete,
            settled=ended.settled,
            gone=ended.gone,
            scenario=_as_scenario(cluster),
        )
    except LocalError as error:
        errors.print(f"the trace of {run} is not finished: {error}", markup=False, soft_wrap=True)
        return
    console.print(f"its trace: {where}", markup=False, soft_wrap=True)
    console.print(f"to judge it: ordercast check {where}", markup=False, soft_wrap=True)


def _as_scenario(cluster: Cluster) -> dict[str, object]:
    """As much of a scenario as a cluster is, so that its runs can be run again from their traces."""
    return {
        "protocol": cluster.protocol,
        "options": cluster.options,
        "membership": list(cluster.groups.values()),
        "senders": cluster.senders,
        "colocated": cluster.colocated,
        "bundle_bytes": cluster.bundle_bytes or cluster.transport.datagram_bytes,
    }
