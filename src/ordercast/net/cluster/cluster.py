"""A cluster: which protocol runs where, as its file `cluster.toml` says.

All hosts of a cluster read the same file. It is checked as a whole when it is read, and what is wrong is told
with its line, so a host never starts with half an idea of the others.
"""

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, HostId, LocalError, NodeId, Plan
from ordercast.net.transports.address import Address
from ordercast.toml_file import about, convert_options

TransportKind: TypeAlias = Literal["udp", "multicast", "tcp"]
DATAGRAM_LOOPBACK = 60_000
DATAGRAM_NETWORK = 1_400
"""What every network takes in one piece, with headers."""


class TransportSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How datagrams travel."""

    kind: TransportKind = "udp"
    datagram_bytes: int = DATAGRAM_NETWORK
    """The largest that is sent."""
    multicast_address: str = ""
    multicast_port: int = 7399
    busy_poll: bool = False
    """Ask for packets all the time instead of sleeping: lower latency for a whole core a host."""
    buffer_bytes: int = 4 << 20
    """Of a socket, in each direction, as far as the system allows."""
    window_bytes: int = 0
    """Sent to one host and not acknowledged yet; more waits. 0: what fits into the buffers of all."""


class SecuritySpec(msgspec.Struct, frozen=True, kw_only=True):
    """What protects datagrams."""

    mode: Literal["sealed", "plaintext"] = "sealed"
    key_file: Path
    allow_plaintext_on_network: bool = False


class MetricsSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Where hosts tell their figures over HTTP; port 0: nowhere."""

    port: int = 0
    """Of host 0; host 1 has the next one, and so on, so that all fit on one machine."""
    address: str = "127.0.0.1"


class HostSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One host: an operating system process, which runs all nodes of the plan that are on it."""

    id: HostId
    address: Address
    start: bool = True
    """False: a spare, which is started by hand when it is wanted."""
    roles: tuple[str, ...] = ()
    """Of its nodes, in the plan's order."""
    transport: Literal["", "udp", "tcp"] = ""
    """TCP for all links of a host behind a firewall that lets nothing else through; empty: as the cluster."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a host must know before it starts."""

    file: Path
    """Where it was read from."""
    name: str
    protocol: str
    options: dict[str, object]
    groups: dict[str, tuple[NodeId, ...]]
    """The receivers of each group, in the order of group numbers."""
    senders: int
    colocated: bool
    hosts: tuple[HostSpec, ...]
    """Ascending by id."""
    transport: TransportSpec
    security: SecuritySpec
    metrics: MetricsSpec
    bundle_bytes: int
    """Messages that pile up are packed into packets of at most this size; 0: as large as fits a datagram."""
    inbox_bytes: int
    """Soft limit of application data that was delivered and not taken."""
    trace: bool
    folder: Path
    """Where state, sockets, logs and traces go."""

    def deployment(self) -> Deployment:
        """What is asked of the protocol."""
        return Deployment(tuple(self.groups.values()), self.senders, self.colocated)

    def plan(self) -> Plan:
        """The protocol's plan for it."""
        with about("protocol"):
            protocol = find_protocol(self.protocol)
        options = convert_options(protocol.live_options(self.options), protocol, list_keys=True)
        with about("groups"):
            return protocol.deploy(self.deployment(), options)

    def host(self, host: HostId) -> HostSpec:
        """The host of an id."""
        for spec in self.hosts:
            if spec.id == host:
                return spec
        known = ", ".join(str(spec.id) for spec in self.hosts)
        raise LocalError(f"{self.file}: there is no host {host}; the hosts are: {known}")

    def find_host(self, name: str) -> HostSpec:
        """The host that a person means by an id, or by a role with an index such as ``sequencer-1``."""
        if name.isascii() and name.isdigit():
            return self.host(int(name))
        for host, names in self.node_names.items():
            if name in names:
                return self.host(host)
        known = ", ".join(one for names in self.node_names.values() for one in names)
        raise LocalError(f"there is no host '{name}'; name a host by its id or by one of: {known}")

    @cached_property
    def node_names(self) -> dict[HostId, tuple[str, ...]]:
        """The nodes of each host, each by its role and its place among those of its role."""
        names: dict[HostId, tuple[str, ...]] = {spec.id: () for spec in self.hosts}
        taken: Counter[str] = Counter()
        for node in self.plan().nodes:
            names[node.host] = (*names.get(node.host, ()), f"{node.role}-{taken[node.role]}")
            taken[node.role] += 1
        return names

    @property
    def loopback(self) -> bool:
        """Whether all hosts are on this machine."""
        return all(spec.address.loopback for spec in self.hosts)

    def metrics_address(self, host: HostId) -> Address | None:
        """Where a host tells its figures."""
        return Address(self.metrics.address, self.metrics.port + host) if self.metrics.port else None

    def state_path(self, host: HostId) -> Path:
        """What a host must not forget."""
        return self.folder / "state" / f"{host}.sqlite"

    def socket_path(self, host: HostId) -> Path:
        """Where a host takes orders and answers questions."""
        return self.folder / "run" / f"{host}.sock"

    def log_path(self, host: HostId) -> Path:
        """What a host said."""
        return self.folder / "logs" / f"{host}.log"

    @property
    def traces(self) -> Path:
        """The folder of traces, one folder a run in it."""
        return self.folder / "traces"
