"""A client of services: a process group of one, which is always its own primary.

It opens a connection to each group that it calls, and sends each call as one request. Requests and replies
are reliable while the connection lasts. If the connection is closed, it opens another one and calls again
what has no answer; the replicas execute a call once.
"""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.components.execution import Calls, Pending
from ordercast.core import (
    Caller,
    Env,
    Explanation,
    GroupId,
    Groups,
    Message,
    MessageId,
    NodeId,
    RemoteError,
    Stamp,
    Unconfirmed,
    Undone,
    Wait,
)
from ordercast.replication.llft.answered import Answered
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.group import Group
from ordercast.replication.llft.limits import check_claims
from ordercast.replication.llft.messages import CLIENT, NewPrimaryView
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Link, Party, ViewId
from ordercast.replication.llft.orders import Slice
from ordercast.replication.llft.replies import unpack_answer
from ordercast.replication.llft.setting import Setting
from ordercast.replication.llft.upkeep import Upkeep

RECENT_MAX = 4096
"""A client of a group without a service, which gets no answers, remembers so many bundles that were
ordered."""


class Client(Caller, Group):
    """One client of all services."""

    def __init__(self, env: Env, setting: Setting) -> None:
        super().__init__(env)
        self._setting = setting
        self._options = setting.options
        self._party = setting.client_party(env.me)
        self.view = ViewId(env.me, 0)
        self.messaging = Messaging(env, setting, self._party, self)
        self._upkeep = Upkeep(env, self._options, self.messaging, self)
        self._links: dict[GroupId, Link] = {}
        self._number = 0
        self._recent: dict[MessageId, tuple[int, Pending]] = {}
        """The last bundles that were ordered, with their places, if there is no service."""
        self._answered = Answered()
        self._calls = Calls(
            env, setting.groups, self._options.calls, self._send, answers=setting.service is not None
        )

    # The application

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations."""
        return self._take(groups, payload, read=False)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with reads, which are ordered like operations."""
        return self._take(groups, payload, read=True)

    def _take(self, groups: Groups, payload: bytes, *, read: bool) -> bool:
        taken = self._calls.take(groups, payload, read=read)
        self._upkeep.arm()
        return taken

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    def _send(self, call: Pending) -> None:
        """Send a call once on each connection: messaging repeats it there as long as is needed."""
        connection = self._connect(call.group)
        if call.attempts == 1 or not connection.outgoing.produced:
            self._request(connection, call)

    def _request(self, connection: Connection, call: Pending) -> None:
        produced = self.messaging.produce(connection, call.packed(self._calls.floor))
        connection.outgoing.cleared = produced[-1]
        self.messaging.pass_on(connection)

    def _connect(self, group: GroupId) -> Connection:
        link = self._links.get(group)
        if link is None:
            self._number = max(self._number + 1, self.env.now)
            link = self._links[group] = Link(self._party, group, self._number)
        return self.messaging.open(link, CLIENT)

    # Events

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Look after connections from time to time."""
        self.env.set_timer("tick", self._options.heartbeat_ns)

    def on_message(self, source: NodeId, message: Message) -> None:
        """A message of a connection."""
        check_claims(source, message, max(self.messaging.clock, self.view.precedence), self.env.now)
        if not self.messaging.on_message(source, message):
            raise RemoteError(f"node {source} sent a {type(message).__name__} to a client")
        self._deliver()
        self._upkeep.arm()

    def on_timer(self, name: str) -> None:
        """Repeat what is due."""
        match name:
            case "tick":
                self.env.set_timer("tick", self._options.heartbeat_ns)
                self._upkeep.on_idle()
            case "work":
                self._upkeep.on_work()
            case Calls.TIMER:
                self._calls.on_timer()
        self._upkeep.arm()

    def _deliver(self) -> None:
        """Take the replies that have come, in the order in which they came."""
        ready = self.messaging.ready
        while ready:
            link = next(iter(ready))
            del ready[link]
            connection = self.messaging.connections.get(link)
            while connection is not None and (count := connection.incoming.deliverable()):
                incoming = connection.incoming
                pieces = [incoming.kept[incoming.delivered + turn] for turn in range(1, count + 1)]
                incoming.delivered += count
                self.messaging.clock = max(self.messaging.clock, pieces[-1].timestamp)
                incoming.released = incoming.watermark
                incoming.forget()
                self._on_reply(connection, b"".join(piece.payload for piece in pieces))

    def _on_reply(self, connection: Connection, payload: bytes) -> None:
        try:
            answer = unpack_answer(payload)
        except RemoteError as error:
            raise RemoteError(f"group {connection.remote} sent {error}") from error
        stamp = Stamp(*answer.place)
        view = connection.incoming.view
        replica = connection.remote if view is None else self._setting.primary_node(view)
        call = self._calls.pending.get(answer.first)
        if call is not None and self._setting.service is None:
            self._recent[answer.first] = (stamp.clock, call)
            if len(self._recent) > RECENT_MAX:
                del self._recent[next(iter(self._recent))]
        if self._calls.settle(answer.first, answer.results, stamp, replica):
            self._answered.note(connection.remote, stamp)

    # What messaging asks and tells

    @property
    def leads(self) -> bool:
        """It speaks for its group of one."""
        return True

    @property
    def recovers(self) -> bool:
        """It never does."""
        return False

    @property
    def alone(self) -> bool:
        """It has no backups."""
        return True

    def orders(self) -> Slice | None:
        """Nobody follows."""
        return None

    def on_orders(self, part: Slice) -> None:
        """Nobody follows."""

    def catch_up(self) -> None:
        """It sends what its application submits, at once."""

    def on_outdated(self, party: Party) -> None:
        """Its view is always the same."""

    def slow_down(self) -> None:
        """It has no backups."""

    def on_room(self, connection: Connection) -> None:
        """The replicas have taken requests."""
        self.messaging.pass_on(connection)

    def on_reset(self, connection: Connection) -> None:
        """Open another connection, and call again what has no answer."""
        group = connection.remote
        self.messaging.close(connection.link)
        if self._links.get(group) != connection.link:
            return
        del self._links[group]
        waiting = [call for call in self._calls.pending.values() if call.group == group and call.attempts]
        if waiting:
            fresh = self._connect(group)
            for call in waiting:
                self._request(fresh, call)

    def on_lineage(self, message: NewPrimaryView) -> None:
        """A group has a new primary: say which answers of earlier ones do not survive."""
        first = self._answered.undone(message.party, message.lineage)
        if first is None or self._options.require_majority:
            return
        view = message.lineage[-1].view
        place = Stamp(first.clock, first.issuer, (view.number, view.precedence))
        self.env.deliver(Undone(message.party, place))
        self._return(message.party, first.clock)
        self._reconnect(message.party)
        self._answered.forget(message.party, first.clock)

    def _reconnect(self, group: Party) -> None:
        """Replies of two branches must not mix on one connection."""
        link = self._links.get(group)
        connection = None if link is None else self.messaging.connections.get(link)
        if connection is not None:
            self.on_reset(connection)

    def _return(self, party: Party, place: int) -> None:
        """Give back what was ordered behind a place, to a sender that got no answers."""
        for first, (clock, call) in list(self._recent.items()):
            if call.group == party and clock > place:
                del self._recent[first]
                self.env.deliver(Unconfirmed(call.group, call.groups, call.bundle))

    def _asked(self, group: GroupId) -> tuple[NodeId, ...]:
        """The primary of a group, as far as this client knows."""
        return self._setting.way_to(group, self.messaging.views.last.get(group))[:1]

    def explain(self) -> Explanation:
        """The calls without an answer."""
        waits: list[Wait] = [
            self._calls.wait_of(call, "the reply of a primary", self._asked(call.group))
            for call in self._calls.pending.values()
        ]
        believes = ", ".join(
            f"view {self.messaging.views.begun[group]} of group {group}"
            for group in self._links
            if group in self.messaging.views.begun
        )
        state: dict[str, str | int] = {"role": "client", "calls under way": len(waits), "believes": believes}
        return Explanation(state, tuple(waits))
