"""Performs the operations of a group at one replica, in the order of its places.

The primary performs what it has just ordered, a backup what the ordering information names, as soon as it has
the message (semi-active). With semi-passive replication a backup logs operations instead, takes over states
of the primary, and performs what it has logged after the last of them if it becomes the primary itself
(section II.E). The application is told of an operation when the operation is settled.
"""

from __future__ import annotations

from collections import deque

from ordercast.components.execution import Call, Execution, Executor, unpack_call
from ordercast.core import Env, GroupId, LocalError, MessageId, NodeId, RemoteError, Stamp
from ordercast.replication.llft.asker import Asker
from ordercast.replication.llft.checkpoint import Record, capture
from ordercast.replication.llft.connection import Connection, Kept
from ordercast.replication.llft.in_use import InUse
from ordercast.replication.llft.messages import CLIENT, SERVER, Role
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Link, ViewId
from ordercast.replication.llft.notices import CallNews, Notices, Pending, StateNews
from ordercast.replication.llft.orders import (
    AnyEntry,
    CloseOrder,
    MessageOrder,
    SeatOrder,
    SendOrder,
    ViewOrder,
)
from ordercast.replication.llft.replies import pack_answer
from ordercast.replication.llft.seats import Seats
from ordercast.replication.llft.setting import Setting
from ordercast.replication.llft.step import Step, assemble


