"""Puts together the parts of a host, as the cluster file says."""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from ordercast.core import HostId, LocalError, Nanos, Plan
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.key_file import KeyFile
from ordercast.net.cluster.roster_keeper import RosterKeeper
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.recording.contract import Recorder
from ordercast.net.host.set_aside import set_aside
from ordercast.net.host.store import WAIT_S, Store
from ordercast.net.links.seal import Seal, Sealed, Unsealed
from ordercast.net.links.wire import Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address
from ordercast.net.transports.impair import ImpairedTransport
from ordercast.net.transports.multicast import MulticastTransport, shared_sets
from ordercast.net.transports.switched import SwitchedTransport, hosts_by_tcp
from ordercast.net.transports.tcp import TcpTransport
from ordercast.net.transports.transport import Transport
from ordercast.net.transports.udp import UdpTransport, granted_buffer

WINDOW_MIN, WINDOW_MAX = 64 << 10, 1 << 20

_log = logging.getLogger("ordercast")


def open_host(
    cluster: Cluster,
    host: HostId,
    *,
    plan: Plan | None = None,
    recorder: Recorder | None = None,
    impaired: Random | None = None,
    clock: Callable[[], Nanos] = time.time_ns,
    wait_s: float = WAIT_S,
    as_new: bool = False,
    store_type: type[Store] = Store,
) -> LiveHost:
    """A host of a cluster, ready to start; waits up to `wait_s` for an earlier life to release its state.

    With `as_new` its saved state is set aside, and it comes back as a new member with an empty one; whoever
    asks for that calls `screen_as_new` first, unless an experiment is to show what comes of it.
    For tests and experiments, a generator for `impaired` allows impairing its datagrams, a `clock` lets it
    have a wrong time, and a `store_type` lets its disk fail.
    """
    spec = cluster.host(host)
    metrics, session = Metrics(), new_session()
    plan = plan or cluster.plan()
    transport = open_transport(cluster, spec.id)
    if impaired is not None:
        transport = ImpairedTransport(transport, impaired)
    keys = KeyFile(cluster.security.key_file) if cluster.security.mode == "sealed" else None
    seal: Seal = Unsealed(host, session) if keys is None else Sealed(host, session, keys.keyring)
    ids = [other.id for other in cluster.hosts]
    window = cluster.transport.window_bytes or _window(cluster.transport.buffer_bytes, len(ids) - 1)
    wire = Wire(host, ids, transport, seal, metrics, window=window)
    if recorder is not None:
        recorder.on_failure = partial(_count_trace_failure, metrics)
    live = LiveHost(
        plan,
        host,
        wire,
        store=_open_store(store_type, cluster.state_path(host), host, wait_s, as_new),
        recorder=recorder,
        bundle_bytes=cluster.bundle_bytes,
        clock=clock,
    )
    if keys is not None:
        live.each_second(partial(_renew, seal, keys))
    RosterKeeper(cluster, live)
    return live


def _open_store(kind: type[Store], path: Path, host: HostId, wait_s: float, as_new: bool) -> Store:
    if as_new:
        folder = set_aside(path, wait_s)
        where = "there was no saved state" if folder is None else f"its saved state is now in {folder}"
        _log.warning("host %d comes back as a new member; %s", host, where)
    return kind(path, wait_s, as_new=as_new)


def _count_trace_failure(metrics: Metrics) -> None:
    metrics.trace_failures += 1


def _window(buffer_bytes: int, peers: int) -> int:
    """The window of a link: what all peers together may send must fit into the granted socket buffer.

    The system also counts its overhead for each datagram, and so do links.
    """
    granted = granted_buffer(buffer_bytes)
    if granted < buffer_bytes:
        _log.warning(
            "sockets have buffers of %d bytes instead of %d; raise net.core.rmem_max", granted, buffer_bytes
        )
    return min(WINDOW_MAX, max(WINDOW_MIN, granted // max(1, peers)))


def open_transport(cluster: Cluster, host: HostId) -> Transport:
    """The transport of a host, as the cluster's file says."""
    spec = cluster.transport
    addresses = {other.id: other.address for other in cluster.hosts}
    tcp = TcpTransport(host, addresses, datagram_max=spec.datagram_bytes)
    if spec.kind == "tcp":
        return tcp
    if spec.kind == "multicast":
        udp: UdpTransport = MulticastTransport(
            host,
            addresses,
            spec.datagram_bytes,
            spec.buffer_bytes,
            spec.busy_poll,
            # Those of the first plan, at all hosts: they never change, and newcomers are sent to one by one.
            sets=shared_sets(cluster.first_plan()),
            first=Address(spec.multicast_address, spec.multicast_port),
        )
    else:
        udp = UdpTransport(host, addresses, spec.datagram_bytes, spec.buffer_bytes, spec.busy_poll)
    marked = [other.id for other in cluster.hosts if other.transport == "tcp"]
    special = hosts_by_tcp(host, marked, list(addresses))
    return SwitchedTransport(udp, tcp, special, special_only=host in marked) if special else udp


def _renew(seal: Seal, keys: KeyFile) -> None:
    """Use the keys that are in the file now; an unreadable file changes nothing."""
    try:
        ring = keys.refresh()
    except LocalError as error:
        _log.warning("cannot read the new keys, so the old ones stay in use: %s", error)
        return
    if ring is not None:
        seal.renew(ring)
        _log.info("read the keys again: %s", ", ".join(f"{key:08x}" for key in seal.key_ids()))
