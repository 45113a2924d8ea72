"""`ordercast cluster restart`: one host with its saved state, or all of them one after the other."""

import time
from typing import Annotated

import msgspec
import typer

from ordercast.cli.cluster_ends import await_hosts
from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.output import console, errors, print_json
from ordercast.core import Fault, Gaps, HostId, LocalError
from ordercast.net.cluster.as_new import screen_as_new
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.supervisor import Order
from ordercast.net.cluster.supervisor_client import attend, order, report
from ordercast.net.tools.client import ControlClient, NoAnswer

POLL_S = 0.05
ANSWER_S = 5.0
QUIET_S = 5.0
"""After this time the command says what it waits for."""
STOP_S = 15.0
"""How long a host may take to stop in good order."""

NodeArgument = Annotated[
    str, typer.Argument(metavar="NODE", help="Host id, or a role with its index such as receiver-1.")
]


class Restarted(msgspec.Struct, frozen=True):
    """A host that a rolling restart has restarted."""

    host: HostId
    nodes: tuple[str, ...]
    seconds: float
    """From its order to stop until it had caught up."""


def restart(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Host id, or a role with its index such as receiver-1.")
    ] = "",
    rolling: Annotated[
        bool, typer.Option("--rolling", help="Restart all running hosts, one after the other.")
    ] = False,
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for each host to start and to catch up.", min=0.1)
    ] = 300.0,
    json: Annotated[
        bool, typer.Option("--json", help="With --rolling: print one JSON object at the end.")
    ] = False,
    as_new: Annotated[
        bool, typer.Option("--as-new", help="Set its saved state aside, and start it as a new member.")
    ] = False,
) -> int:
    """Restart a host with its saved state, or all hosts one after the other.

    A named host that is running is killed first, as in a crash. With [bold]--rolling[/], each host stops in
    good order and starts again with its saved state. The next host follows when all hosts have caught up:
    no node lacks a message, a number or a leader. Hosts that programs run, and spares that are not running,
    are left out.

    [bold]Examples[/]

    ordercast cluster restart receiver-0

    ordercast cluster restart --rolling
    """
    cluster = read_config(config)
    if bool(node) == rolling:
        raise LocalError("name one host to restart, or restart all of them with --rolling")
    if rolling and as_new:
        raise LocalError("hosts come back as new one by one: name the host that lost its state")
    if rolling:
        return _print_rolled(_roll(cluster, timeout, quiet=json), json)
    host = cluster.find_host(node)
    if as_new:
        screen_as_new(cluster, cluster.plan(), host.id)
    elif _forgets(cluster, host):
        errors.print(
            "note: a restarted receiver has forgotten its place in the order, and `ordercast check` will"
            " report it; if the protocol has the option `durable`, `durable = true` lets a receiver continue",
            soft_wrap=True,
        )
    start_host(cluster, host, Order("restart", host.id, as_new=as_new), timeout)
    return 0


def start_host(cluster: Cluster, host: HostSpec, wanted: Order, timeout_s: float) -> None:
    """Have a host started by an order, and wait until it answers."""
    order(cluster, wanted)
    await_hosts(cluster, timeout_s, only=host)
    console.print(f"started {title(cluster, host)}", markup=False)


def title(cluster: Cluster, host: HostSpec) -> str:
    """A host by its id and its nodes."""
    return f"host {host.id} ({', '.join(cluster.node_names[host.id])})"


def _forgets(cluster: Cluster, host: HostSpec) -> bool:
    """Whether a host has a receiver whose restart the protocol does not tolerate."""
    borne = {Fault.RESTART, Fault.AMNESIA} & set(cluster.plan().guarantees.tolerates)
    return not borne and _receives(cluster, host.id)


def _receives(cluster: Cluster, host: HostId) -> bool:
    plan = cluster.plan()
    return any(plan.nodes[node].host == host for members in plan.groups.values() for node in members)


