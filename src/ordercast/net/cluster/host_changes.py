"""Which hosts a running cluster can take in, and which it can do without; and how its file changes."""

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from ordercast.catalogue import find_protocol
from ordercast.core import GroupId, HostId, LocalError, NodeId, Plan
from ordercast.net.cluster.cluster import Cluster, HostSpec
from ordercast.net.cluster.file import load_cluster, read_tables
from ordercast.net.cluster.roster import CHANGES_MAX, Change
from ordercast.net.cluster.roster_file import edited, replace_file
from ordercast.net.transports.address import Address, parse_address


def with_host(
    cluster: Cluster, address: str, role: str = "", groups: Sequence[str] = (), *, start: bool = True
) -> Cluster:
    """The cluster with one more host; `LocalError` says why it cannot take it in."""
    roles = _roles(cluster, "take in")
    role = role or roles[0]
    if role not in roles:
        raise LocalError(f"{cluster.protocol} cannot take in a {role}; it takes in: {', '.join(roles)}")
    place = parse_address(address)
    _screen_address(cluster, place)
    _screen_count(cluster)
    number = len(cluster.plan().nodes)
    chosen = _groups(cluster, role, groups)
    change = Change(number, str(place), role, chosen, start)
    changed = cluster.with_roster(cluster.roster.after(change))
    changed.plan()  # the protocol may refuse it
    return changed


def without_host(cluster: Cluster, host: HostSpec, running: Collection[HostId] = ()) -> Cluster:
    """The cluster without a host; `LocalError` says why it cannot do without it.

    `running` are hosts that are known to run: a spare host that does not run takes nobody's place.
    """
    roles = _roles(cluster, "remove")
    plan = cluster.plan()
    nodes = [node for node in plan.nodes if node.host == host.id]
    for node in nodes:
        if node.role not in roles:
            can = ", ".join(roles)
            raise LocalError(
                f"{cluster.protocol} cannot remove host {host.id}, a {node.role}; it can remove: {can}"
            )
    _screen_last(cluster, plan, host, {node.id for node in nodes}, running)
    _screen_count(cluster)
    changed = cluster.with_roster(cluster.roster.after(Change(host.id)))
    changed.plan()
    return changed


def write_changes(cluster: Cluster) -> None:
    """Write the roster of a cluster into its file, at once or not at all."""
    path, tables = cluster.file, read_tables(cluster.file)
    text = path.read_text(encoding="utf-8-sig")
    try:
        text = edited(text, cluster.roster, tables.version, tables.ids, list(cluster.groups))
        _check_text(text, cluster)
    except (LocalError, ValueError) as error:
        raise LocalError(
            f"{path}: cannot write the change into the file: write every host as a table [[host]] on lines of"
            f" its own, and try again ({error})"
        ) from error
    replace_file(path, text)


def _check_text(text: str, cluster: Cluster) -> None:
    """Check that a new text says what it is meant to say."""
    with tempfile.TemporaryDirectory(prefix="ordercast-") as folder:
        path = Path(folder) / cluster.file.name
        path.write_text(text, encoding="utf-8")
        found = load_cluster(path, check_keys=False)
    if found.roster != cluster.roster or found.hosts != cluster.hosts:
        raise LocalError("the tables of the hosts do not say what they should")


def _roles(cluster: Cluster, what: str) -> tuple[str, ...]:
    roles = find_protocol(cluster.protocol).all_newcomers(cluster.options)
    if not roles:
        raise LocalError(
            f"{cluster.protocol} cannot {what} hosts while it runs: its hosts are fixed by the file"
        )
    return roles


def _screen_address(cluster: Cluster, address: Address) -> None:
    for spec in cluster.hosts:
        if spec.address == address:
            raise LocalError(f"host {spec.id} already has the address {address}")
        if None not in (spec.address.version, address.version) and spec.address.version != address.version:
            raise LocalError(f"{address}: IPv4 and IPv6 addresses cannot be mixed")
    if address.version is not None and address.loopback != cluster.loopback:
        where = "on loopback" if cluster.loopback else "on the network"
        raise LocalError(f"{address} and the other hosts, which are {where}, cannot reach each other")


def _screen_count(cluster: Cluster) -> None:
    if cluster.roster.version >= CHANGES_MAX:
        raise LocalError(f"hosts came or were removed {CHANGES_MAX} times; begin a new cluster")


def _groups(cluster: Cluster, role: str, names: Sequence[str]) -> tuple[GroupId, ...]:
    """The groups that a new host receives: the named ones, or the only one if its role receives."""
    known = list(cluster.groups)
    for name in names:
        if name not in known:
            raise LocalError(f"there is no group '{name}'; the groups are: {', '.join(known)}")
    plan = cluster.plan()
    receives = {plan.nodes[node].role for members in plan.groups.values() for node in members}
    if not names and role in receives:
        if len(known) > 1:
            raise LocalError(f"name the groups that the new {role} receives, of: {', '.join(known)}")
        return (0,)
    return tuple(sorted({known.index(name) for name in names}))


def _screen_last(
    cluster: Cluster, plan: Plan, host: HostSpec, nodes: set[NodeId], running: Collection[HostId]
) -> None:
    """Refuse to remove the last receiver of a group, the last sender, or the last node of a role."""
    for group, name in enumerate(cluster.groups):
        if plan.groups[group] and nodes.issuperset(plan.groups[group]):
            raise LocalError(f"host {host.id} cannot be removed: it has the last receiver of group '{name}'")
    if nodes.issuperset(plan.senders):
        raise LocalError(f"host {host.id} cannot be removed: it has the last sender")
    up = {spec.id for spec in cluster.hosts if spec.start or spec.id in running} - {host.id}
    left = {node.role for node in plan.nodes if node.id not in plan.removed and node.host in up}
    for role in sorted({plan.nodes[node].role for node in nodes} - left):
        raise LocalError(f"host {host.id} cannot be removed: no other {role} is running")
