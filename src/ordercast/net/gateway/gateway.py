"""The gateway as a program: a client of a cluster that serves HTTP until it is told to stop.

At its end it accepts nobody any more, and answers the requests under way before its client stops.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ordercast.core import GroupId, HostId, LocalError, ServiceType
from ordercast.net.api.connect import Calling
from ordercast.net.api.open_calls import OpenCalls
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.key_file import read_private
from ordercast.net.gateway.site import CallLimits, GatewaySite
from ordercast.net.gateway.token_file import TokenFile
from ordercast.net.http.server import HttpLimits, HttpServer
from ordercast.net.metrics.metrics import Family
from ordercast.net.transports.address import Address
from ordercast.services import service_class

GIVE_UP_S = 60.0
DAY_S = 86_400
HTTP_LIMITS = HttpLimits(connections=256, body_bytes_max=2 << 20, request_s=10.0, idle_s=60.0)
GRACE_S = 1.0
"""Requests under way may take so much longer than they may wait, before they are cut off at the end."""

REQUESTS = Family(
    "ordercast_gateway_requests_total",
    "counter",
    "Requests that a gateway answered, by status of HTTP.",
    "status",
)
REPEATED = Family(
    "ordercast_gateway_repeated_total",
    "counter",
    "Requests that a gateway answered like an earlier one with the same Idempotency-Key.",
    "",
)
CONNECTIONS = Family("ordercast_gateway_connections", "gauge", "Connections of clients of a gateway.", "")
CALLS = Family("ordercast_gateway_calls", "gauge", "Calls of a gateway that are under way.", "")
KEYS = Family("ordercast_gateway_keys", "gauge", "Requests with an Idempotency-Key that a gateway keeps.", "")
FAMILIES = (REQUESTS, REPEATED, CONNECTIONS, CALLS, KEYS)
"""What a gateway measures, besides what every host does."""


class GatewaySpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway serves."""

    address: Address
    tokens: Path
    certificate: Path | None = None
    """With `private_key`: serve TLS."""
    private_key: Path | None = None
    host: HostId | None = None
    """The host of its client; None: the first that is free."""
    give_up_s: float = GIVE_UP_S
    """How long a call is repeated until it has an answer."""
    http: HttpLimits = HTTP_LIMITS
    limits: CallLimits = CallLimits()

    def __post_init__(self) -> None:
        limits = self.limits
        for seconds in (self.give_up_s, limits.wait_s, limits.silent_s, limits.keep_s):
            if not 0 <= seconds <= DAY_S:
                raise LocalError(f"a time of a gateway is at most {DAY_S} seconds, not {seconds:g}")
        if self.give_up_s < self.limits.wait_s:
            raise LocalError(
                f"calls are given up after {self.give_up_s:g} s, but requests wait for {self.limits.wait_s:g}"
                " s: the gateway must not give up before its clients do"
            )
        if (self.certificate is None) != (self.private_key is None):
            raise LocalError("TLS needs both, a certificate and its private key")
        if self.certificate is None and not self.address.loopback:
            raise LocalError(
                f"{self.address} can be reached from other machines: serve TLS there, with a certificate and"
                " its private key, or serve a loopback address behind a proxy that does"
            )

    @property
    def url(self) -> str:
        """Where the operations are."""
        return f"http{'s' if self.certificate else ''}://{self.address}/v1"


def tls_context(certificate: Path, private_key: Path) -> ssl.SSLContext:
    """What a server needs for TLS; `LocalError` if the files cannot be used."""
    read_private(private_key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, private_key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        raise LocalError(f"{certificate} and {private_key} cannot be used for TLS: {why}") from error
    return context


@asynccontextmanager
async def run_gateway(
    cluster: Cluster, spec: GatewaySpec, on_end: Callable[[str], None]
) -> AsyncIterator[OpenCalls]:
    """Run a gateway to the service of a cluster. `on_end` is told why it can take no more calls, if that
    happens by itself."""
    service = service_class(cluster.service, cluster.file.parent)
    tokens, tls = TokenFile(spec.tokens), None
    if spec.certificate is not None and spec.private_key is not None:
        tls = tls_context(spec.certificate, spec.private_key)
    first, *_ = cluster.groups
    async with Calling(cluster.file, service, first, spec.host, spec.give_up_s, "") as calls:
        site = GatewaySite(calls, ServiceType.of(service), called_groups(cluster), tokens, spec.limits)
        server = HttpServer(spec.address, site, spec.http, tls)

        def end(why: str) -> None:
            site.stop(why)
            on_end(why)

        calls.on_end = end
        calls.on_undone = site.on_undone
        calls.host.each_second(tokens.refresh)
        calls.host.metrics.more.append(lambda: measured(site, server))
        await server.start()
        try:
            yield calls
        finally:
            site.stop("the gateway is stopping")
            await server.close(grace_s=spec.limits.wait_s + GRACE_S)


def called_groups(cluster: Cluster) -> dict[str, GroupId]:
    """The groups that requests name. Shards are one service together: keys say which of them runs a call."""
    return {"all": 0} if cluster.plan().shards else {name: at for at, name in enumerate(cluster.groups)}


def measured(site: GatewaySite, server: HttpServer) -> Iterator[tuple[Family, Mapping[str, int]]]:
    """What a gateway has counted, by the labels of its metrics."""
    yield REQUESTS, {str(status): count for status, count in sorted(server.answers.items())}
    yield REPEATED, {"": site.repeats.answered}
    yield CONNECTIONS, {"": server.connections}
    yield CALLS, {"": site.under_way}
    yield KEYS, {"": len(site.repeats)}
