"""The start and the end of a cluster's run: wait until its hosts answer, and finish its trace."""

import time
from contextlib import suppress
from pathlib import Path

from ordercast.cli.cluster_table import ask_hosts
from ordercast.cli.output import console, errors
from ordercast.core import SECOND, HostId, LocalError
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.leftovers import read_left
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
from ordercast.scenario.ending import Finish, cluster_finish, receiving_hosts
from ordercast.scenario.settling import Settling

POLL_S = 0.1
SETTLE_MAX_S = 10.0
"""How long `down` waits at most for deliveries to stop."""
_PROGRESS = ("messages_submitted", "messages_delivered", "drops_notified", "views", "backlog_messages")


def await_cluster(cluster: Cluster, timeout_s: float) -> None:
    """Wait until all running hosts answer. A cluster that does not come up is stopped again."""
    try:
        await_hosts(cluster, timeout_s)
    except (LocalError, KeyboardInterrupt):
        if is_supervised(cluster):
            order(cluster, Order("down", timeout_s=2.0))
            await_end(cluster, 30)
        raise


def await_hosts(cluster: Cluster, timeout_s: float, only: HostSpec | None = None) -> None:
    """Wait until the running hosts answer, or only one. If one dies, the error quotes the end of its log."""
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
            raise LocalError(f"no answer from host {hosts} within {timeout_s:g} s: {said}")
        time.sleep(POLL_S)


def _waiting(cluster: Cluster, found: Report, only: HostSpec | None) -> list[HostId]:
    asked = [host for host in found.hosts if only is None or host.id == only.id]
    for host in asked:
        if host.state == "dead":
            ended = f"host {host.id} failed to start ({host.ended})"
            raise LocalError(f"{ended}: {_words(cluster, host.id)}")
    running = [host.id for host in asked if host.state == "running"]
    answers = ask_hosts(cluster, running)
    return [host for host in running if host not in answers]


def _words(cluster: Cluster, host: HostId) -> str:
    path = cluster.log_path(host)
    return f"{last_lines(path)} (see {path})"


def ending(cluster: Cluster, found: Report, quiet_s: float) -> Finish:
    """How a run ended. If it matters whether the run settled, this waits for that first."""
    from ordercast.net.host.recording.spool_to_parquet import ended_well, hosts_of

    plan, folder = cluster.plan(), cluster.traces / found.run
    took_part = set(hosts_of(folder)) - cluster.roster.removed
    wanted = receiving_hosts(plan) | took_part
    gone = wanted.difference(ask_hosts(cluster, sorted(wanted)))
    if plan.service is not None:  # clients come and go; who left with all its answers owes nothing
        gone = {host for host in gone if host in receiving_hosts(plan) or not ended_well(folder, host)}
    running = [host.id for host in found.hosts if host.state == "running"]
    return cluster_finish(
        plan,
        took_part,
        gone,
        dead=any(host.state == "dead" for host in found.hosts),
        settle=lambda: _settle(cluster, running, quiet_s),
    )


def _settle(cluster: Cluster, running: list[HostId], quiet_s: float) -> bool:
    """Wait until deliveries have stopped for `quiet_s` and no node holds a message to deliver.

    The second condition is for protocols that take longer than `quiet_s` for one message. The result is
    False if the run does not settle.
    """
    settling = Settling(time.monotonic_ns(), round(quiet_s * SECOND), round(SETTLE_MAX_S * SECOND))
    while True:
        progress, now = _progress(cluster, running), time.monotonic_ns()
        settling.see(now, progress)
        if len(progress) < len(running):
            return False
        if settling.over(now) or (settling.quiet(now) and not _holds(cluster, running)):
            break
        time.sleep(min(POLL_S, quiet_s / 4))
    # A message that a node still holds when the time is over will not be delivered.
    return settling.quiet(now) and all(figures[-1] == 0 for figures in progress.values())


def _holds(cluster: Cluster, hosts: list[HostId]) -> bool:
    """Whether a message waits at a node."""
    for host in hosts:
        with suppress(NoAnswer), ControlClient(host, cluster.socket_path(host)) as client:
            nodes = client.explain().nodes.values()
            if any(wait.first is not None for node in nodes for wait in node.waits):
                return True
    return False


def await_backlog(cluster: Cluster, hosts: list[HostId], timeout_s: float) -> dict[HostId, int]:
    """Wait until no host has messages in its backlog; returns how many messages each still has."""
    end = time.monotonic() + timeout_s
    while True:
        figures = _progress(cluster, hosts)
        left = {host: progress[-1] for host, progress in figures.items() if progress[-1]}
        if not left or time.monotonic() >= end:
            return left
        time.sleep(POLL_S)


def left_behind(cluster: Cluster, hosts: list[HostId], before: dict[HostId, int]) -> dict[HostId, int]:
    """How many messages hosts did not send before they ended; for a killed host, its backlog before that."""
    said = {host: read_left(cluster.folder, host) for host in hosts}
    left = {host: before.get(host, 0) if count is None else count for host, count in said.items()}
    return {host: count for host, count in left.items() if count}


def _progress(cluster: Cluster, hosts: list[HostId]) -> dict[HostId, list[int]]:
    answers = ask_hosts(cluster, hosts)
    return {host: [answer["metrics"][name] for name in _PROGRESS] for host, answer in answers.items()}


def unfinished_runs(cluster: Cluster) -> list[str]:
    """The runs whose trace has no description yet. What has no spool is no run: reports lie there too."""
    from ordercast.net.host.recording.spool_to_parquet import spool_folder
    from ordercast.trace.store import DESCRIPTION

    if not cluster.traces.is_dir():
        return []
    folders = sorted(path for path in cluster.traces.iterdir() if spool_folder(path).is_dir())
    return [path.name for path in folders if not (path / DESCRIPTION).exists()]


def finish_trace(cluster: Cluster, run: str, ended: Finish) -> Path | None:
    """Finish the trace of a run; returns where it is, or None if there is none or it cannot be finished."""
    from ordercast.net.host.recording.spool_to_parquet import finish_run, hosts_of

    if not (cluster.traces / run).is_dir():
        return None
    try:
        return finish_run(
            cluster.traces,
            cluster.plan_of(hosts_of(cluster.traces / run)),
            run,
            complete=ended.complete,
            settled=ended.settled,
            gone=ended.gone,
            removed=cluster.roster.removed,
            one_clock=cluster.machines,
            scenario=_as_scenario(cluster),
        )
    except LocalError as error:
        errors.print(f"cannot finish the trace of {run}: {error}", markup=False, soft_wrap=True)
        return None


def print_trace(where: Path | None) -> None:
    """Print where a trace is, and what to do with it."""
    if where is not None:
        console.print(f"trace: {where}", markup=False, soft_wrap=True)
        console.print(f"next: ordercast check {where}", markup=False, soft_wrap=True)


def _as_scenario(cluster: Cluster) -> dict[str, object]:
    """The part of a scenario that a cluster file defines; a run can be repeated from its trace with it."""
    return {
        "protocol": cluster.protocol,
        "options": cluster.options,
        "membership": list(cluster.groups.values()),
        "senders": cluster.senders,
        "colocated": cluster.colocated,
        "bundle_bytes": cluster.bundle_bytes or cluster.transport.datagram_bytes,
        **({"service": cluster.service} if cluster.service else {}),
    }
