"""`ordercast cluster`: create, run and stop a cluster on this machine."""

import asyncio
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.cluster_down import down
from ordercast.cli.cluster_ends import await_cluster, finish_trace, print_trace
from ordercast.cli.cluster_hosts import add_host, remove_host
from ordercast.cli.cluster_restart import NodeArgument, restart, start_host, title
from ordercast.cli.cluster_table import ask_hosts, print_status, status_object
from ordercast.cli.config import CONFIG, ConfigOption, parse_options, read_config
from ordercast.cli.output import console, errors, print_json
from ordercast.core import LocalError
from ordercast.net.cluster.as_new import screen_as_new
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.cluster.rotation import Step, key_name, rotate, step
from ordercast.net.cluster.supervisor import Order, Supervisor, supervisor_command
from ordercast.net.cluster.supervisor_client import (
    attend,
    await_supervisor,
    detached_hosts,
    is_folder_supervised,
    is_supervised,
    order,
    report,
    spawn,
)
from ordercast.scenario.ending import Finish
from ordercast.services import find_service

app = typer.Typer(
    no_args_is_help=True,
    help="Create, start, inspect and stop a cluster on this machine.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsNewOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as-new",
        metavar="NODE",
        help="Set the saved state of this host aside and start it as a new member; may be repeated.",
    ),
]


@app.command()
def init(
    config: ConfigOption = CONFIG,
    name: Annotated[str, typer.Option(help="Cluster name.")] = "demo",
    protocol: Annotated[str, typer.Option(help="Protocol name; `ordercast protocols` lists them.")] = "hydra",
    service: Annotated[
        str,
        typer.Option(
            help="Service to replicate: a class as module:Class, or one of counter, echo, kv, register.",
            metavar="NAME",
        ),
    ] = "",
    receivers: Annotated[
        int,
        typer.Option(
            "--receivers", "--replicas", help="Receivers per group: the replicas of a service.", min=1
        ),
    ] = 3,
    groups: Annotated[int, typer.Option(help="Number of groups.", min=1)] = 1,
    senders: Annotated[
        int,
        typer.Option(
            "--senders",
            "--clients",
            help="Number of senders: the clients of a service. 0 places one sender beside each receiver; a"
            " service gets two clients, or one with --embedded.",
            min=0,
        ),
    ] = 0,
    applications: Annotated[
        int, typer.Option(help="Receivers per group that your programs run; `up` does not start them.", min=0)
    ] = 0,
    embedded: Annotated[
        bool,
        typer.Option(
            "--embedded",
            help="Put clients of a service on hosts of replicas: a program that connects runs a replica.",
        ),
    ] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="Protocol option as NAME=VALUE; may be repeated.")
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port of the first host; the other hosts get the next ports.")
    ] = 7400,
    plaintext: Annotated[bool, typer.Option("--plaintext", help="Do not encrypt.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite existing files and delete saved state.")
    ] = False,
) -> int:
    """Write a commented cluster file for this machine, and its secret key.

    With a service, the receivers are its replicas, and its clients have hosts of their own, which your
    programs run: `ordercast.connect`, `ordercast call`. With --embedded a program runs a replica, too: its
    calls are faster, and the replica ends with it. The module is looked for beside the file first.

    [bold]Examples[/]

    ordercast cluster init --service store:Store --protocol unreplicated --replicas 3 --clients 2

    ordercast cluster init --protocol hydra --receivers 3 --option sequencers=2 && ordercast cluster up

    ordercast cluster init --protocol epto --receivers 30 --option peers_per_host=5 --option sampling=cyclon
    """
    chosen = parse_options(option or [])
    options = find_protocol(protocol).cluster_options(chosen, programs=applications > 0)
    new = NewCluster(
        name=name,
        protocol=protocol,
        receivers=receivers,
        groups=groups,
        senders=senders,
        applications=applications,
        options=options,
        port=port,
        plaintext=plaintext,
        service=find_service(service, config.parent) if service else None,
        embedded=embedded,
    )
    text = new.text()
    _check_text(text, config.parent)
    key = config.parent / "cluster.key"
    _make_way([config] if plaintext else [config, key], config.parent / ".ordercast" / name, force)
    if not plaintext:
        create_keys(key, force=force)
    config.write_text(text, encoding="utf-8")
    secret = "" if plaintext else f" and {key}, which is secret"
    console.print(f"wrote {config}{secret}", markup=False, soft_wrap=True)
    if 2 * new.run_by_programs >= receivers:
        errors.print(
            "note: while your programs do not run, half or more of each group's receivers are missing; such a"
            " group may not recover from a failure",
            soft_wrap=True,
        )
    console.print(f"next: ordercast cluster up{_named(config)}", markup=False, soft_wrap=True)
    return 0


