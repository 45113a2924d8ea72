"""The effects of a host's processes, gathered until the host carries them out.

Handlers only add to a turn: no effect of a process takes place while its handler runs. The host takes the
effects as one value, and carries them out in one place and one order.
"""

from collections import deque
from typing import NamedTuple, TypeAlias

from ordercast.core import Codec, Delivery, Message, NodeId
from ordercast.net.host.routes import Routes
from ordercast.net.links.outbox import Outbox, Outgoing

Deliveries: TypeAlias = list[tuple[NodeId, Delivery]]
Saves: TypeAlias = dict[tuple[NodeId, str], bytes | None]
"""The value that each node saves under each name; None removes it."""

_new = tuple.__new__  # half the cost of the named tuple's own constructor


class Effects(NamedTuple):
    """The effects since the last time they were taken."""

    deliveries: Deliveries
    """Deliveries, for the record and then for the applications."""
    saves: Saves
    """Saves, which are made durable before applications or peers see anything."""
    datagrams: list[Outgoing]
    """Datagrams, which leave last."""


class Turn:
    """The effects so far, and the messages between processes of this host."""

    def __init__(self, codec: Codec, routes: Routes, outbox: Outbox) -> None:
        self.deliveries: Deliveries = []
        self.saves: Saves = {}
        self.local: deque[tuple[NodeId, NodeId, Message]] = deque()
        """Target, source and message, for processes of this host."""
        self._codec = codec
        self._routes = routes
        self.outbox = outbox
        """While it has closed datagrams, some effects can be taken early."""

    def send(self, source: NodeId, to: tuple[NodeId, ...], message: Message) -> None:
        """A process sends a message: directly to nodes here, and in datagrams to nodes elsewhere."""
        here, elsewhere = self._routes.find(to)
        for node in here:
            self.local.append((node, source, message))
        if elsewhere:
            body = self._codec.encode(message)
            for hosts, destinations, count in elsewhere:
                self.outbox.send(hosts, source, destinations, count, body)

    def take_full(self) -> Effects:
        """All effects except the datagram that still has room."""
        effects = _new(Effects, (self.deliveries, self.saves, self.outbox.take_closed()))
        self.deliveries, self.saves = [], {}
        return effects

    def take(self) -> Effects:
        """All effects."""
        effects = _new(Effects, (self.deliveries, self.saves, self.outbox.take()))
        self.deliveries, self.saves = [], {}
        return effects
