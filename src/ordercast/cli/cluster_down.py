"""`ordercast cluster down`: stop all hosts, and say what they did not send."""

from typing import Annotated

import typer

from ordercast.cli.cluster_ends import (
    await_backlog,
    ending,
    finish_trace,
    left_behind,
    print_trace,
    unfinished_runs,
)
from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.output import console, errors, print_json
from ordercast.core import HostId, LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.supervisor import Order, Report
from ordercast.net.cluster.supervisor_client import attend, await_end, order, report
from ordercast.scenario.ending import Finish


def down(
    config: ConfigOption = CONFIG,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for hosts to exit before they are killed.", min=0)
    ] = 10.0,
    settle: Annotated[
        float, typer.Option(help="Seconds without a delivery after which the run counts as settled.", min=0)
    ] = 0.5,
    drain: Annotated[
        float, typer.Option(help="Seconds to wait at most for messages that hosts have not sent.", min=0)
    ] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Stop all hosts and their supervisor, and finish the trace.

    The command first waits until hosts have sent all messages that applications gave them, and until
    deliveries stop. If deliveries stop while all hosts are up, the trace is complete, and `ordercast check`
    also judges agreement and validity. If hosts are missing and agreement is probabilistic, `ordercast check`
    counts holes.

    Messages that a host could not send are lost. The command says how many there were on which host.

    [bold]Example[/]

    ordercast cluster down --drain 60 --json
    """
    cluster = read_config(config)
    found = report(cluster) if attend(cluster) else None
    ended, left = Finish(), dict[HostId, int]()
    if found is not None:
        ended, left = _stop(cluster, found, timeout, settle, drain)
    traces = {
        run: finish_trace(cluster, run, ended if found is not None and found.run == run else Finish())
        for run in unfinished_runs(cluster)
    }
    if json:
        print_json(
            {
                "cluster": cluster.name,
                "was_up": found is not None,
                "left": [{"host": host, "messages": count} for host, count in left.items()],
                "traces": [str(where) for where in traces.values() if where is not None],
            }
        )
        return 0
    state = "not up" if found is None else "down"
    console.print(f"the cluster '{cluster.name}' is {state}", markup=False)
    _print_left(left)
    for where in traces.values():
        print_trace(where)
    return 0


def _stop(
    cluster: Cluster, found: Report, timeout_s: float, settle_s: float, drain_s: float
) -> tuple[Finish, dict[HostId, int]]:
    """Stop all hosts; returns how the run ended, and how many messages hosts did not send."""
    running = [host.id for host in found.hosts if host.state == "running"]
    before = await_backlog(cluster, running, drain_s)
    ended = ending(cluster, found, settle_s)
    order(cluster, Order("down", timeout_s=timeout_s))
    if not await_end(cluster, timeout_s + 30):
        raise LocalError(f"the supervisor (process {found.pid}) did not exit")
    return ended, left_behind(cluster, running, before)


def _print_left(left: dict[HostId, int]) -> None:
    for host, count in left.items():
        what = "1 message was" if count == 1 else f"{count} messages were"
        errors.print(
            f"host {host}: {what} still in the backlog and never sent; applications must send"
            f" {'it' if count == 1 else 'them'} again",
            soft_wrap=True,
        )
