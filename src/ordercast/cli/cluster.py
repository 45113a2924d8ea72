"""`ordercast cluster`: a cluster on this machine, from its first file to its last trace."""

import asyncio
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.cluster_ends import (
    await_cluster,
    await_hosts,
    ending,
    finish_trace,
    unfinished_runs,
)
from ordercast.cli.cluster_table import ask_hosts, print_status, status_object
from ordercast.cli.config import CONFIG, ConfigOption, parse_options, read_config
from ordercast.cli.output import console, errors, print_json
from ordercast.core import Fault, LocalError
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.cluster.rotation import Step, key_name, rotate, step
from ordercast.net.cluster.supervisor import Order, Supervisor
from ordercast.net.cluster.supervisor_client import (
    await_end,
    await_supervisor,
    is_folder_supervised,
    is_supervised,
    order,
    report,
    spawn,
)
from ordercast.scenario.ending import Finish

app = typer.Typer(
    no_args_is_help=True,
    help="Run a cluster on this machine: init, up, status, kill, restart, down and more.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
NodeArgument = Annotated[
    str, typer.Argument(metavar="NODE", help="A host's id, or a role with its index: sequencer-1.")
]


@app.command()
def init(
    config: ConfigOption = CONFIG,
    name: Annotated[str, typer.Option(help="Of the cluster.")] = "demo",
    protocol: Annotated[str, typer.Option(help="See `ordercast protocols`.")] = "hydra",
    receivers: Annotated[int, typer.Option(help="In each group.", min=1)] = 3,
    groups: Annotated[int, typer.Option(help="How many.", min=1)] = 1,
    senders: Annotated[int, typer.Option(help="0: one beside each receiver.", min=0)] = 0,
    applications: Annotated[
        int, typer.Option(help="Receivers of each group that programs join as: `up` leaves them out.", min=0)
    ] = 0,
    option: Annotated[
        list[str] | None, typer.Option(help="Option of the protocol, as NAME=VALUE; may be repeated.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the first host; the others follow.")] = 7400,
    plaintext: Annotated[bool, typer.Option("--plaintext", help="Do not encrypt.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what is there, and forget saved state.")
    ] = False,
) -> int:
    """Write a cluster file that works on this machine, with comments, and its secret key.

    [bold]Examples[/]

    ordercast cluster init --protocol hydra --receivers 3 --option sequencers=2 && ordercast cluster up

    ordercast cluster init --protocol epto --receivers 30 --option peers_per_host=5 --option sampling=cyclon
    """
    chosen = parse_options(option or [])
    options = find_protocol(protocol).cluster_options(chosen, programs=applications > 0)
    text = NewCluster(
        name=name,
        protocol=protocol,
        receivers=receivers,
        groups=groups,
        senders=senders,
        applications=applications,
        options=options,
        port=port,
        plaintext=plaintext,
    ).text()
    _check_text(text)
    key = config.parent / "cluster.key"
    _make_way([config] if plaintext else [config, key], config.parent / ".ordercast" / name, force)
    if not plaintext:
        create_keys(key, force=force)
    config.write_text(text, encoding="utf-8")
    secret = "" if plaintext else f" and {key}, which is secret"
    console.print(f"wrote {config}{secret}", markup=False, soft_wrap=True)
    if applications and 2 * applications >= receivers:
        errors.print(
            "note: while programs do not run, most receivers of a group are missing, and a group without most"
            " of its receivers may not get over a failure",
            soft_wrap=True,
        )
    console.print(f"next: ordercast cluster up{_named(config)}", markup=False, soft_wrap=True)
    return 0


@app.command()
def up(
    config: ConfigOption = CONFIG,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and stop all on Ctrl-C.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that hosts have to start.", min=0.1)] = 300.0,
    run: Annotated[str, typer.Option(help="Name of the run in traces; the time if not said.")] = "",
    json: JsonOption = False,
) -> int:
    """Start all hosts that the file does not mark with `start = false`, and wait until they answer.

    A supervisor stays in the background and keeps the hosts; `ordercast cluster down` ends all.
    """
    cluster = load_cluster(config)
    if is_supervised(cluster):
        raise LocalError(f"the cluster '{cluster.name}' is up already: ordercast cluster status")
    run = run or f"{cluster.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if foreground:
        asyncio.run(Supervisor(cluster, run).serve())
        finish_trace(cluster, run, Finish())
        return 0
    words = ["supervise", "--config", str(cluster.file), "--run", run]
    pid = spawn(cluster, [sys.executable, "-m", "ordercast.cli", "cluster", *words])
    await_supervisor(cluster, pid)
    await_cluster(cluster, timeout)
    return _show(cluster, json)


@app.command(hidden=True)
def supervise(run: Annotated[str, typer.Option()], config: ConfigOption = CONFIG) -> int:
    """What `up` leaves in the background."""
    asyncio.run(Supervisor(load_cluster(config), run).serve())
    return 0


@app.command()
def status(config: ConfigOption = CONFIG, json: JsonOption = False) -> int:
    """Show all hosts: what runs on them, whether they are up, where, since when, and a few figures."""
    return _show(read_config(config), json)


@app.command()
def kill(node: NodeArgument, config: ConfigOption = CONFIG) -> int:
    """Kill a host at once (SIGKILL), as if it had crashed."""
    cluster = read_config(config)
    host = cluster.find_host(node)
    order(cluster, Order("kill", host.id))
    console.print(f"killed {_title(cluster, host)}", markup=False)
    return 0


@app.command()
def restart(
    node: NodeArgument,
    config: ConfigOption = CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds that it has to start.", min=0.1)] = 300.0,
) -> int:
    """Start a host again with the state that it had saved; one that runs is killed first."""
    cluster = read_config(config)
    host = cluster.find_host(node)
    if _forgets(cluster, host):
        errors.print(
            "note: a receiver that restarts has forgotten its place, and `check` will say so; the option"
            " `durable = true` lets it go on, where the protocol has it",
            soft_wrap=True,
        )
    _start(cluster, host, Order("restart", host.id), timeout)
    return 0


def _forgets(cluster: Cluster, host: HostSpec) -> bool:
    """Whether a host has a receiver whose restart the protocol does not promise to bear."""
    plan = cluster.plan()
    receivers = {node for members in plan.groups.values() for node in members}
    borne = {Fault.RESTART, Fault.AMNESIA} & set(plan.guarantees.tolerates)
    return not borne and any(plan.nodes[node].host == host.id for node in receivers)


@app.command()
def act(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="See `ordercast protocols`.")],
    config: ConfigOption = CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds that a host has to start.", min=0.1)] = 300.0,
) -> int:
    """Ask for what the cluster's protocol alone can do.

    `ordercast protocols` lists the actions of each protocol. An action starts the first spare host of its
    kind that does not run; `ordercast cluster status` shows the spare ones.

    [bold]Example[/]

    ordercast cluster act add-sequencer
    """
    cluster = read_config(config)
    wanted = find_protocol(cluster.protocol).action(action, cluster.options)
    found = report(cluster)
    running = {host.id for host in found.hosts if host.state == "running"} if found else set()
    spares = [spec for spec in cluster.hosts if not spec.start and wanted.roles & {*spec.roles}]
    free = [spec for spec in spares if spec.id not in running]
    if not free:
        has = "all spare ones run" if spares else "the file has no spare one"
        raise LocalError(
            f"{action}: no host can be started, {has}. Ask for more in [options] of {cluster.file}, give "
            "each new host a [[host]] with `start = false` (ordercast names those that are missing), and "
            "start the cluster anew"
        )
    _start(cluster, free[0], Order("start", free[0].id), timeout)
    return 0


