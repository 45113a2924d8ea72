"""Another host, as this one knows it."""

from ordercast.core import HostId
from ordercast.net.links.fragments import Fragments
from ordercast.net.links.link import Link
from ordercast.net.links.session import Sessions
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.transport import Origin


class Peer:
    """Another host."""

    __slots__ = ("ack_due", "claimed", "fragments", "host", "link", "proven", "sessions", "told", "weight")

    def __init__(self, host: HostId, window: int, metrics: Metrics) -> None:
        self.host = host
        self.claimed, self.proven = Origin(host, False), Origin(host, True)
        self.link = Link(host, window, metrics)
        self.sessions = Sessions()
        self.fragments = Fragments()
        self.ack_due = False
        self.weight = 0
        """Bytes that it has sent lately; older bytes count less and less."""
        self.told = 0
        """How hard it was asked to slow down."""
