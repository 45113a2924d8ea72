"""A cluster: which protocol runs where, as its file `cluster.toml` says.

All hosts of a cluster read the same file. It is checked as a whole when it is read, and every error names its
line, so a host never starts with a wrong idea of the others.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ordercast.catalogue import find_protocol, serving_protocol
from ordercast.core import (
    Deployment,
    HostId,
    LocalError,
    Membership,
    Nanos,
    NodeId,
    Options,
    Plan,
    Protocol,
    ServiceSpec,
    screen_groups,
)
from ordercast.net.cluster.roster import Change, Roster
from ordercast.net.transports.address import Address, parse_address
from ordercast.services import find_service
from ordercast.toml_file import KeyedError, about, convert_options

TransportKind: TypeAlias = Literal["udp", "multicast", "tcp"]
DATAGRAM_LOOPBACK = 60_000
DATAGRAM_NETWORK = 1_400
"""The largest datagram that every network carries without fragmentation, with headers."""


class TransportSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How datagrams travel."""

    kind: TransportKind = "udp"
    datagram_bytes: int = DATAGRAM_NETWORK
    """The largest datagram that is sent."""
    multicast_address: str = ""
    multicast_port: int = 7399
    busy_poll: bool = False
    """Poll for datagrams all the time instead of sleeping: lower latency, at the cost of a core per host."""
    buffer_bytes: int = 4 << 20
    """Buffer of a socket in each direction, as far as the system allows."""
    window_bytes: int = 0
    """Bytes that may be unacknowledged to one host; more must wait. 0: what fits into the buffers of all."""


class SecuritySpec(msgspec.Struct, frozen=True, kw_only=True):
    """What protects datagrams."""

    mode: Literal["sealed", "plaintext"] = "sealed"
    key_file: Path
    allow_plaintext_on_network: bool = False


class MetricsSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Where hosts serve their metrics over HTTP; port 0: nowhere."""

    port: int = 0
    """The port of host 0; host 1 has the next one, and so on, so that all fit on one machine."""
    address: str = "127.0.0.1"


class HostSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One host: an operating system process that runs all nodes that the plan puts on it."""

    id: HostId
    address: Address
    start: bool = True
    """False: `cluster up` does not start it; it is a spare, or left to an application."""
    roles: tuple[str, ...] = ()
    """The roles of its nodes, in the plan's order."""
    transport: Literal["", "udp", "tcp"] = ""
    """"tcp" for a host behind a firewall that lets nothing else through; empty: as the cluster."""


