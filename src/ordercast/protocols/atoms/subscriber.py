"""A subscriber: receives the logs of its groups, and delivers them in one order ([atoms] section 3.1).

It asks the store to be in a group or out of it, and asks again until it is told. It acknowledges what it has
received, so that the distributor repeats what is lost, and what it has delivered, so that the log can be
forgotten. Where it is in each group is saved before each delivery.
"""

from collections.abc import Collection, Mapping

import msgspec

from ordercast.core import (
    Delivered,
    Env,
    Explanation,
    GroupId,
    Joined,
    Left,
    Message,
    Nanos,
    NodeId,
    Receiver,
    Stamp,
    Wait,
)
from ordercast.protocols.atoms.limits import Limits
from ordercast.protocols.atoms.messages import Ask, Entries, Got, Told, Where
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.ordering import Ordering, Stream
from ordercast.protocols.atoms.records import Begin, GroupPlan, Membership, Placed, Record, Stamps

ACK = "ack"
ASK = "ask"
CHECK = "check"
HASTE = 32
"""So many entries are acknowledged at once; fewer wait for a timer."""
CHECKS = 250
"""Between two looks whether the store still has it as a member, so many times `retry_ns` pass."""


class _Cursor(Record, frozen=True):
    """Where a subscriber is in a group."""

    next: int
    label: int
    last: Stamps


class _Frame(Record, frozen=True):
    """What a subscriber knows of its time in a group, and of the epoch that it is in."""

    first: int
    founder: bool
    out: int | None
    stop: int | None
    atoms: tuple[tuple[int, tuple[int, ...]], ...]
    relevant: tuple[int, ...]


_encoder = msgspec.msgpack.Encoder()
_cursors = msgspec.msgpack.Decoder(_Cursor)
_frames = msgspec.msgpack.Decoder(_Frame)