@app.command()
def up(
    config: ConfigOption = CONFIG,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in the foreground; Ctrl-C stops all hosts.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Let the hosts outlive the supervisor, until `down`.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the hosts to start.", min=0.1)] = 300.0,
    run: Annotated[
        str, typer.Option(help="Name of the run in traces. Default: the cluster name and the time.")
    ] = "",
    as_new: AsNewOption = None,
    json: JsonOption = False,
) -> int:
    """Start all hosts except those with `start = false` in the file, and wait until they answer.

    A supervisor stays in the background and watches the hosts. `ordercast cluster down` stops them all. If
    the supervisor dies, all hosts stop, unless they were started with [bold]--detach[/]. Detached hosts keep
    running until `down`, and every other command finds them.

    [bold]Example[/]

    ordercast cluster up --detach
    """
    cluster = load_cluster(config)
    _refuse_twice(cluster)
    if foreground and detach:
        raise LocalError("--foreground stops the hosts with this command, and --detach does not: choose one")
    run = run or f"{cluster.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    new = [cluster.find_host(name).id for name in as_new or ()]
    for host in new:
        screen_as_new(cluster, cluster.plan(), host)
    if foreground:
        asyncio.run(Supervisor(cluster, run, as_new=new).serve())
        print_trace(finish_trace(cluster, run, Finish()))
        return 0
    pid = spawn(cluster, supervisor_command(cluster, run, detached=detach, as_new=new))
    await_supervisor(cluster, pid)
    await_cluster(cluster, timeout)
    return _show(cluster, json)


def _refuse_twice(cluster: Cluster) -> None:
    """Refuse to start hosts that run already."""
    if is_supervised(cluster):
        raise LocalError(f"the cluster '{cluster.name}' is already up; see: ordercast cluster status")
    if marks := detached_hosts(cluster.folder):
        which = ", ".join(map(str, marks))
        raise LocalError(
            f"the cluster '{cluster.name}' is already up: these hosts outlived the supervisor and still run:"
            f" {which}; see: ordercast cluster status"
        )


@app.command(hidden=True)
def supervise(
    run: Annotated[str, typer.Option()],
    config: ConfigOption = CONFIG,
    detached: Annotated[bool, typer.Option("--detached")] = False,
    adopt: Annotated[bool, typer.Option("--adopt")] = False,
    as_new: AsNewOption = None,
) -> int:
    """Run the supervisor that `up` leaves in the background."""
    new = [int(host) for host in as_new or ()]
    supervisor = Supervisor(load_cluster(config), run, detached=detached, as_new=new)
    asyncio.run(supervisor.serve(adopt=adopt))
    return 0


@app.command()
def status(config: ConfigOption = CONFIG, json: JsonOption = False) -> int:
    """Show all hosts: their roles, state, address, uptime and counts of messages."""
    return _show(read_config(config), json)


@app.command()
def kill(node: NodeArgument, config: ConfigOption = CONFIG) -> int:
    """Kill a host at once (SIGKILL), as if it had crashed."""
    cluster = read_config(config)
    host = cluster.find_host(node)
    order(cluster, Order("kill", host.id))
    console.print(f"killed {title(cluster, host)}", markup=False)
    return 0


app.command()(restart)