@app.command("rotate-key")
def rotate_key(
    config: ConfigOption = CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds that hosts have for each step.", min=0.1)] = 30.0,
    one: Annotated[
        Step | None,
        typer.Option("--step", help="Only this step, at once: where hosts are on several machines."),
    ] = None,
) -> int:
    """Replace the secret key while the cluster runs, without downtime.

    All hosts must read the key file that is changed here. Where they are on several machines, take the three
    steps one by one ([bold]--step[/] add, activate, retire), and bring the file to all of them after each.
    """
    cluster = load_cluster(config)
    path = cluster.security.key_file
    if cluster.security.mode == "plaintext":
        raise LocalError(f"{cluster.file}: the cluster has no key: it is plaintext")
    if one is not None:
        ring = step(path, one)
        accepted = ", ".join(map(key_name, ring.accepted))
        console.print(f"seals with {key_name(ring.active.id)}, accepts {accepted}", markup=False)
        return 0

    elsewhere = [spec.id for spec in cluster.hosts if not spec.address.loopback]
    if elsewhere:
        raise LocalError(
            f"hosts {', '.join(map(str, elsewhere))} may be on other machines, and cannot be asked from here:"
            " take the steps one by one with --step add, activate and retire"
        )

    def known() -> dict[int, list[str]]:
        return {host: answer["keys"] for host, answer in ask_hosts(cluster).items()}

    ring = rotate(path, known, lambda text: console.print(text, markup=False), timeout)
    console.print(f"the key is now {key_name(ring.active.id)}")
    return 0


