"""How commands reach the running hosts of a cluster: over their control sockets on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ordercast.cli.output import errors
from ordercast.core import HostId, LocalError, NodeId
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.watched_file import WatchedCluster
from ordercast.net.tools.client import ControlClient, NoAnswer
from ordercast.net.tools.facts import roles_text
from ordercast.net.transports.address import Address

TIMEOUT_S = 5.0


class Hosts:
    """Connections to all hosts that answer on this machine, and the hosts that do not answer."""

    def __init__(self, cluster: Cluster, timeout_s: float = TIMEOUT_S) -> None:
        self.cluster = cluster
        self._file = WatchedCluster(cluster)
        self.clients: dict[HostId, ControlClient] = {}
        self.absent: dict[HostId, str] = {}
        """Hosts that should run on this machine and do not answer, with their roles."""
        self.elsewhere: list[HostId] = []
        """Hosts on other machines, which cannot be asked from here."""
        self._timeout_s = timeout_s
        self.roles = {spec.id: roles_text(_roles(cluster, spec.id)) for spec in cluster.hosts}
        for spec in cluster.hosts:
            self.reach(spec.id)

    def reach(self, host: HostId) -> None:
        """Connect to a host, or note that it is absent."""
        spec = self.cluster.host(host)
        try:
            self.clients[host] = ControlClient(host, self.cluster.socket_path(host), self._timeout_s)
            self.absent.pop(host, None)
        except NoAnswer:
            if not is_here(spec.address):
                if host not in self.elsewhere:
                    self.elsewhere.append(host)
            elif spec.start:
                self.absent[host] = self.roles[host]

    def lose(self, host: HostId) -> None:
        """A host has stopped answering."""
        self.clients.pop(host).close()
        self.absent[host] = self.roles[host]

    def renew(self) -> None:
        """Follow the cluster file: take in hosts that came since, and forget those that were removed."""
        with suppress(LocalError):  # somebody is editing the file
            self._file.refresh()
        cluster = self.cluster = self._file.cluster
        for host in {*self.clients, *self.absent}.difference(spec.id for spec in cluster.hosts):
            self.absent.pop(host, None)
            if host in self.clients:
                self.clients.pop(host).close()
        for spec in cluster.hosts:
            if spec.id not in self.roles:
                self.roles[spec.id] = roles_text(_roles(cluster, spec.id))
                self.reach(spec.id)

    def close(self) -> None:
        """Close all connections."""
        for client in self.clients.values():
            client.close()


@contextmanager
def reach_hosts(cluster: Cluster) -> Iterator[Hosts]:
    """All hosts of a cluster, while a command runs."""
    hosts = Hosts(cluster)
    try:
        yield hosts
    finally:
        hosts.close()


def note_elsewhere(hosts: Hosts) -> None:
    """Print which hosts could not be asked because they run on other machines."""
    if hosts.elsewhere:
        names = ", ".join(map(str, hosts.elsewhere))
        which = f"host {names} runs" if len(hosts.elsewhere) == 1 else f"hosts {names} run"
        errors.print(f"{which} on another machine; run this command there too", style="dim", soft_wrap=True)


@contextmanager
def reach_node(cluster: Cluster, nodes: list[NodeId], what: str) -> Iterator[tuple[NodeId, ControlClient]]:
    """The first of these nodes whose host answers."""
    places = {node.id: node.host for node in cluster.plan().nodes}
    for node in nodes:
        with suppress(NoAnswer):
            client = ControlClient(places[node], cluster.socket_path(places[node]), TIMEOUT_S)
            break
    else:
        tried = ", ".join(str(host) for host in dict.fromkeys(places[node] for node in nodes))
        raise LocalError(
            f"no host with {what} answers (tried: {tried}); check that they are up: ordercast cluster status"
        )
    with client:
        yield node, client


def is_here(address: Address) -> bool:
    """Whether an address belongs to this machine: only then can a socket be bound to it."""
    if address.loopback:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.host, 0))
        except OSError:
            return False
        return True


def _roles(cluster: Cluster, host: HostId) -> dict[NodeId, str]:
    return {node.id: node.role for node in cluster.plan().nodes if node.host == host}
