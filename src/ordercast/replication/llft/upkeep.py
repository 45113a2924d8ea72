"""The periodic processing of messaging (Figure 6, lines 45 to 59): what is repeated, and when.

A message is sent again until it is acknowledged, a `FirstAck` until a `SecondAck` confirms it, a `Nack`
until what is missing has come. Idle connections are kept alive, and dead ones are closed.
"""

from __future__ import annotations

from ordercast.core import Env
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.group import Group
from ordercast.replication.llft.messages import FirstAck, KeepAlive, Nack
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.options import LlftOptions

AT_ONCE = 16
"""So many messages are sent again at a time."""
BACK_OFF_MAX = 16


class Upkeep:
    """Looks after the connections of one member."""

    def __init__(self, env: Env, options: LlftOptions, messaging: Messaging, group: Group) -> None:
        self._env = env
        self._options = options
        self._messaging = messaging
        self._group = group
        self._armed = False

    def arm(self) -> None:
        """Look after connections soon, if one needs it."""
        if not self._armed and self._messaging.busy:
            self._armed = True
            self._env.set_timer("work", self._options.ack_ns)

    def on_work(self) -> None:
        """Look after the connections that are busy."""
        self._armed = False
        for link in list(self._messaging.busy):
            connection = self._messaging.connections.get(link)
            if connection is None or not self._look_after(connection):
                self._messaging.busy.pop(link, None)

    def on_idle(self) -> None:
        """Look after all connections: keep them alive, and notice those that are dead."""
        now, options = self._env.now, self._options
        if not self._group.leads:
            return
        for connection in list(self._messaging.connections.values()):
            if now - connection.heard_at >= options.close_ns:
                self._group.on_reset(connection)
            elif now - connection.sent_at >= options.keep_alive_ns:
                self._messaging.send(connection, KeepAlive(self._messaging.head(connection)))

    def _look_after(self, connection: Connection) -> bool:
        """Do what is due on a connection (Figure 6, periodic processing); False if nothing is to come."""
        now, options = self._env.now, self._options
        incoming, outgoing = connection.incoming, connection.outgoing
        missing = incoming.missing() if incoming.kept or incoming.known > incoming.upto else ()
        if missing and now - connection.nacked_at >= options.retransmit_ns // 2:
            first = connection.nacked_at == 0
            connection.nacked_at = now
            if not first:
                self._nack(connection, missing)
        elif not missing:
            connection.nacked_at = 0
        if not self._group.leads:
            return bool(missing)
        if outgoing.passed > outgoing.acked and now >= outgoing.due:
            wait = options.retransmit_ns * min(1 << outgoing.attempts, BACK_OFF_MAX)
            outgoing.attempts += 1
            outgoing.due = now + wait
            for index in range(outgoing.acked + 1, min(outgoing.acked + AT_ONCE, outgoing.passed) + 1):
                self._messaging.transmit(connection, index)
        owed = connection.owed_since
        again = connection.unconfirmed and now - connection.acked_at >= options.retransmit_ns
        if (owed is not None and now - owed >= options.ack_ns) or again:
            connection.owed_since = None
            connection.acked_at = now
            connection.unconfirmed = incoming.upto
            self._messaging.send(connection, FirstAck(self._messaging.head(connection)))
        unacked = outgoing.passed > outgoing.acked
        return bool(missing or unacked or connection.unconfirmed or connection.owed_since is not None)

    def _nack(self, connection: Connection, missing: tuple[tuple[int, int], ...]) -> None:
        """A primary asks the remote group, a backup its own (section III.B)."""
        wanted = Nack(connection.link, 1 - connection.role, missing)  # type: ignore[arg-type]
        if self._group.leads or self._group.recovers:
            self._messaging.tell(connection.remote, wanted)
        if not self._group.leads:
            self._env.multicast(self._messaging.peers, wanted)