class Performer:
    """The service, and what it has done."""

    def __init__(
        self, env: Env, setting: Setting, group: GroupId, messaging: Messaging, first: int, *, gated: bool
    ) -> None:
        """`first` is the precedence of the first primary. `gated`: what it sends waits until it is
        settled."""
        self._env = env
        self._setting = setting
        self._group = group
        self._messaging = messaging
        self._every = setting.options.checkpoint_every
        self._gated = gated
        self.executor = Executor(env, setting.service_of(group), setting.services_beside(group))
        self.asker = Asker(env, setting, group, messaging, self.executor)
        self.place = 0
        """The last operation that was performed, or logged."""
        self.executed = 0
        """The last operation that was performed."""
        self._logged: deque[Step] = deque()
        """What a semi-passive backup has not performed."""
        self._log_partial: dict[Link, list[bytes]] = {}
        self._log_seen: dict[MessageId, int] = {}
        """The calls among them, with their places."""
        self._log_floors: dict[NodeId, MessageId] = {}
        """Clients that have logged calls wait for nothing below."""
        self._outbox: deque[tuple[int, Link, int]] = deque()
        """Messages that wait until a place is settled: the place, the connection, the index."""
        self.in_use = InUse(messaging.party)
        self.seats = Seats(env.me, setting.founders(group))
        self.notices = Notices(env, setting, group, first, self.seats)
        self.active = True
        """Whether operations are performed, not only logged."""

    @property
    def view(self) -> ViewId:
        """The view in which the last operation was performed."""
        return self.notices.lineage[-1].view

    def step(self, place: int, entry: AnyEntry) -> bool:
        """Perform the operation at the next place; False if its message is missing."""
        link = self.in_use.link_of(place, entry)
        kept: Kept | None = None
        if link is not None:
            connection = self._open(link)
            incoming = connection.incoming
            following = incoming.delivered + 1
            if isinstance(entry, MessageOrder) and entry.first != following:
                raise RemoteError(
                    f"place {place} names message {entry.first} of connection {link} after message"
                    f" {incoming.delivered}"
                )
            if following > incoming.upto:
                incoming.known = max(incoming.known, following)
                self._messaging.watch(connection)
                return False
            kept = incoming.kept[following]
            incoming.delivered = following
        elif isinstance(entry, SendOrder):
            self._open(entry.link)
        elif isinstance(entry, SeatOrder) and entry.node not in self._setting.parties[self._group]:
            raise RemoteError(f"place {place} is about node {entry.node}, which cannot join this group")
        self.place = place
        step = Step(place, entry, link, kept, self._ends(entry))
        for ended in step.ends:
            self.in_use.end(ended)
        if link is not None:
            self.in_use.begin(link)
        if isinstance(entry, ViewOrder):
            self.notices.begin_view(place, entry.view, entry.members)
        elif isinstance(entry, SeatOrder) and self.seats.change(place, entry):
            self.notices.come_in(place)
        if self.active:
            self._execute(step)
        else:
            self._log(step)
        return True

    def _open(self, link: Link) -> Connection:
        """This group's end of a connection. If the group is its client, it exists at all replicas that have
        performed the first place which names it."""
        role: Role = CLIENT if link.client == self._group else SERVER
        if role == SERVER and link.server != self._group:
            raise RemoteError(f"connection {link} is ordered, which is not one of group {self._group}")
        return self._messaging.open(link, role)

    def _ends(self, entry: AnyEntry) -> tuple[Link, ...]:
        """The connections that end with an operation: it closes them, or a later one of the same groups is
        used for the first time, or a new view does not go on with them."""
        match entry:
            case MessageOrder(link=Link() as link) | SendOrder(link=link):
                return tuple(self._messaging.older(link))
            case CloseOrder():
                return (entry.link,)
            case ViewOrder():
                going_on = {link for link, _ in entry.received}
                unanswered = (link for link in self._messaging.connections if link.client == self._group)
                ends = (
                    *self.in_use.without(going_on),
                    *(link for link in unanswered if link not in going_on),
                )
                return tuple(dict.fromkeys(ends))
        return ()

    # Semi-passive backups

    def _log(self, step: Step) -> None:
        self._logged.append(step)
        place, _, link, kept, ends = step
        for ended in ends:
            connection = self._messaging.connections.get(ended)
            if connection is None:
                continue
            if connection.incoming.delivered or connection.role == CLIENT:
                self._messaging.buried.add(connection, place)
            else:
                self._messaging.close(ended)  # nothing of it was logged
        if link is None or kept is None or link.client == self._group:
            return
        whole = assemble(self._log_partial.setdefault(link, []), kept)
        call = None if whole is None else self._call(link, whole)
        if call is None or call.read or self._was_logged(call):
            return
        self._log_seen[call.first] = place
        self.notices.tell(CallNews(place, call.client, call.bundle))

    def _was_logged(self, call: Call) -> bool:
        """Whether a call is not performed: as a repetition, or because its client does not wait for it."""
        client = call.client
        floor = max(call.floor, self.executor.floor(client), self._log_floors.get(client, 0))
        self._log_floors[client] = floor
        logged = call.first in self._log_seen or self.executor.knows(call.first, client)
        return logged or call.first < floor

    def wake(self) -> None:
        """Perform what was logged: this replica becomes the primary."""
        self.active = True
        told = self.notices.waiting.copy()
        for step in self._logged:
            self._execute(step)
        self._logged.clear()
        self._log_seen.clear()
        self._log_floors.clear()
        self._log_partial.clear()
        self.notices.waiting = told  # of these operations it was told when they were logged

    # Performing

    def _execute(self, step: Step) -> None:
        place, entry, link, kept, ends = step
        self.executed = place
        for ended in ends:
            self._messaging.close(ended, place)
            self.asker.recall(ended)
        if link is not None and kept is not None:
            self._on_message(place, self._open(link), kept)
        elif isinstance(entry, SendOrder):
            self._queue(place, entry.link, self.asker.send(entry))
        elif isinstance(entry, ViewOrder):
            self._renumber(entry)

    def _on_message(self, place: int, connection: Connection, kept: Kept) -> None:
        self._messaging.clock = max(self._messaging.clock, kept.timestamp)
        whole = assemble(connection.incoming.partial, kept)
        if whole is None:
            return
        if connection.role == CLIENT:
            finished = self.asker.on_reply(connection, whole)
            if finished is not None:
                self._answer(place, Link(*finished.via), finished, finished.stamp)
            return
        call = self._call(connection.link, whole)
        if call is not None:
            self._on_call(place, connection.link, call)

    def _on_call(self, place: int, link: Link, call: Call) -> None:
        stamp = self.notices.stamp(place)
        done = self.executor.execute(call, stamp, link)
        if done is None:
            self._excuse(place, link, call, stamp)
            return
        if done.fresh:
            self.notices.tell(CallNews(place, call.client, call.bundle))
            if self._every and self.executor.executed % self._every == 0:
                self.notices.tell(StateNews(place, *self.executor.digest()))
        if done.finished:
            self._answer(place, link, done, stamp if call.read else done.stamp)

    def _excuse(self, place: int, link: Link, call: Call, stamp: Stamp) -> None:
        """Another group has come back from a branch on which it knew less, and asks what it asked before."""
        forgotten = self.executor.forgotten(call) if link.client in self._setting.groups else None
        if forgotten is not None:
            self._answer(place, link, Execution(call.first, forgotten, stamp, fresh=False), stamp)

    def _answer(self, place: int, link: Link, done: Execution, stamp: Stamp) -> None:
        """Produce the reply to a call, if its connection is still there."""
        connection = self._messaging.connections.get(link)
        if connection is not None:
            packed = pack_answer(done.first, done.results, stamp)
            self._queue(place, link, self._messaging.produce(connection, packed))

    def _queue(self, place: int, link: Link, indexes: range) -> None:
        """Messages that were produced may leave when this place allows it."""
        self._outbox.extend((place, link, index) for index in indexes)

    def _call(self, link: Link, payload: bytes) -> Call | None:
        try:
            call = unpack_call(payload)
        except RemoteError:  # all replicas find it alike, and no correct client waits for an answer
            return None
        return call if call.client in self._setting.parties[link.client] else None

    def _renumber(self, entry: ViewOrder) -> None:
        """Number the messages of each connection from one again."""
        for link, index in entry.received:
            connection = self._messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.base = index

    # What is settled

    def settle(self, place: int) -> None:
        """Tell the application of what is settled now, in order."""
        self.notices.settle(min(place, self.place))

    def pass_on(self, *, leads: bool) -> None:
        """Send what may be sent: at once, or when it is settled. A backup notes what it would have sent."""
        outbox, messaging = self._outbox, self._messaging
        at_once = leads and not self._gated
        while outbox and (at_once or outbox[0][0] <= self.notices.settled):
            _, link, index = outbox.popleft()
            connection = messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.cleared = index
                if leads:
                    messaging.pass_on(connection)

    # States

    def state(self) -> bytes:
        """The checkpoint of this replica after its last place."""
        notices = self.notices
        return capture(
            self.place,
            notices.lineage,
            self.executor.snapshot(),
            self._messaging,
            self.asker.answered.groups,
            self.seats,
            notices.pending(self.place, self._outbox),
        )

    def take(self, record: Record) -> None:
        """Take over the service in a state, before all else in it; `RemoteError`, and nothing changes, if it
        cannot be read."""
        try:
            self.executor.restore(record.executor)
        except LocalError as error:
            raise RemoteError(f"the primary sent a state that cannot be taken: {error}") from error

    def restore(self, record: Record, members: tuple[int, ...]) -> None:
        """Take over the rest of a state of the primary, and say so."""
        self.asker.answered.groups = record.answered
        self.seats.restore(record.seats, record.seated, record.place)
        self.place = self.executed = record.place
        self._logged.clear()
        self._log_seen.clear()
        self._log_floors.clear()
        self._log_partial.clear()
        self._hold_back(record.pending)
        self.in_use.restore(self._messaging.connections)
        digest = self.executor.digest()
        self.notices.restore(record.place, record.lineage, members, record.pending, digest)

    def _hold_back(self, pending: Pending | None) -> None:
        """Messages of a state that are not settled may not leave yet."""
        self._outbox = deque(pending.outbox if pending is not None else ())
        for _, link, index in reversed(self._outbox):
            connection = self._messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.cleared = min(connection.outgoing.cleared, index - 1)

    def update(self, record: Record) -> None:
        """Semi-passive: take over the rest of a state, instead of performing what was logged until then."""
        self.asker.answered.groups = record.answered
        self._hold_back(record.pending)
        self.executed = place = record.place
        while self._logged and self._logged[0].place <= place:
            for link in self._logged.popleft().ends:
                self._messaging.close(link)
        self._log_seen = {first: at for first, at in self._log_seen.items() if at > place}
