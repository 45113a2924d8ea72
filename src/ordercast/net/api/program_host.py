"""The host that a program runs as: chosen among those that nobody runs, and opened from the cluster file."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ordercast.core import HostId, Plan
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.cluster.supervisor_client import current_run
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.store import WAIT_S, HostTaken

T = TypeVar("T")


async def start_on_free(
    hosts: Sequence[HostId], start: Callable[[HostId, float], Awaitable[T]], what: str
) -> T:
    """Start something on the first of these hosts that nobody runs; `what` names it in the error.

    `start` gets the host, and how many seconds it may wait for the state of the host to be released.
    """
    taken: HostTaken | None = None
    # An earlier life may just be ending, but others are not to wait while some host is free.
    for host, wait_s in [*((host, 0.0) for host in hosts), (hosts[0], WAIT_S)]:
        try:
            return await start(host, wait_s)
        except HostTaken as error:
            taken = error
    hint = "`ordercast cluster up` leaves hosts with `start = false` in the file to applications"
    raise HostTaken(f"no host {what} is free; the last one tried: {taken}; {hint}")


def open_program_host(
    cluster: Cluster, plan: Plan, host: HostId, run: str, wait_s: float, *, as_new: bool = False
) -> LiveHost:
    """A host that a program runs as, with a recorder if the cluster is traced; it is not started yet."""
    recorder = None
    if cluster.trace:
        nodes = [node.id for node in plan.nodes if node.host == host]
        run, late = run or current_run(cluster), cluster.comes_late(host)
        recorder = TraceRecorder(cluster.traces, run, host, nodes, late=late)
    return open_host(cluster, host, plan=plan, recorder=recorder, wait_s=wait_s, as_new=as_new)


def free_first(cluster: Cluster, hosts: Sequence[HostId]) -> tuple[HostId, ...]:
    """These hosts, each once; those that `cluster up` does not start come first."""
    return tuple(sorted(dict.fromkeys(hosts), key=lambda host: (cluster.host(host).start, host)))