class Subscriber(Receiver):
    """One receiver."""

    def __init__(
        self,
        env: Env,
        plans: Mapping[GroupId, GroupPlan],
        store: tuple[NodeId, ...],
        limits: Limits,
        options: AtomsOptions,
    ) -> None:
        super().__init__(env)
        self._store = store
        self._limits = limits
        self._options = options
        self._first = {
            group: plan.label
            for group, plan in plans.items()
            if any(tenure.node == env.me for tenure in plan.tenures)
        }
        self._ordering = Ordering(self._deliver, self._enter)
        self._life = 1
        self._number = 0
        """Of the last request."""
        self._asked: dict[int, tuple[Ask, Nanos]] = {}
        """What is not answered, and since when."""
        self._is_settled = True
        self._ended: dict[GroupId, int] = {}
        """Where its last time in a group began, if that is over."""
        self._unacknowledged: dict[GroupId, int] = {}
        self._from: dict[GroupId, NodeId] = {}
        """Who distributes each group."""
        self._is_armed = False

    # Life

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin in the groups of the plan, or go on."""
        self._life = int.from_bytes(saved.get("life", b""), "little") + 1
        self.env.save("life", self._life.to_bytes(8, "little"))
        if self._life == 1:
            for group, label in self._first.items():
                self._ordering.streams[group] = stream = Stream(group, label, 0, founder=True)
                self._save_frame(stream)
                self._save_cursor(stream)
        else:
            self._resume(saved)
            self._is_settled = False
            self._asked[0] = Ask(self._life, 0), self.env.now
            self._set_horizon()
            self._ask()
        self.env.set_timer(CHECK, CHECKS * self._options.retry_ns)

    def _resume(self, saved: Mapping[str, bytes]) -> None:
        for name, state in saved.items():
            kind, _, rest = name.partition(".")
            if kind == "ended":
                self._ended[int(rest)] = int.from_bytes(state, "little", signed=True)
            elif kind == "frame":
                frame, cursor = _frames.decode(state), _cursors.decode(saved[f"cursor.{rest}"])
                stream = Stream(int(rest), frame.first, cursor.next, frame.founder)
                stream.out, stream.stop = frame.out, frame.stop
                stream.label, stream.last = cursor.label, cursor.last
                stream.atoms, stream.relevant = dict(frame.atoms), frozenset(frame.relevant)
                self._ordering.resume(stream)

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that it is in now."""
        return [group for group, stream in self._ordering.streams.items() if stream.founder or stream.label]

    def join(self, group: GroupId) -> None:
        """Ask to receive a group."""
        self._request(group, wants=True)

    def leave(self, group: GroupId) -> None:
        """Ask to receive a group no longer."""
        self._request(group, wants=False)

    def _request(self, group: GroupId, wants: bool) -> None:
        self._number += 1
        self._asked[self._number] = Ask(self._life, self._number, group, wants), self.env.now
        self._is_settled = False
        self._set_horizon()
        self._ask()

    def _set_horizon(self) -> None:
        """What comes after the present epochs is not known until the store has answered."""
        if self._ordering.horizon is None:
            labels = (stream.label for stream in self._ordering.streams.values())
            self._ordering.horizon = 1 + max(labels, default=0)

    def _ask(self) -> None:
        """Send what is not answered, or just ask how things are."""
        asks = [ask for ask, _ in self._asked.values()]
        for ask in asks or [Ask(self._life, self._number)]:
            self.env.multicast(self._store, ask)
        self.env.set_timer(ASK, self._options.retry_ns)

    # What comes

    def on_message(self, source: NodeId, message: Message) -> None:
        """Entries of a log, questions about it, and answers of the store."""
        self._limits.check(source, message)
        match message:
            case Entries():
                self._on_entries(source, message)
            case Where(group):
                if group in self._ordering.streams:
                    self._from[group] = source
                    self._acknowledge(group)
                else:
                    self._disown(source, group)
            case Told():
                self._on_told(message)

    def _on_entries(self, source: NodeId, message: Entries) -> None:
        group = message.group
        stream = self._ordering.streams.get(group)
        if stream is None:
            self._disown(source, group)
            return
        self._from[group] = source
        if not stream.came:
            stream.since = self.env.now
        fresh = False
        for position, entry in enumerate(message.entries, message.start):
            fresh |= stream.take(position, entry)
        if fresh:
            self._ordering.advance((group,))
        self._unacknowledged[group] = self._unacknowledged.get(group, 0) + len(message.entries)
        if self._unacknowledged[group] >= HASTE or not fresh:
            self._acknowledge(group)
        elif not self._is_armed:
            self._is_armed = True
            self.env.set_timer(ACK, self._options.retry_ns // 8)

    def _disown(self, source: NodeId, group: GroupId) -> None:
        """Somebody sends entries of a group that this node is not in: it has left, or does not know yet."""
        if group in self._ended:
            end = self._ended[group]
            self.env.send(source, Got(group, end, end))
        elif self._is_settled:
            self._is_settled = False
            self._set_horizon()
            self._ask()

    def _acknowledge(self, group: GroupId) -> None:
        self._unacknowledged.pop(group, None)
        stream, to = self._ordering.streams.get(group), self._from.get(group)
        if stream is not None and to is not None:
            self.env.send(to, Got(group, stream.next, max(stream.next, stream.received)))

    def on_timer(self, name: str) -> None:
        """Acknowledge, ask again, or look whether it is still a member."""
        if name == ACK:
            self._is_armed = False
            for group in list(self._unacknowledged):
                self._acknowledge(group)
        elif name == ASK and not self._is_settled:
            self._ask()
        elif name == CHECK:
            if self._is_settled:
                self.env.multicast(self._store, Ask(self._life, self._number))
            self.env.set_timer(CHECK, CHECKS * self._options.retry_ns)

    def _on_told(self, message: Told) -> None:
        """The store says in which groups this node is, and for which epochs it knows that."""
        if message.life > self._life:
            return
        for membership in message.memberships:
            self._follow(membership)
        if message.life == self._life:
            for number in [number for number in self._asked if number <= message.number]:
                del self._asked[number]
        if message.settled and self._is_latest(message):
            self._is_settled = True
            self._ordering.horizon = None
        elif self._ordering.horizon is not None:
            self._ordering.horizon = max(self._ordering.horizon, message.horizon)
        self._ordering.advance(tuple(self._ordering.streams))

    def _is_latest(self, message: Told) -> bool:
        """Whether an answer is about the last request; an earlier one may come late and say less."""
        asked_nothing = self._life == 1 and self._number == 0
        return (message.life, message.number) == ((0, 0) if asked_nothing else (self._life, self._number))

    def _follow(self, membership: Membership) -> None:
        """Take note of one membership."""
        group = membership.group
        stream = self._ordering.streams.get(group)
        if stream is None:
            if membership.stop is None and membership.start >= self._ended.get(group, 0):
                stream = Stream(group, membership.label, membership.start, founder=False)
                self._ordering.streams[group] = stream
                self._save_frame(stream)
                self._save_cursor(stream)
            return
        if stream.first == membership.label and membership.stop is not None and stream.stop is None:
            stream.out = membership.out
            if membership.lost:
                self._part(stream, stream.next - 1)
                return
            stream.stop = membership.stop
            self._save_frame(stream)

    # What goes to the application

    def _deliver(self, stream: Stream, entry: Placed) -> None:
        """Deliver a message in its place; a mark has no message."""
        stream.since = self.env.now
        cursor = _Cursor(stream.next + 1, stream.label, entry.stamps)
        self.env.save(f"cursor.{stream.group}", _encoder.encode(cursor))
        if entry.payload is None:
            return
        stamp = Stamp(stream.next, stream.group)
        self.env.deliver(Delivered(entry.payload, (stream.group,), entry.publisher, stamp))

    def _enter(self, stream: Stream, begin: Begin) -> None:
        """A stream enters an epoch, for the first time perhaps, or is over."""
        if stream.stop is not None and stream.next == stream.stop - 1:
            self._part(stream, stream.next)
            return
        stream.since = self.env.now
        self._save_frame(stream)
        cursor = _Cursor(stream.next + 1, stream.label, ())
        self.env.save(f"cursor.{stream.group}", _encoder.encode(cursor))
        if begin.label == stream.first and not stream.founder:
            self.env.deliver(Joined(stream.group, stamp=Stamp(stream.next, stream.group)))

    def _part(self, stream: Stream, last: int) -> None:
        """This node is in a group no longer."""
        group = stream.group
        stream.next = last + 1
        self._ended[group] = end = last + 1
        self.env.save(f"ended.{group}", end.to_bytes(9, "little", signed=True))
        self.env.save(f"frame.{group}", None)
        self.env.save(f"cursor.{group}", None)
        self._ordering.remove(group)
        if group in self._from:
            self.env.send(self._from[group], Got(group, end, end))
        if stream.label or stream.founder:
            self.env.deliver(Left(group, stamp=Stamp(last, group)))

    def _save_frame(self, stream: Stream) -> None:
        frame = _Frame(
            stream.first,
            stream.founder,
            stream.out,
            stream.stop,
            tuple(stream.atoms.items()),
            tuple(sorted(stream.relevant)),
        )
        self.env.save(f"frame.{stream.group}", _encoder.encode(frame))

    def _save_cursor(self, stream: Stream) -> None:
        cursor = _Cursor(stream.next, stream.label, stream.last)
        self.env.save(f"cursor.{stream.group}", _encoder.encode(cursor))

    # Explanations

    def explain(self) -> Explanation:
        """For which number, which entry or which answer each message waits."""
        ordering = self._ordering
        waits: list[Wait] = []
        for group, stream in ordering.streams.items():
            since = stream.since
            head = stream.head
            from_ = (self._from[group],) if group in self._from else ()
            if isinstance(head, Placed):
                missing = ordering.missing(stream, head)
                if missing is not None:
                    atom, number = missing
                    groups = ", ".join(map(str, stream.atoms.get(atom, ())))
                    what = f"number {number} of atom {atom}, which orders groups {groups}"
                    place = Stamp(stream.next, group)
                    subject = f"message {stream.next} of group {group}"
                    waits.append(Wait(subject, what, since, head.payload, None, (group,), place, from_))
            elif isinstance(head, Begin):
                if ordering.horizon is not None and head.label >= ordering.horizon:
                    waits.append(
                        Wait(
                            f"epoch {head.label} of group {group}",
                            "an answer of the store",
                            since,
                            on=self._store,
                        )
                    )
                elif blockers := ordering.blockers(stream, head):
                    names = ", ".join(str(one.group) for one in blockers)
                    what = f"the rest of the epoch before, in groups {names}"
                    waits.append(Wait(f"epoch {head.label} of group {group}", what, since))
            elif stream.came:
                what = f"entry {stream.next} of its log"
                waits.append(Wait(f"{len(stream.came)} entries of group {group}", what, since, on=from_))
        for ask, since in self._asked.values():
            subject = "a request" if ask.group is not None else "this node"
            waits.append(Wait(subject, "an answer of the store", since, on=self._store))
        state: dict[str, str | int] = {
            "role": "subscriber",
            "groups": ", ".join(f"{group} up to {one.next}" for group, one in ordering.streams.items())
            or "none",
        }
        behind = "" if self._is_settled else "an answer of the store"
        return Explanation(state, tuple(waits), behind)