def _spec(change: Change) -> HostSpec:
    """A host that came later."""
    address = parse_address(change.address)
    return HostSpec(id=change.host, address=address, start=change.start, roles=(change.role,))


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
    joiners: int = 0
    """Receivers that are in no group at the start, and may join later."""
    hosts: tuple[HostSpec, ...]
    """The hosts that were not removed, ascending by id."""
    transport: TransportSpec
    security: SecuritySpec
    metrics: MetricsSpec
    bundle_bytes: int
    """The largest bundle into which waiting messages are packed; 0: as large as fits into a datagram."""
    inbox_bytes: int
    """Soft limit of delivered bytes that the application has not taken."""
    trace: bool
    folder: Path
    """The folder of state, sockets, logs and traces."""
    founders: tuple[HostSpec, ...] = ()
    """The hosts of the first plan, removed ones too."""
    roster: Roster = Roster()
    """The hosts that came later and those that were removed."""
    service: str = ""
    """The service that the receivers of each group replicate; empty: messages are only ordered."""
    service_folder: Path | None = None
    """Where the module of the service is looked for first; None: beside the cluster file."""
    deadline_ns: Nanos | None = None
    """After this time a client in this process gives a call up, whatever the options say; 0: never."""

    def deployment(self) -> Deployment:
        """The deployment that the protocol makes a plan for."""
        return Deployment(
            tuple(self.groups.values()), self.senders, self.colocated, self.joiners, self.service_spec
        )

    @cached_property
    def service_spec(self) -> ServiceSpec | None:
        """The service, checked; None if there is none."""
        return find_service(self.service, self.service_folder or self.file.parent) if self.service else None

    def _options(self, protocol: Protocol) -> Options:
        with about("options"):
            chosen = protocol.live_options(self.options)
        options = convert_options(chosen, protocol, list_keys=True)
        if self.deadline_ns is None:
            return options
        calls = getattr(options, "calls", None)
        if calls is None:
            raise LocalError(f"the clients of {self.protocol} have no deadlines")
        retry_ns = min(calls.retry_ns, self.deadline_ns or calls.retry_ns)
        calls = msgspec.structs.replace(calls, deadline_ns=self.deadline_ns, retry_ns=retry_ns)
        return msgspec.structs.replace(options, calls=calls)

    def plan(self) -> Plan:
        """The protocol's plan for the cluster."""
        with about("protocol"):
            protocol = find_protocol(self.protocol)
        if self.service:
            with about("service"):
                serving_protocol(self.protocol)
                _ = self.service_spec  # an error in it is not one of the groups
        options = self._options(protocol)
        if self.joiners and protocol.guarantees.membership is Membership.FIXED:
            what = f"the groups of {self.protocol} are fixed, so nobody can join them later"
            raise KeyedError("joiners", what)
        with about("groups"):
            membership = protocol.base(self.options).guarantees.membership
            screen_groups(self.protocol, membership, dict(enumerate(self.groups.values())))
            first = protocol.deploy(self.deployment(), options)
            if not self.roster.changes:
                return first
            extension = self.roster.extension(first)
            plan = protocol.deploy_extended(self.deployment(), options, extension)
            return replace(plan, changes=self.roster.version)

    def first_plan(self) -> Plan:
        """The plan before any host came later or was removed."""
        return self.with_roster(Roster()).plan()

    def plan_of(self, took_part: Collection[HostId]) -> Plan:
        """The plan for the trace of a run: hosts that took part and were removed are in it."""
        return self.with_roster(self.roster.keeping(took_part)).plan()

    @property
    def machines(self) -> tuple[tuple[HostId, ...], ...]:
        """The hosts on each machine: those that have the same address, apart from its port."""
        found: dict[str, list[HostId]] = {}
        for spec in (*(self.founders or self.hosts), *map(_spec, self.roster.added)):
            machine = "localhost" if spec.address.loopback else spec.address.host
            found.setdefault(machine, []).append(spec.id)
        return tuple(tuple(sorted(dict.fromkeys(hosts))) for hosts in found.values())

    def with_roster(self, roster: Roster) -> "Cluster":
        """The same cluster after these changes."""
        came = (_spec(change) for change in roster.added)
        hosts = (spec for spec in (*(self.founders or self.hosts), *came) if spec.id not in roster.removed)
        return msgspec.structs.replace(
            self,
            founders=self.founders or self.hosts,
            hosts=tuple(sorted(hosts, key=lambda spec: spec.id)),
            roster=roster,
        )

    def comes_late(self, host: HostId) -> bool:
        """Whether a host came later, and its first life is still to begin."""
        came = any(change.host == host for change in self.roster.added)
        return came and not self.state_path(host).exists()

    def host(self, host: HostId) -> HostSpec:
        """The host of an id."""
        for spec in self.hosts:
            if spec.id == host:
                return spec
        if host in self.roster.removed:
            raise LocalError(f"host {host} was removed from the cluster, and its id is not used again")
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
        plan = self.plan()
        for node in plan.nodes:
            if node.id not in plan.removed:
                names[node.host] = (*names.get(node.host, ()), f"{node.role}-{taken[node.role]}")
            taken[node.role] += 1  # the names of others stay as they are when a host is removed
        return names

    @property
    def loopback(self) -> bool:
        """Whether all hosts are on this machine."""
        return all(spec.address.loopback for spec in self.hosts)

    def metrics_address(self, host: HostId) -> Address | None:
        """Where a host serves its metrics."""
        return Address(self.metrics.address, self.metrics.port + host) if self.metrics.port else None

    def state_path(self, host: HostId) -> Path:
        """The file with a host's saved state."""
        return self.folder / "state" / f"{host}.sqlite"

    def socket_path(self, host: HostId) -> Path:
        """The control socket of a host."""
        return self.folder / "run" / f"{host}.sock"

    def log_path(self, host: HostId) -> Path:
        """The log file of a host."""
        return self.folder / "logs" / f"{host}.log"

    @property
    def traces(self) -> Path:
        """The folder of traces, with one folder per run."""
        return self.folder / "traces"
