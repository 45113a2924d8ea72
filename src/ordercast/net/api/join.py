"""Joins a group of a cluster: chooses a host, and starts it from the cluster file."""

from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType

from ordercast.core import HostId, LocalError, Membership, NodeId, Plan
from ordercast.net.api.group import Group
from ordercast.net.api.program_host import free_first, open_program_host, start_on_free
from ordercast.net.cluster.as_new import screen_as_new
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.host.store import WAIT_S
from ordercast.net.tools.attendance import Attendance


class Joining:
    """What `join` returns; entering it gives the group."""

    def __init__(self, file: Path, group: str, host: HostId | None, run: str, as_new: bool) -> None:
        self._file = file
        self._name = group
        self._host = host
        self._run = run
        self._as_new = as_new
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> Group:
        """Start the host, and join the group."""
        cluster = load_cluster(self._file)
        async with AsyncExitStack() as exits:
            group = await self._start(cluster)
            exits.push_async_callback(group.close)
            await exits.enter_async_context(Attendance(group.host, cluster, group.end))
            if self._name not in group.joined:
                await group.join(self._name)
            self._exits = exits.pop_all()
        return group

    async def _start(self, cluster: Cluster) -> Group:
        """The member on the named host, or on the first host that nobody runs."""

        async def start(host: HostId, wait_s: float) -> Group:
            group = open_group(cluster, self._name, host, self._run, wait_s, self._as_new)
            await group.start()
            return group

        hosts = receivers(cluster, self._name) if self._host is None else (self._host,)
        return await start_on_free(hosts, start, f"of group '{self._name}'")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send the backlog, and leave the group."""
        try:
            await self._exits.aclose()
        except LocalError:
            if error is None:  # what is under way already is worth more
                raise


def join(
    file: str | Path, group: str, *, host: HostId | None = None, run: str = "", as_new: bool = False
) -> Joining:
    """Join a group of a cluster as the named host, or as the first host that nobody runs.

    `run` names the run in traces and must be the same on all hosts; by default it is that of `cluster up`.
    `as_new` sets the saved state of the named host aside and joins as a new member.
    """
    if as_new and host is None:
        raise LocalError("to join as a new member, name the host that lost its state: join(..., host=N)")
    return Joining(Path(file), group, host, run, as_new)


def members(cluster: Cluster, name: str) -> tuple[HostId, ...]:
    """The hosts with a receiver of a group; hosts that `cluster up` does not start come first."""
    if name not in cluster.groups:
        raise LocalError(f"there is no group '{name}'; the groups are: {', '.join(cluster.groups)}")
    plan = cluster.plan()
    found = plan.groups[list(cluster.groups).index(name)]
    return free_first(cluster, [plan.nodes[node].host for node in found])


def receivers(cluster: Cluster, name: str) -> tuple[HostId, ...]:
    """The hosts that can receive a group: its members, and then those that are in no group at the start.

    If it has no members at the start, every host with a receiver can.
    """
    plan = cluster.plan()
    own = members(cluster, name)
    others = () if own else sorted({node for nodes in plan.groups.values() for node in nodes})
    later = [plan.nodes[node].host for node in plan.joiners]
    found = (*later, *free_first(cluster, [plan.nodes[node].host for node in others]))
    return tuple(dict.fromkeys((*own, *found)))


def open_group(
    cluster: Cluster,
    name: str,
    host: HostId,
    run: str = "",
    wait_s: float = WAIT_S,
    as_new: bool = False,
) -> Group:
    """The member of a group on a host; the host is not started yet."""
    names, plan = list(cluster.groups), cluster.plan()
    receiver = _receiver(cluster, plan, name, host)
    if as_new:
        screen_as_new(cluster, plan, host)
    live = open_program_host(cluster, plan, host, run, wait_s, as_new=as_new)
    sender = next((node for node in plan.senders if node in live.nodes), None)
    return Group(live, names, names.index(name), sender, receiver, cluster.inbox_bytes)


def _receiver(cluster: Cluster, plan: Plan, name: str, host: HostId) -> NodeId:
    """The receiver of a host: a member of a group, or one that can join it while the cluster runs."""
    nodes = [node.id for node in plan.nodes if node.host == host]
    if host in members(cluster, name):
        return next(node for node in plan.groups[list(cluster.groups).index(name)] if node in nodes)
    found = [node for node in nodes if node in set(plan.joiners).union(*plan.groups.values())]
    if not found or plan.guarantees.membership is Membership.FIXED:
        raise LocalError(f"host {host} has no receiver of group '{name}'")
    return found[0]