def _roll(cluster: Cluster, timeout_s: float, *, quiet: bool) -> list[Restarted]:
    """Restart all running hosts one after the other."""
    hosts = _running(cluster)
    _refuse_forgetful(cluster, hosts)
    if cluster.plan().guarantees.gaps is Gaps.SILENT:
        errors.print(
            "note: a restarted receiver does not get the messages that come while it is away, because"
            f" {cluster.protocol} repeats nothing",
            soft_wrap=True,
        )
    await_caught_up(cluster, hosts, timeout_s, "nothing was restarted")
    done = []
    for place, host in enumerate(hosts):
        began = time.monotonic()
        order(cluster, Order("restart", host, timeout_s=STOP_S, clean=True))
        await_hosts(cluster, timeout_s, only=cluster.host(host))
        left = ", ".join(map(str, hosts[place + 1 :])) or "none"
        so_far = f"host {host} was restarted; hosts left out: {left}"
        await_caught_up(cluster, [host], timeout_s, so_far)
        await_caught_up(cluster, hosts, timeout_s, so_far)  # only now they all know that it is back
        done.append(Restarted(host, cluster.node_names[host], time.monotonic() - began))
        if not quiet:
            took = f"{done[-1].seconds:.1f} s"
            console.print(f"restarted {title(cluster, cluster.host(host))} in {took}", markup=False)
    return done


def _running(cluster: Cluster) -> list[HostId]:
    """The hosts to restart; refuses if one is dead, because then nothing may be missing besides."""
    found = report(cluster) if attend(cluster) else None
    if found is None:
        raise LocalError(
            f"the cluster '{cluster.name}' is not up on this machine: run `ordercast cluster up`"
        )
    for host in found.hosts:
        if host.state == "dead":
            raise LocalError(
                f"host {host.id} is dead ({host.ended}): start it first with `ordercast cluster restart"
                f" {host.id}`; nothing was restarted"
            )
    return [host.id for host in found.hosts if host.state == "running"]


def _refuse_forgetful(cluster: Cluster, hosts: list[HostId]) -> None:
    """Refuse hosts whose receivers would not go on where they were."""
    if Fault.RESTART in cluster.plan().guarantees.tolerates:
        return
    receiving = [host for host in hosts if _receives(cluster, host)]
    if receiving:
        names = ", ".join(title(cluster, cluster.host(host)) for host in receiving)
        raise LocalError(
            f"a rolling restart would lose messages: the receivers of {names} do not save their place in the"
            f" order with {cluster.protocol}. If the protocol has the option `durable`, set `durable = true`"
            f" in [options] of {cluster.file} and start the cluster again; nothing was restarted"
        )


def await_caught_up(cluster: Cluster, hosts: list[HostId], timeout_s: float, so_far: str) -> None:
    """Wait until each of these hosts has lacked nothing once.

    Not all at the same time: under load some receiver always waits for a packet that was overtaken.
    """
    began, told = time.monotonic(), False
    lacking = dict.fromkeys(hosts, "")
    while lacking := {host: what for host in lacking if (what := _lacks(cluster, host))}:
        waited, first = time.monotonic() - began, next(iter(lacking.values()))
        if waited > QUIET_S and not told:
            told = True
            errors.print(f"waiting: {first}", markup=False, soft_wrap=True)
        if waited > timeout_s:
            raise LocalError(f"{first}, and did not catch up within {timeout_s:g} s; {so_far}")
        time.sleep(POLL_S)


def _lacks(cluster: Cluster, host: HostId) -> str:
    """What the first node of a host lacks that has not caught up; empty if all have."""
    try:
        with ControlClient(host, cluster.socket_path(host), ANSWER_S) as client:
            nodes = client.explain().nodes
    except NoAnswer as error:
        return str(error)
    for node, fact in nodes.items():
        if fact.behind:
            return f"host {host}: node {node} ({fact.role}) waits for {fact.behind}"
    return ""


def _print_rolled(done: list[Restarted], json: bool) -> int:
    if json:
        print_json({"restarted": done})
    else:
        console.print(f"all {len(done)} running hosts were restarted", markup=False)
    return 0