@app.command()
def down(
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float, typer.Option(help="Seconds that hosts have to end by themselves; then they are killed.", min=0)
    ] = 10.0,
    settle: Annotated[
        float, typer.Option(help="Seconds without a delivery after which all counts as delivered.", min=0)
    ] = 0.5,
) -> int:
    """Stop all hosts and their supervisor, and finish the trace.

    It first waits until nothing is delivered any more. If that comes about with all hosts up, the trace
    counts as complete, and `ordercast check` judges agreement and validity too. With hosts missing it counts
    holes, where agreement is probabilistic.
    """
    cluster = read_config(config)
    found = report(cluster)
    ended = Finish()
    if found is None:
        console.print(f"the cluster '{cluster.name}' is not up", markup=False)
    else:
        ended = ending(cluster, found, settle)
        order(cluster, Order("down", timeout_s=timeout))
        if not await_end(cluster, timeout + 30):
            raise LocalError(f"the supervisor (process {found.pid}) does not end")
        console.print(f"the cluster '{cluster.name}' is down", markup=False)
    for run in unfinished_runs(cluster):
        finish_trace(cluster, run, ended if found is not None and found.run == run else Finish())
    return 0


def _check_text(text: str) -> None:
    """What is written must be what can be read."""
    with tempfile.TemporaryDirectory(prefix="ordercast-") as folder:
        path = Path(folder) / CONFIG
        path.write_text(text, encoding="utf-8")
        load_cluster(path, check_keys=False)


def _make_way(files: list[Path], folder: Path, force: bool) -> None:
    """See that nothing is overwritten unasked, and that a new cluster finds no state of an earlier one."""
    state = folder / "state"
    for path in [*files, state]:
        if path.exists() and not force:
            raise LocalError(f"{path} is there already; --force overwrites it")
    if is_folder_supervised(folder):
        raise LocalError(f"the cluster of {folder} is up: ordercast cluster down")
    if state.exists():
        shutil.rmtree(state)


def _named(config: Path) -> str:
    return "" if config == CONFIG else f" --config {config}"


def _title(cluster: Cluster, host: HostSpec) -> str:
    return f"host {host.id} ({', '.join(cluster.node_names[host.id])})"


def _show(cluster: Cluster, json: bool) -> int:
    content = status_object(cluster)
    if json:
        print_json(content)
    else:
        print_status(content)
    return 0


def _start(cluster: Cluster, host: HostSpec, wanted: Order, timeout: float) -> None:
    order(cluster, wanted)
    await_hosts(cluster, timeout, only=host)
    console.print(f"started {_title(cluster, host)}", markup=False)
