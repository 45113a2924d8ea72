"""The messages of one view: numbered by their senders, kept until all members have them, delivered in order.

Each member numbers its messages in a view from 0, and sends each to all others. A member keeps every
message, its own and those of others, until all members have received it (*stable*). So whoever misses one
finds it at its sender, or at any other member that has it when the sender is gone. Heartbeats carry how
many messages of each member have been received without a gap; from them a member sees what it misses, and
what is stable.

While a view changes, messages are received but not delivered. What is delivered then is decided by the next
view, whose cut has a count for each sender.
"""

from ordercast.components.membership.messages import Data
from ordercast.components.membership.options import ViewOptions
from ordercast.components.membership.record import ViewRecord
from ordercast.core import Delivered, Env, GroupId, Nanos, NodeId, RemoteError


class Traffic:
    """What this member has sent, received, delivered and kept in one view."""

    __slots__ = (
        "_acked",
        "_bytes",
        "_env",
        "_group",
        "_index",
        "_kept",
        "_me",
        "_options",
        "_others",
        "_since_beat",
        "_stable",
        "_stopped_with",
        "delivered",
        "known",
        "received",
        "record",
        "since",
    )

    def __init__(self, env: Env, group: GroupId, record: ViewRecord, options: ViewOptions) -> None:
        count = len(record.seats)
        self._env = env
        self._group = group
        self._options = options
        self._index = {seat.node: index for index, seat in enumerate(record.seats)}
        self._me = self._index[env.me]
        self._others = tuple(node for node in record.members if node != env.me)
        self._kept: list[dict[int, bytes]] = [{} for _ in range(count)]
        self._acked = [(0,) * count] * count
        """For each member, how many messages of each member it has said that it has."""
        self._stable = [0] * count
        self._bytes = 0
        self._since_beat = 0
        self._stopped_with: tuple[int, ...] | None = None
        """How many messages of each member had come when a change of the view began."""
        self.record = record
        self.received = [0] * count
        """How many messages of each member have come without a gap; of this one, how many it has sent."""
        self.delivered = [0] * count
        self.known = [0] * count
        """How many messages of each member are known to exist."""
        self.since: Nanos = env.now

    # Sending

    @property
    def full(self) -> bool:
        """Whether as many messages of this member are unacknowledged as may be."""
        sent = self.received[self._me] - self._stable[self._me]
        return sent >= self._options.window or self._bytes >= self._options.window_bytes

    def send(self, payload: bytes) -> None:
        """Send a message to all members, and deliver it here at once."""
        me, place = self._me, self.received[self._me]
        self._kept[me][place] = payload
        self._bytes += len(payload)
        self.received[me] = self.known[me] = self.delivered[me] = place + 1
        self._env.multicast(self._others, Data(self.record.number, self._env.me, place, payload))
        self._hand_over(me, payload)
        if not self._others:
            self.settle()

    def unacknowledged(self, cut: tuple[int, ...] | None = None) -> list[bytes]:
        """The messages of this member beyond a cut, or those that some member may not have, oldest first."""
        kept, known = self._kept[self._me], self._stable[self._me]
        first = known if cut is None else max(known, cut[self._me])
        return [kept[place] for place in range(first, self.received[self._me])]

    def laggards(self) -> tuple[NodeId, ...]:
        """The members that have not acknowledged the oldest unacknowledged message of this one."""
        oldest = self._stable[self._me]
        return tuple(
            n for n, i in self._index.items() if i != self._me and self._acked[i][self._me] <= oldest
        )

    # Receiving

    def check(self, source: NodeId, message: Data) -> None:
        """Raise `RemoteError` for a message that no member can have sent."""
        index = self._index.get(message.sender)
        if index is None:
            raise RemoteError(f"node {source} sent a message of node {message.sender}, which has no seat")
        ahead = message.place - self.received[index]
        if ahead >= self._options.window or (index == self._me and ahead >= 0):
            raise RemoteError(
                f"node {source} sent message {message.place} of node {message.sender},"
                f" of which only {self.received[index]} came before"
            )

    def take(self, message: Data) -> bool:
        """Keep a message if it is new; return whether there is a gap before it."""
        index, kept = self._index[message.sender], self._kept[self._index[message.sender]]
        if message.place < self.received[index] or message.place in kept:
            return False
        kept[message.place] = message.payload
        self.known[index] = max(self.known[index], message.place + 1)
        while self.received[index] in kept:
            self.received[index] += 1
            self._since_beat += 1
        return self.received[index] <= message.place

    def deliver(self, sender: NodeId) -> None:
        """Deliver what has come of a member without a gap."""
        index = self._index[sender]
        while self.delivered[index] < self.received[index]:
            self._deliver_next(index)

    def deliver_rest(self, cut: tuple[int, ...]) -> None:
        """Deliver what is left up to the cut."""
        for index, count in enumerate(cut):
            while self.delivered[index] < count:
                self._deliver_next(index)

    def reaches(self, cut: tuple[int, ...]) -> bool:
        """Whether everything up to a cut has come, and nothing beyond it was delivered."""
        return all(
            delivered <= count <= received
            for delivered, count, received in zip(self.delivered, cut, self.received, strict=True)
        )

    def _deliver_next(self, index: int) -> None:
        place = self.delivered[index]
        self.delivered[index] = place + 1
        self._hand_over(index, self._kept[index][place])

    def _hand_over(self, index: int, payload: bytes) -> None:
        record = self.record
        self._env.deliver(Delivered(payload, (self._group,), record.seats[index].node, None, record.number))

    # Acknowledgements

    @property
    def beat_due(self) -> bool:
        """Whether so much came since the last heartbeat that senders may wait for the next one."""
        return self._since_beat >= max(1, self._options.window // 4)

    def stop(self) -> None:
        """A change of the view begins. What comes from now on may be beyond its cut. It is not acknowledged,
        or a sender that is left out would forget a message that nobody delivers."""
        self._stopped_with = tuple(self.received)

    def counts(self) -> tuple[int, ...]:
        """What a heartbeat says of the messages received."""
        self._since_beat = 0
        return self._stopped_with or tuple(self.received)

    def check_counts(self, source: NodeId, counts: tuple[int, ...]) -> None:
        """Raise `RemoteError` if a member claims to have received what was not sent."""
        if counts == self._acked[self._index.get(source, self._me)]:
            return
        if len(counts) != len(self.received):
            raise RemoteError(f"node {source} counts {len(counts)} members of {len(self.received)}")
        window = self._options.window
        for index, count in enumerate(counts):
            if count > self.received[index] + (0 if index == self._me else window):
                raise RemoteError(
                    f"node {source} has {count} messages of node {self.record.seats[index].node},"
                    f" of which only {self.received[index]} are known"
                )

    def acknowledge(self, source: NodeId, counts: tuple[int, ...]) -> bool:
        """A member said what it has received; return whether this one misses something."""
        index = self._index.get(source)
        if index is None:
            return False
        if counts != self._acked[index]:
            self._acked[index] = tuple(map(max, self._acked[index], counts))
            self.known = list(map(max, self.known, counts))
        return self.misses()

    def misses(self) -> bool:
        """Whether a message that exists has not come."""
        return self.known != self.received

    def gaps(self, end: tuple[int, ...] | None = None) -> list[tuple[NodeId, int, int]]:
        """For each member of which something is missing: from which place, and up to which."""
        wanted = self.known if end is None else end
        return [
            (seat.node, received, self._gap_end(index, received, count))
            for index, (seat, received, count) in enumerate(
                zip(self.record.seats, self.received, wanted, strict=True)
            )
            if received < count
        ]

    def _gap_end(self, index: int, first: int, count: int) -> int:
        """Where the first gap in the messages of a member ends."""
        return min((place for place in self._kept[index] if place > first), default=count)

    def settle(self) -> None:
        """Forget what all members have."""
        self._acked[self._me] = tuple(self.received)
        for index, stable in enumerate(map(min, zip(*self._acked, strict=True))):
            for place in range(self._stable[index], min(stable, self.delivered[index])):
                payload = self._kept[index].pop(place)
                self._bytes -= len(payload) if index == self._me else 0
            self._stable[index] = max(self._stable[index], min(stable, self.delivered[index]))

    def answer(self, source: NodeId, sender: NodeId, first: int, end: int) -> None:
        """Send a member the messages that it misses, as many as one answer may have."""
        index, size = self._index.get(sender), 0
        if index is None:
            raise RemoteError(f"node {source} asks for messages of node {sender}, which has no seat")
        for place in range(first, min(end, self.received[index], first + self._options.window)):
            payload = self._kept[index].get(place)
            size += 0 if payload is None else len(payload)
            if payload is None or (place > first and size > self._options.chunk_bytes):
                return
            self._env.send(source, Data(self.record.number, sender, place, payload))
