"""What a group asks other groups (section II.C: a process group may be client and server at a time).

An operation that asks has no result until the other group has answered. The primary orders each ask as an
operation of its own (`SendOrder`), under an identity and with a time that it chooses. So all replicas produce
the same request on the same connection, of which this group is the client; only the primary sends it. The
reply is delivered at a place in the order, like any message, and the operation goes on there. A new primary
sends again what has no answer, under the same identities, and the other group executes it once.
"""

from __future__ import annotations

from ordercast.components.execution import Execution, Executor
from ordercast.core import Env, MessageId, Nanos, RemoteError, Replied, Stamp, Unconfirmed
from ordercast.core.bundle import pack_bundle
from ordercast.replication.llft.answered import Answered
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.messages import CLIENT, NewPrimaryView
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Link, Party
from ordercast.replication.llft.orders import SendOrder
from ordercast.replication.llft.replies import unpack_answer
from ordercast.replication.llft.setting import Setting


class Asker:
    """The part of a replica that is a client of other groups."""

    def __init__(
        self, env: Env, setting: Setting, party: Party, messaging: Messaging, executor: Executor
    ) -> None:
        self._env = env
        self._setting = setting
        self._party = party
        self._messaging = messaging
        self._executor = executor
        self.answered = Answered()
        """Which answers this group has taken, and from whom."""
        self._mine: dict[MessageId, Unconfirmed] = {}
        """What this replica has given an identity, as it gives it back if it can say no more about it."""

    # The primary

    @property
    def wants(self) -> bool:
        """Whether something is to be sent."""
        asks = self._executor.asks
        return asks is not None and bool(asks.unsent)

    def next_order(self) -> SendOrder:
        """The entry for the next ask that is to be sent."""
        asks = self._executor.asks
        assert asks is not None
        number = next(iter(asks.unsent))
        ask = asks.waiting[number]
        message, time_ns = ask.message, ask.time_ns
        if message is None:
            message, time_ns = self._originate((ask.group,), ask.operation, read=ask.read)
        return SendOrder(self._link_to(ask.group), number, message, time_ns)

    def _originate(
        self, groups: tuple[Party, ...], operation: bytes, *, read: bool
    ) -> tuple[MessageId, Nanos]:
        message, time_ns = self._env.originate(groups, operation, read=read)
        given_back = pack_bundle(message, [time_ns], [operation])
        self._mine[message] = Unconfirmed(groups[0], groups, given_back)
        return message, time_ns

    def _link_to(self, group: Party) -> Link:
        """The connection to a group; a new one, if there is none."""
        closed = self._messaging.closed.get((self._party, group), 0)
        return max(self._links_to(group), default=Link(self._party, group, max(closed + 1, self._env.now)))

    def _links_to(self, group: Party) -> list[Link]:
        return [link for link in self._messaging.connections if link[:2] == (self._party, group)]

    def links_undone(self, message: NewPrimaryView) -> list[Link]:
        """The connections to a group that says where its views began, if answers of it are undone by that."""
        first = self.answered.undone(message.party, message.lineage)
        if first is None or self._setting.options.require_majority:
            return []
        self.answered.forget(message.party, first.clock)
        return self._links_to(message.party)

    def give_up(self) -> None:
        """This replica is the primary no longer: others may send what it has given identities, or nobody."""
        for given_back in self._mine.values():
            self._env.deliver(given_back)
        self._mine.clear()

    # All replicas

    def send(self, entry: SendOrder) -> range:
        """Produce the request for an ask; return its indexes."""
        connection = self._messaging.open(entry.link, CLIENT)
        call = self._executor.send(entry.ask, entry.message, entry.time_ns, entry.link)
        return self._messaging.produce(connection, call) if call is not None else range(0)

    def recall(self, link: Link) -> None:
        """A connection has ended: what was sent on it, and has no answer, is to be sent again."""
        if self._executor.asks is not None:
            self._executor.asks.recall(link)

    def on_reply(self, connection: Connection, payload: bytes) -> Execution | None:
        """A reply is delivered: go on with the operation that waited for it. The execution of its call, if
        that is finished now."""
        try:
            answer = unpack_answer(payload)
        except RemoteError:  # all replicas find it alike; a correct group sends no such answer
            return None
        resumed = self._executor.resume(answer.first, answer.results)
        if resumed is None:
            return None
        ask, done = resumed
        stamp = Stamp(*answer.place)
        self.answered.note(connection.remote, stamp)
        given_back = self._mine.pop(answer.first, None)
        if given_back is not None:
            view = connection.incoming.view
            replica = connection.remote if view is None else self._setting.primary_node(view)
            self._tell(given_back, Replied(ask.group, answer.results, stamp, replica, ask.read))
        return done

    def _tell(self, given_back: Unconfirmed, replied: Replied) -> None:
        """An ask of this replica has its answer. If the branch of the other group may be discarded, it says
        only that it will say no more: when that shows, another replica may be the primary."""
        self._env.deliver(replied if self._setting.options.require_majority else given_back)
