"""What the processes of a host bring about, gathered until the host lets it out.

Handlers only add to a turn: nothing that a process does takes effect while its handler runs. The host takes
the effects as one value, and carries them out in one place and one order.
"""

from collections import deque
from typing import NamedTuple, TypeAlias

from ordercast.core import Codec, Delivery, Message, NodeId
from ordercast.net.host.routes import Routes
from ordercast.net.links.outbox import Outbox, Outgoing

Deliveries: TypeAlias = list[tuple[NodeId, Delivery]]
Saves: TypeAlias = dict[tuple[NodeId, str], bytes | None]
"""What each node keeps under each name; None removes it."""

_new = tuple.__new__  # half the cost of the named tuple's own constructor


class Effects(NamedTuple):
    """What was brought about since the last time."""

    deliveries: Deliveries
    """To go on record, and then to the applications."""
    saves: Saves
    """To be durable before applications or peers hear of anything."""
    datagrams: list[Outgoing]
    """To leave last."""


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
        """While it has closed datagrams, there is an instalment to take."""

    def send(self, source: NodeId, to: tuple[NodeId, ...], message: Message) -> None:
        """A process sends: to others here, and in datagrams to those elsewhere."""
        here, elsewhere = self._routes.find(to)
        for node in here:
            self.local.append((node, source, message))
        if elsewhere:
            body = self._codec.encode(message)
            for hosts, destinations, count in elsewhere:
                self.outbox.send(hosts, source, destinations, count, body)

    def take_full(self) -> Effects:
        """An instalment: all but the datagram that has room left."""
        effects = _new(Effects, (self.deliveries, self.saves, self.outbox.take_closed()))
        self.deliveries, self.saves = [], {}
        return effects

    def take(self) -> Effects:
        """All effects."""
        effects = _new(Effects, (self.deliveries, self.saves, self.outbox.take()))
        self.deliveries, self.saves = [], {}
        return effects