@app.command()
def act(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="Action name; `ordercast protocols` lists them.")
    ],
    config: ConfigOption = CONFIG,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the host to start.", min=0.1)] = 300.0,
) -> int:
    """Perform an action that is specific to the cluster's protocol.

    `ordercast protocols` lists the actions of each protocol. An action starts the first spare host of the
    right role that is not running. `ordercast cluster status` shows the spare hosts.

    [bold]Example[/]

    ordercast cluster act add-sequencer
    """
    cluster = read_config(config)
    wanted = find_protocol(cluster.protocol).action(action, cluster.options)
    found = report(cluster) if attend(cluster) else None
    running = {host.id for host in found.hosts if host.state == "running"} if found else set()
    spares = [spec for spec in cluster.hosts if not spec.start and wanted.roles & {*spec.roles}]
    free = [spec for spec in spares if spec.id not in running]
    if not free:
        has = "all spare hosts are running" if spares else "the file has no spare host"
        raise LocalError(
            f"{action}: no host can be started, because {has}. Take in one that is not in the file: ordercast"
            " cluster add-host ADDRESS"
        )
    start_host(cluster, free[0], Order("start", free[0].id), timeout)
    return 0


@app.command("rotate-key")
def rotate_key(
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for the hosts in each step.", min=0.1)
    ] = 30.0,
    one: Annotated[
        Step | None,
        typer.Option("--step", help="Take only this step. Use it if hosts run on several machines."),
    ] = None,
) -> int:
    """Replace the secret key while the cluster runs, without downtime.

    All hosts must read the key file that this command changes. If hosts run on several machines, take the
    three steps one by one ([bold]--step[/] add, activate, retire), and copy the key file to all machines
    after each step.
    """
    cluster = load_cluster(config)
    path = cluster.security.key_file
    if cluster.security.mode == "plaintext":
        raise LocalError(f"{cluster.file}: the cluster is plaintext and has no key to rotate")
    if one is not None:
        ring = step(path, one)
        accepted = ", ".join(map(key_name, ring.accepted))
        console.print(f"seals with {key_name(ring.active.id)}, accepts {accepted}", markup=False)
        return 0

    elsewhere = [spec.id for spec in cluster.hosts if not spec.address.loopback]
    if elsewhere:
        names = ", ".join(map(str, elsewhere))
        raise LocalError(
            f"host{'' if len(elsewhere) == 1 else 's'} {names} may run on other machines and cannot be asked"
            " from here; take the steps one by one with --step add, --step activate and --step retire"
        )

    def known() -> dict[int, list[str]]:
        return {host: answer["keys"] for host, answer in ask_hosts(cluster).items()}

    ring = rotate(path, known, lambda text: console.print(text, markup=False), timeout)
    console.print(f"the key is now {key_name(ring.active.id)}")
    return 0


app.command("add-host")(add_host)
app.command("remove-host")(remove_host)
app.command()(down)


def _check_text(text: str, folder: Path) -> None:
    """Check that the text of a new cluster file for this folder can be loaded."""
    with tempfile.TemporaryDirectory(prefix="ordercast-") as work:
        path = Path(work) / CONFIG
        path.write_text(text, encoding="utf-8")
        load_cluster(path, check_keys=False, service_folder=folder)


def _make_way(files: list[Path], folder: Path, force: bool) -> None:
    """Refuse to overwrite files without `force`, and delete the state of an earlier cluster."""
    state = folder / "state"
    for path in [*files, state]:
        if path.exists() and not force:
            raise LocalError(f"{path} exists already; --force overwrites it")
    if is_folder_supervised(folder) or detached_hosts(folder):
        raise LocalError(f"the cluster of {folder} is up; stop it first: ordercast cluster down")
    if state.exists():
        shutil.rmtree(state)


def _named(config: Path) -> str:
    return "" if config == CONFIG else f" --config {config}"


def _show(cluster: Cluster, json: bool) -> int:
    content = status_object(cluster)
    if json:
        print_json(content)
    else:
        print_status(content)
    return 0
