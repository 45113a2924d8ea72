"""Performs the operations of a group at one replica, in the order of its places.

The primary performs what it has just ordered, a backup what the ordering information names, as soon as it has
the message (semi-active). With semi-passive replication a backup logs operations instead, takes over states
of the primary, and performs what it has logged after the last of them if it becomes the primary itself
(section II.E). The application is told of an operation when the operation is settled.
"""

from __future__ import annotations

from collections import deque

from ordercast.components.execution import Call, Execution, Executor, unpack_call
from ordercast.core import (
    Checkpoint,
    Delivered,
    Env,
    GroupId,
    Joined,
    MessageId,
    NodeId,
    RemoteError,
    Stamp,
    View,
)
from ordercast.core.delivery import ANEW, Delivery
from ordercast.replication.llft.asker import Asker
from ordercast.replication.llft.checkpoint import Record
from ordercast.replication.llft.connection import Connection, Kept
from ordercast.replication.llft.in_use import InUse
from ordercast.replication.llft.lineage import Views, begin, extended
from ordercast.replication.llft.messages import CLIENT, SERVER, Role
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Link, ViewId
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
from ordercast.replication.llft.step import Settled, Step, assemble


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
        self.lineage: Views = begin(first)
        self.settled = 0
        """The application was told of everything up to this place."""
        self.confirmed = 0
        """The primary has said that all is settled up to this place. A state does not say that of its own."""
        self._waiting: deque[Settled] = deque()
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
        self._members: tuple[int, ...] = ()
        """The precedences of the members at the beginning of the present view."""
        self.active = True
        """Whether operations are performed, not only logged."""

    @property
    def view(self) -> ViewId:
        """The view in which the last operation was performed."""
        return self.lineage[-1].view

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
            self._begin_view(place, entry)
        elif isinstance(entry, SeatOrder) and self.seats.change(place, entry):
            self._tell(place, Joined(self._group, stamp=self.stamp(place)), self._present())
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
        self._tell_call(place, call, self.stamp(place))

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
        told = list(self._waiting)
        for step in self._logged:
            self._execute(step)
        self._logged.clear()
        self._log_seen.clear()
        self._log_floors.clear()
        self._log_partial.clear()
        self._waiting = deque(told)  # the application was told of these operations when they were logged

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
        stamp = self.stamp(place)
        done = self.executor.execute(call, stamp, link)
        if done is None:
            self._excuse(place, link, call, stamp)
            return
        if done.fresh:
            self._tell_call(place, call, stamp)
            if self._every and self.executor.executed % self._every == 0:
                self._tell(place, Checkpoint(self._group, stamp, *self.executor.digest()))
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

    def _tell_call(self, place: int, call: Call, stamp: Stamp) -> None:
        carried = Delivered(
            call.bundle, (self._group,), call.client, stamp, config=self._view_at(place).number
        )
        self._tell(place, carried)

    def _call(self, link: Link, payload: bytes) -> Call | None:
        try:
            call = unpack_call(payload)
        except RemoteError:  # all replicas find it alike, and no correct client waits for an answer
            return None
        return call if call.client in self._setting.parties[link.client] else None

    def stamp(self, place: int) -> Stamp:
        """What a place is called outside."""
        return Stamp(place, self._view_at(place).precedence)

    def _view_at(self, place: int) -> ViewId:
        """The view to which a place belongs."""
        for begun in reversed(self.lineage):
            if begun.place <= place:
                return begun.view
        return self.lineage[0].view

    def _begin_view(self, place: int, entry: ViewOrder) -> None:
        """The virtual synchrony point: from here on this replica is in the new view."""
        previous = self.view
        self.lineage = extended(self.lineage, entry.view, place)
        self._members = entry.members
        self._tell(place, self._notice(previous))

    def _present(self) -> View:
        """The present view, for an application that comes into it."""
        return self._notice(self.lineage[-2:][0].view, ANEW)

    def _notice(self, previous: ViewId, note: str = "") -> View:
        view, place = self.lineage[-1]
        nodes = tuple(sorted(member % self._setting.nodes for member in self._members))
        stamp = Stamp(max(0, place - 1), view.precedence, (previous.number, previous.precedence))
        return View(self._group, view.number, nodes, note, stamp=stamp)

    def _renumber(self, entry: ViewOrder) -> None:
        """Number the messages of each connection from one again."""
        for link, index in entry.received:
            connection = self._messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.base = index

    # What is settled

    def _tell(self, place: int, *notices: Delivery) -> None:
        if not self.seats.silent:
            self._waiting.append(Settled(place, notices))

    def settle(self, place: int) -> None:
        """Tell the application of what is settled now, in order."""
        waiting = self._waiting
        while waiting and waiting[0].place <= min(place, self.place):
            for notice in waiting.popleft().notices:
                if not self.seats.told:
                    self.seats.told = True
                    self._env.save("started", b"1")
                self._env.deliver(notice)
        self.confirmed = max(self.confirmed, min(place, self.place))
        self.settled = max(self.settled, self.confirmed)

    def pass_on(self, *, leads: bool) -> None:
        """Send what may be sent: at once, or when it is settled. A backup notes what it would have sent."""
        outbox, messaging = self._outbox, self._messaging
        at_once = leads and not self._gated
        while outbox and (at_once or outbox[0][0] <= self.settled):
            _, link, index = outbox.popleft()
            connection = messaging.connections.get(link)
            if connection is not None:
                connection.outgoing.cleared = index
                if leads:
                    messaging.pass_on(connection)

    # States

    def restore(self, record: Record, members: tuple[int, ...]) -> None:
        """Take over a state of the primary, and say so."""
        self.executor.restore(record.executor)
        self.asker.answered.groups = record.answered
        self.seats.restore(record.seats, record.seated)
        self.place = self.executed = place = record.place
        self.lineage, self._members = record.lineage, members
        self._waiting.clear()
        self._logged.clear()
        self._log_seen.clear()
        self._log_floors.clear()
        self._log_partial.clear()
        self._outbox.clear()
        self.in_use.restore(self._messaging.connections)
        self.settled = place
        self.confirmed = 0
        if not self.seats.told:
            return
        if place:
            digest = self.executor.digest()
            self._env.deliver(Checkpoint(self._group, self.stamp(place), *digest, restored=True))
        self._env.deliver(self._present())

    def update(self, record: Record) -> None:
        """Semi-passive: take over a state, instead of performing what was logged up to its place."""
        self.executor.restore(record.executor)
        self.asker.answered.groups = record.answered
        self.executed = place = record.place
        while self._logged and self._logged[0].place <= place:
            for link in self._logged.popleft().ends:
                self._messaging.close(link)
        self._log_seen = {first: at for first, at in self._log_seen.items() if at > place}
