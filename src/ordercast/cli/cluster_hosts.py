"""`ordercast cluster add-host` and `remove-host`: change which hosts a running cluster has."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from ordercast.cli.cluster_restart import NodeArgument, start_host, title
from ordercast.cli.cluster_table import ask_hosts
from ordercast.cli.config import CONFIG, ConfigOption
from ordercast.cli.hosts import is_here
from ordercast.cli.output import console, errors
from ordercast.core import HostId, LocalError
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.host_changes import with_host, without_host, write_changes
from ordercast.net.cluster.supervisor import Order
from ordercast.net.cluster.supervisor_client import attend, order, report
from ordercast.net.transports.address import is_free

POLL_S = 0.1
ELSEWHERE_S = 5.0
"""How long the command waits for hosts on other machines, which may be down."""
STOP_S = 15.0


def add_host(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Address of the new host, such as 10.0.0.7:7400.")
    ],
    role: Annotated[
        str, typer.Option(help="What the host is. Default: the usual newcomer of the protocol.")
    ] = "",
    group: Annotated[
        list[str] | None,
        typer.Option(help="A group that the host receives; may be repeated. Default: the only group."),
    ] = None,
    program: Annotated[
        bool, typer.Option("--program", help="Leave the host to a program that calls ordercast.join.")
    ] = False,
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds to wait for the hosts to learn of it, and for it to start.", min=0.1),
    ] = 60.0,
) -> int:
    """Take a host into the running cluster that is not in its file yet. Nothing is restarted.

    The command writes the host into the cluster file, waits until the running hosts know its address, and
    starts it if its address is on this machine. Hosts that are down or on other machines learn of it from
    their peers. For a host on another machine, copy the cluster file and the key there afterwards, and run
    `ordercast node` with its id.

    Which roles can come depends on the protocol: members, senders, sequencers. If its hosts are fixed, the
    command says so.

    [bold]Examples[/]

    ordercast cluster add-host 127.0.0.1:7410

    ordercast cluster add-host 10.0.0.7:7400 --role peer --group orders --group audit
    """
    with _changing(config) as (cluster, answers):
        changed = with_host(cluster, address, role, group or (), start=not program)
        new = changed.hosts[-1]
        here = is_here(new.address)
        if here and not is_free(new.address):
            raise LocalError(f"another process already listens on {new.address}")
        write_changes(changed)
        _await_all(changed, list(answers), timeout, f"host {new.id} is in {cluster.file} but was not started")
        console.print(f"all running hosts know {title(changed, new)} at {new.address}", markup=False)
        if program or not here or report(changed) is None:
            _print_next(changed, new, program, here)
        else:
            start_host(changed, new, Order("start", new.id), timeout)
    return 0


def remove_host(
    node: NodeArgument,
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for the other hosts to learn of it.", min=0.1)
    ] = 60.0,
) -> int:
    """Remove a host from the running cluster for good. Nothing else is restarted.

    The host stops in good order if it runs on this machine. The other hosts forget its address. The cluster
    file keeps its table, marked as removed, because its id is never used again; another host may get its
    address. Messages that the host had not passed on are lost, as when it crashes.

    A host that the others cannot do without, such as the last receiver of a group, cannot be removed.

    [bold]Example[/]

    ordercast cluster remove-host peer-2
    """
    with _changing(config) as (cluster, answers):
        host = cluster.find_host(node)
        changed = without_host(cluster, host, answers)
        name = title(cluster, host)
        if report(cluster) is not None:
            order(cluster, Order("stop", host.id, timeout_s=STOP_S))
        write_changes(changed)
        others = [other for other in answers if other != host.id]
        _await_all(changed, others, timeout, f"host {host.id} was stopped and is removed in {cluster.file}")
        console.print(f"removed {name}; its id is not used again", markup=False)
    return 0


@contextmanager
def _changing(config: Any) -> Iterator[tuple[Cluster, dict[HostId, dict[str, Any]]]]:
    """A cluster that runs, and what its hosts here say; nobody else changes its hosts meanwhile."""
    cluster = load_cluster(config)
    attend(cluster)
    answers = ask_hosts(cluster)
    if not answers:
        raise LocalError(
            f"the cluster '{cluster.name}' is not up on this machine, so its hosts cannot be told: run"
            " `ordercast cluster up` first"
        )
    handle = os.open(cluster.folder / "run" / "roster.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield load_cluster(config), answers
    except BlockingIOError:
        raise LocalError("another command is changing the hosts of this cluster; try again") from None
    finally:
        os.close(handle)


def _await_all(cluster: Cluster, hosts: list[HostId], timeout_s: float, so_far: str) -> None:
    """Wait until hosts have the roster: those here, and for a while those that they have met elsewhere."""
    wanted, began = cluster.roster.version, time.monotonic()
    here = {spec.id for spec in cluster.hosts if spec.id in hosts}
    while True:
        answers = ask_hosts(cluster, sorted(here))
        behind = sorted(here - {host for host, said in answers.items() if said.get("roster", 0) >= wanted})
        untold = {peer for said in answers.values() for peer in said.get("roster_untold", ())} - here
        waited = time.monotonic() - began
        if not behind and (not untold or waited > ELSEWHERE_S):
            break
        if waited > timeout_s:
            names = ", ".join(map(str, behind))
            raise LocalError(f"host {names} did not learn of the change within {timeout_s:g} s; {so_far}")
        time.sleep(POLL_S)
    if untold:
        names = ", ".join(map(str, sorted(untold)))
        text = (
            f"host {names} does not answer; it learns of it when it is back"
            if len(untold) == 1
            else f"hosts {names} do not answer; they learn of it when they are back"
        )
        errors.print(f"note: {text}", soft_wrap=True)


def _print_next(cluster: Cluster, host: HostSpec, program: bool, here: bool) -> None:
    """Say how the new host is started, if this command does not start it."""
    if program:
        text = f'a program joins with ordercast.join("{cluster.file.name}", group=..., host={host.id})'
    elif here:
        text = f"ordercast node --config {cluster.file} --id {host.id}"
    else:
        text = f"copy {cluster.file.name} and the key to its machine, then: ordercast node --id {host.id}"
    console.print(f"next: {text}", markup=False, soft_wrap=True)
