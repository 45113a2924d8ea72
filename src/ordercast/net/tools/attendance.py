"""The two servers of a host: its control socket, and its metrics over HTTP."""

from collections.abc import Callable, Mapping
from typing import Self

from ordercast.core import Membership, NodeId, Receiver
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.host.live_host import LiveHost
from ordercast.net.tools.exposition import metrics_server
from ordercast.net.tools.facts import SenderFact
from ordercast.net.tools.server import ControlServer
from ordercast.net.transports.impair import ImpairedTransport

_PRESSED = "the network or a slow receiver asks senders to slow down"
_WINDOW = "the protocol accepts no more until some messages under way are done"


class Attendance:
    """Both servers of one host; start them after the host, and close them before it."""

    def __init__(self, host: LiveHost, cluster: Cluster, stop: Callable[[], None]) -> None:
        self._host = host
        self._first = {node: backlog.next_message for node, backlog in host.backlogs.items()}
        transport = host.wire.transport
        self.control = ControlServer(
            host,
            cluster.socket_path(host.host),
            cluster=cluster.name,
            groups={name: group for group, name in enumerate(cluster.groups)},
            stop=stop,
            sending=self._sending,
            details=lambda: host_details(host),
            impair=transport.set_impairment if isinstance(transport, ImpairedTransport) else None,
        )
        labels = {"cluster": cluster.name, "host": str(host.host)}
        address = cluster.metrics_address(host.host)
        self.metrics = (
            metrics_server(address, lambda: host.metrics.prometheus(labels), self._health)
            if address is not None
            else None
        )

    async def __aenter__(self) -> Self:
        """Start both."""
        await self.control.start()
        if self.metrics is not None:
            try:
                await self.metrics.start()
            except BaseException:
                await self.control.close()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close both."""
        if self.metrics is not None:
            await self.metrics.close()
        await self.control.close()

    def _sending(self) -> Mapping[NodeId, SenderFact]:
        """How far each sender has come, and what blocks it."""
        blocked = _PRESSED if self._host.wire.pressed() else _WINDOW
        return {
            node: SenderFact(
                first=self._first[node],
                next=backlog.next_message,
                backlog=backlog.messages,
                blocked=blocked if backlog.messages else "",
            )
            for node, backlog in self._host.backlogs.items()
        }

    def _health(self) -> tuple[bool, dict[str, object]]:
        well = self._host.running
        return well, {"host": self._host.host, "status": "running" if well else "stopped"}


def host_details(host: LiveHost) -> dict[str, object]:
    """The keys and the links of a host, its version of the roster, and the groups of its receivers."""
    comes_and_goes = host.plan.guarantees.membership is not Membership.FIXED
    processes = {node: env.process for node, env in host.nodes.items()} if comes_and_goes else {}
    receivers = {node: process for node, process in processes.items() if isinstance(process, Receiver)}
    return {
        **host.details(),
        "joined": {node: sorted(receiver.joined) for node, receiver in receivers.items()},
        "keys": [f"{key:08x}" for key in host.wire.seal.key_ids()],
        "links": {
            peer.host: {
                "known": peer.sessions.current is not None,
                "away": peer.link.away,
                "under_way_bytes": peer.link.under_way,
                "queued_bytes": peer.link.queued,
            }
            for peer in host.wire.peers.values()
        },
    }
