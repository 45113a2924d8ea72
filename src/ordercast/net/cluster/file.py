"""Reads `cluster.toml`; every complaint names the file and the line."""

import hashlib
import ipaddress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from ordercast.core import HostId, NodeId, Plan
from ordercast.net.cluster.cluster import (
    DATAGRAM_LOOPBACK,
    DATAGRAM_NETWORK,
    Cluster,
    HostSpec,
    MetricsSpec,
    SecuritySpec,
    TransportKind,
    TransportSpec,
)
from ordercast.net.cluster.key_file import load_keys
from ordercast.net.cluster.roster import CHANGES_MAX, Change, Roster
from ordercast.net.cluster.roster_file import load_saved, newer
from ordercast.net.links.datagram import DATAGRAM_BYTES_MAX
from ordercast.net.transports.address import PORT_MAX, Address, parse_address
from ordercast.toml_file import KeyedError, about, convert, naming_lines_of, read_toml

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
Port = Annotated[int, msgspec.Meta(ge=1, le=PORT_MAX)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
ChangeNumber = Annotated[int, msgspec.Meta(ge=1, le=CHANGES_MAX)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class _Table(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class _Host(_Table):
    id: Annotated[int, msgspec.Meta(ge=0)]
    address: str
    start: bool = True
    roles: list[str] | None = None
    transport: Literal["udp", "tcp"] | None = None
    added: ChangeNumber | None = None
    """The change of the roster that brought the host; none: it was there from the beginning."""
    groups: list[str] = []
    """The groups that a host receives which came later."""
    removed: ChangeNumber | None = None
    """The change of the roster that removed the host."""


class _Transport(_Table):
    kind: TransportKind = "udp"
    datagram_bytes: Annotated[int, msgspec.Meta(ge=0, le=DATAGRAM_BYTES_MAX)] = 0
    multicast_address: str = ""
    multicast_port: Port = 7399
    busy_poll: bool = False
    buffer_bytes: Annotated[int, msgspec.Meta(ge=65_536, le=1 << 30)] = 4 << 20
    window_bytes: Bytes = 0


class _Security(_Table):
    mode: Literal["sealed", "plaintext"] = "sealed"
    key_file: str = "cluster.key"
    allow_plaintext_on_network: bool = False


class _Metrics(_Table):
    port: Port
    address: str = "127.0.0.1"


class _File(_Table, kw_only=True):
    protocol: str
    name: Name = "cluster"
    senders: Count = 0
    """0: not given."""
    service: str = ""
    clients: Count = 0
    """The senders of a service; 0: not given."""
    colocated: bool = False
    joiners: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    bundle_bytes: Bytes = 0
    inbox_bytes: Annotated[int, msgspec.Meta(ge=65_536, le=1 << 34)] = 16 << 20
    trace: bool = True
    folder: str = ""
    options: dict[str, Any] = {}
    groups: dict[Name, Count | list[int]]
    transport: _Transport = msgspec.field(default_factory=_Transport)
    security: _Security = msgspec.field(default_factory=_Security)
    metrics: _Metrics | None = None
    host: list[_Host] = []


def load_cluster(path: Path, *, check_keys: bool = True, service_folder: Path | None = None) -> Cluster:
    """Read and check a cluster file; files that it names are relative to its own folder.

    With `service_folder`, the module of its service is looked for there first, and not beside the file.
    """
    path = path.absolute()
    content = read_toml(path)
    with naming_lines_of(path):
        file = convert(content, _File, list_keys=True)
        cluster = msgspec.structs.replace(_cluster(file, path), service_folder=service_folder)
        plan = cluster.plan()
        _check_hosts(file, plan)
        cluster = msgspec.structs.replace(
            cluster, founders=_with_roles(cluster.founders, plan), hosts=_with_roles(cluster.hosts, plan)
        )
        _check_addresses(file, cluster)
        _check_security(cluster)
        if check_keys and cluster.security.mode == "sealed":
            with about("security.key_file"):
                load_keys(cluster.security.key_file)
    saved = load_saved(cluster.folder)
    roster = newer(cluster.roster, saved, path, cluster.folder)
    return cluster if roster == cluster.roster else cluster.with_roster(roster)


class Tables(NamedTuple):
    """The tables of hosts in a file."""

    ids: list[HostId]
    version: int
    """How many changes of the roster they have."""


def read_tables(path: Path) -> Tables:
    """The tables of hosts in a cluster file that can be loaded."""
    file = convert(read_toml(path), _File)
    return Tables([host.id for host in file.host], _roster(file, list(file.groups)).version)


def _cluster(file: _File, path: Path) -> Cluster:
    hosts = []
    for index, host in enumerate(file.host):
        with about(f"host[{index}].address"):
            address = parse_address(host.address)
        if host.added is None:
            hosts.append(
                HostSpec(id=host.id, address=address, start=host.start, transport=host.transport or "")
            )
    hosts.sort(key=lambda spec: spec.id)
    groups = _groups(file.groups)
    cluster = Cluster(
        file=path,
        name=file.name,
        protocol=file.protocol,
        options=file.options,
        groups=groups,
        senders=_senders(file),
        service=file.service,
        colocated=file.colocated,
        joiners=file.joiners,
        hosts=tuple(hosts),
        transport=_transport(file, all(spec.address.loopback for spec in hosts)),
        security=SecuritySpec(
            mode=file.security.mode,
            key_file=path.parent / file.security.key_file,
            allow_plaintext_on_network=file.security.allow_plaintext_on_network,
        ),
        metrics=_metrics(file),
        bundle_bytes=file.bundle_bytes,
        inbox_bytes=file.inbox_bytes,
        trace=file.trace,
        folder=path.parent / (file.folder or Path(".ordercast") / file.name),
    )
    return cluster.with_roster(_roster(file, list(groups)))


def _senders(file: _File) -> int:
    """The number of senders, which a service calls its clients."""
    if not file.clients:
        return file.senders or 1
    if not file.service:
        raise KeyedError("clients", "is only allowed with `service`; without one there are `senders`")
    if file.senders:
        raise KeyedError("clients", "senders and clients are the same nodes: give one of both")
    return file.clients


def _roster(file: _File, names: list[str]) -> Roster:
    """The changes in the tables of hosts, in their order."""
    changes: dict[int, tuple[str, Change]] = {}
    for index, host in enumerate(file.host):
        if host.added is not None:
            _enter(changes, host.added, f"host[{index}].added", _addition(host, index, names))
        elif host.groups:
            raise KeyedError(f"host[{index}].groups", "is only allowed for a host with `added`")
        if host.removed is not None:
            _enter(changes, host.removed, f"host[{index}].removed", Change(host.id))
            if host.removed < (host.added or 0):
                raise KeyedError(f"host[{index}].removed", "the host cannot be removed before it was added")
    for number, found in enumerate(sorted(changes), 1):
        if found != number:
            raise KeyedError(changes[found][0], f"no host has change {number}; changes are numbered 1, 2, 3")
    return Roster(tuple(changes[number][1] for number in sorted(changes)))


def _enter(changes: dict[int, tuple[str, Change]], number: int, key: str, change: Change) -> None:
    if number in changes:
        raise KeyedError(key, f"another host already has change {number}")
    changes[number] = (key, change)


def _addition(host: _Host, index: int, names: list[str]) -> Change:
    """The change that brought a host."""
    if host.roles is None or len(host.roles) != 1:
        raise KeyedError(f"host[{index}].roles", 'name the one role of the added host, such as ["peer"]')
    for name in host.groups:
        if name not in names:
            raise KeyedError(f"host[{index}].groups", f"there is no group '{name}'")
    return Change(
        host.id, host.address, host.roles[0], tuple(names.index(name) for name in host.groups), host.start
    )


def _groups(named: dict[str, int | list[int]]) -> dict[str, tuple[NodeId, ...]]:
    """The receivers of each group: a count takes the next ones, a list names them."""
    if not named:
        raise KeyedError(
            "groups", "name at least one group and its number of receivers, for example orders = 3"
        )
    groups: dict[str, tuple[NodeId, ...]] = {}
    listed = [name for name, members in named.items() if isinstance(members, list)]
    if listed and len(listed) < len(named):
        other = next(name for name in named if name not in listed)
        raise KeyedError(f"groups.{other}", "give all groups a count, or all groups a list of receivers")
    first = 0
    for name, members in named.items():
        if isinstance(members, list):
            groups[name] = tuple(members)
        else:
            groups[name] = tuple(range(first, first + members))
            first += members
    return groups


def _transport(file: _File, loopback: bool) -> TransportSpec:
    spec = file.transport
    if 0 < spec.datagram_bytes < 576:
        raise KeyedError(
            "transport.datagram_bytes", "must be at least 576 bytes, or 0 to choose a size for the network"
        )
    multicast = spec.multicast_address
    if spec.kind == "multicast":
        multicast = multicast or _drawn_multicast(file.name)
        _check_multicast(multicast)
    elif multicast:
        raise KeyedError("transport.multicast_address", 'is only allowed with kind = "multicast"')
    return TransportSpec(
        kind=spec.kind,
        datagram_bytes=spec.datagram_bytes or (DATAGRAM_LOOPBACK if loopback else DATAGRAM_NETWORK),
        multicast_address=multicast,
        multicast_port=spec.multicast_port,
        busy_poll=spec.busy_poll,
        buffer_bytes=spec.buffer_bytes,
        window_bytes=spec.window_bytes,
    )


def _drawn_multicast(name: str) -> str:
    """A multicast address of the organisation-local range, chosen by the cluster's name."""
    digest = hashlib.sha256(name.encode()).digest()
    return f"239.255.{digest[0]}.{1 + digest[1] % 254}"


def _check_multicast(text: str) -> None:
    try:
        multicast = ipaddress.ip_address(text).is_multicast
    except ValueError:
        multicast = False
    if not multicast:
        raise KeyedError(
            "transport.multicast_address", f"'{text}' is not a multicast address such as 239.255.1.2"
        )


def _metrics(file: _File) -> MetricsSpec:
    if file.metrics is None:
        return MetricsSpec()
    highest = max((host.id for host in file.host), default=0)
    if file.metrics.port + highest > PORT_MAX:
        raise KeyedError(
            "metrics.port",
            f"host {highest} would get port {file.metrics.port + highest}; the highest port is {PORT_MAX}",
        )
    with about("metrics.address"):
        address = _listening(file.metrics.address)
    return MetricsSpec(port=file.metrics.port, address=address)


def _listening(text: str) -> str:
    """An address to listen at; here 0.0.0.0, all addresses of the machine, is allowed too."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return parse_address(f"{text}:1").host


def _check_hosts(file: _File, plan: Plan) -> None:
    """Check that the file has every host of the plan once, and no other."""
    roles = _roles(plan)
    seen: set[HostId] = set()
    for index, host in enumerate(file.host):
        if host.id in seen:
            raise KeyedError(f"host[{index}].id", f"another host already has the id {host.id}")
        seen.add(host.id)
        if host.id not in roles:
            wanted = ", ".join(str(one) for one in sorted(roles))
            raise KeyedError(f"host[{index}].id", f"the plan has no host {host.id}; its hosts are: {wanted}")
        if host.roles is not None and sorted(host.roles) != sorted(roles[host.id]):
            runs = ", ".join(roles[host.id])
            raise KeyedError(
                f"host[{index}].roles", f"does not match the plan; the roles of host {host.id} are: {runs}"
            )
    missing = [host for host in sorted(roles) if host not in seen]
    if missing:
        named = ", ".join(f"{host} ({', '.join(roles[host])})" for host in missing)
        last = f"host[{len(file.host) - 1}]" if file.host else ""
        raise KeyedError(last, f"no [[host]] for: {named}; add one with an id and an address for each")


def _roles(plan: Plan) -> dict[HostId, tuple[str, ...]]:
    roles: dict[HostId, tuple[str, ...]] = {}
    for node in plan.nodes:
        roles[node.host] = (*roles.get(node.host, ()), node.role)
    return roles


def _with_roles(hosts: tuple[HostSpec, ...], plan: Plan) -> tuple[HostSpec, ...]:
    roles = _roles(plan)
    return tuple(msgspec.structs.replace(spec, roles=roles[spec.id]) for spec in hosts)


def _check_addresses(file: _File, cluster: Cluster) -> None:
    """Check that all addresses differ and are of one family, because each host has one socket."""
    seen: dict[Address, HostId] = {}
    specs = {spec.id: spec for spec in cluster.hosts}
    first = cluster.hosts[0].address
    for index, host in enumerate(file.host):
        if host.id not in specs:  # removed, so another may have its address
            continue
        address = specs[host.id].address
        if address in seen:
            raise KeyedError(
                f"host[{index}].address", f"host {seen[address]} already has the address {address}"
            )
        seen[address] = host.id
        if None not in (first.version, address.version) and first.version != address.version:
            raise KeyedError(f"host[{index}].address", "IPv4 and IPv6 addresses cannot be mixed")


def _check_security(cluster: Cluster) -> None:
    security = cluster.security
    if security.mode == "sealed" or security.allow_plaintext_on_network or cluster.loopback:
        return
    outside = next(spec for spec in cluster.hosts if not spec.address.loopback)
    raise KeyedError(
        "security.mode",
        f"the network can reach host {outside.id} at {outside.address}, so anybody could read and forge "
        'plaintext: use mode = "sealed", or set allow_plaintext_on_network = true',
    )
