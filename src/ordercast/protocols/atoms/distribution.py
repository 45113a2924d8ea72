"""Sends the log of a group to its subscribers: the third phase of the paper, after ingress and sequencing."""

from collections.abc import Iterable

from ordercast.core import Env, GroupId, Nanos, NodeId
from ordercast.protocols.atoms.group_log import GroupLog
from ordercast.protocols.atoms.messages import BATCH, Entries, Got, Where
from ordercast.protocols.atoms.records import Entry, Tenure

BYTES_MAX = 256 << 10
"""The most bytes of payloads in one message."""
AHEAD = 256
"""How far is sent ahead of what a subscriber has acknowledged."""


class Progress:
    """How far a subscriber has come."""

    __slots__ = ("attempts", "delivered", "due", "heard", "received", "sent", "stop")

    def __init__(self, start: int, stop: int | None, now: Nanos) -> None:
        self.delivered = start
        self.received = start
        self.sent = start
        self.stop = stop
        self.due: Nanos = 0
        self.attempts = 0
        self.heard: Nanos = now

    def end(self, last: int) -> int:
        """The position after the last that it gets, of those that there are."""
        return last if self.stop is None else min(last, self.stop)


class Distribution:
    """The subscribers of one group, as the distributor knows them."""

    __slots__ = ("_env", "_group", "_log", "_retry", "gone", "subscribers")

    def __init__(self, env: Env, group: GroupId, log: GroupLog, retry_ns: Nanos) -> None:
        self._env = env
        self._group = group
        self._log = log
        self._retry = retry_ns
        self.subscribers: dict[NodeId, Progress] = {}
        self.gone: set[NodeId] = set()
        """Former subscribers that have delivered their part."""

    def update(self, tenures: Iterable[Tenure]) -> None:
        """Take the subscribers of a plan; ask those that are new here how far they have come."""
        found: dict[NodeId, Progress] = {}
        asked: list[NodeId] = []
        for tenure in tenures:
            known = self.subscribers.get(tenure.node)
            if known is None or known.delivered < tenure.start:
                known = Progress(max(tenure.start, self._log.low), tenure.stop, self._env.now)
                known.due = self._env.now + self._retry
                asked.append(tenure.node)
            known.stop = tenure.stop
            if known.stop is None or known.delivered < known.stop:
                found[tenure.node] = known
        self.gone &= {tenure.node for tenure in tenures if tenure.stop is not None}
        self.subscribers = found
        if asked:
            self._env.multicast(asked, Where(self._group))

    def spread(self, position: int, entry: Entry) -> None:
        """Send a new entry to all who have been sent everything before it."""
        to: list[NodeId] = []
        for node, progress in self.subscribers.items():
            within = progress.stop is None or position < progress.stop
            if progress.sent == position and within and position - progress.received < AHEAD:
                if progress.received == progress.sent:
                    progress.due, progress.attempts = self._env.now + self._retry, 0
                progress.sent = position + 1
                to.append(node)
        if to:
            self._env.multicast(to, Entries(self._group, position, (entry,)))

    def on_got(self, source: NodeId, message: Got) -> None:
        """A subscriber says how far it has come."""
        progress = self.subscribers.get(source)
        if progress is None or message.received > self._log.next:
            return
        progress.heard = self._env.now
        if message.delivered < progress.delivered:
            return  # an older one
        if message.received > progress.received:
            progress.due, progress.attempts = self._env.now + self._retry, 0
        elif message.received < progress.received:
            progress.sent = message.received  # it has restarted: what it held is lost
        progress.received, progress.delivered = message.received, message.delivered
        progress.sent = max(progress.sent, progress.received)
        if progress.stop is not None and progress.delivered >= progress.stop:
            del self.subscribers[source]
            self.gone.add(source)
        elif progress.sent < progress.end(self._log.next):
            self._send_on(source, progress)

    def catch_up(self) -> None:
        """Entries that were missing have come: send them to those who wait for them."""
        for node, progress in self.subscribers.items():
            if progress.sent < progress.end(self._log.next):
                self._send_on(node, progress)

    def repeat(self) -> bool:
        """Send again what should have been acknowledged; whether anybody is behind."""
        behind = False
        for node, progress in self.subscribers.items():
            if progress.delivered >= progress.end(self._log.next):
                continue
            behind = True
            if progress.due <= self._env.now:
                progress.attempts += 1
                progress.due = self._env.now + (self._retry << min(progress.attempts, 3))
                progress.sent = progress.received
                if not self._send_on(node, progress):
                    self._env.send(node, Where(self._group))
        return behind

    def low(self) -> int:
        """All subscribers have delivered what is before this position."""
        return min((progress.delivered for progress in self.subscribers.values()), default=self._log.next)

    def silent(self, longer_than: Nanos) -> list[NodeId]:
        """Subscribers that are behind and have said nothing for a time."""
        now, end = self._env.now, self._log.next
        return [
            node
            for node, progress in self.subscribers.items()
            if progress.delivered < progress.end(end) and now - progress.heard > longer_than
        ]

    def _send_on(self, node: NodeId, progress: Progress) -> bool:
        """Send the next entries, as far ahead as allowed; False if there are none."""
        most = min(
            BATCH, progress.end(self._log.next) - progress.sent, progress.received + AHEAD - progress.sent
        )
        entries = self._log.run(progress.sent, most, BYTES_MAX) if most > 0 else ()
        if entries:
            self._env.send(node, Entries(self._group, progress.sent, entries))
            progress.sent += len(entries)
        return bool(entries)
