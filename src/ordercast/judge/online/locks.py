"""Locks: at the end of a complete run, no shard holds locks for a transaction any more.

Each replica that is up says from where to where its shard held locks. One that recovers without its state,
or takes over a state, begins anew: its locks are those of the state.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ordercast.core import GroupId, MessageId, NodeId, format_ns, message_name
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.lock_spans import LockSpans
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.population import Population
from ordercast.trace import LOST, RESTORED, Event, Kind


class Lock(NamedTuple):
    """A replica says that its shard holds locks for a transaction."""

    node: NodeId
    group: GroupId
    message: MessageId
    since: Event


class LocksHeld:
    """The locks that shards hold, as their replicas that are up say."""

    def __init__(self) -> None:
        self._population = Population()
        self._spans: dict[NodeId, dict[GroupId, LockSpans]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Locks, and what makes a replica begin anew."""
        return {
            **dict.fromkeys((Kind.LOCKED, Kind.RELEASED), self._on_lock),
            Kind.CHECKPOINT: self._on_checkpoint,
            Kind.CRASH: self._population.on_crash,
            Kind.RECOVER: self._on_recover,
        }

    def _on_lock(self, event: Event) -> None:
        mine = self._spans.setdefault(event.node, {})
        for group in event.groups or ():
            mine.setdefault(group, LockSpans()).handlers()[event.kind](event)

    def _on_checkpoint(self, event: Event) -> None:
        if event.label == RESTORED:
            for group in event.groups or ():
                self._spans.get(event.node, {}).pop(group, None)

    def _on_recover(self, event: Event) -> None:
        self._population.on_recover(event)
        if event.label == LOST:
            self._spans.pop(event.node, None)

    def held(self) -> Iterator[Lock]:
        """What was locked and never released."""
        for node, groups in self._spans.items():
            for group, spans in groups.items() if node not in self._population.down else ():
                for message in spans.messages():
                    since = spans.open_since(message)
                    if since is not None:
                        yield Lock(node, group, message, since)


def locks_left(events: Iterable[Event]) -> int:
    """How many transactions hold locks at the end of a run, each counted once in each shard."""
    found = LocksHeld()
    handlers = found.handlers()
    for event in events:
        if event.kind in handlers:
            handlers[event.kind](event)
    return len({(lock.group, lock.message) for lock in found.held()})


class LocksLeft(Oracle):
    """Nothing is locked at the end."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._locks = LocksHeld()

    def handlers(self) -> dict[Kind, Handler]:
        """Those of the locks."""
        return self._locks.handlers()

    def finish(self) -> None:
        """Look for what was never released."""
        for node, group, message, since in self._locks.held():
            self.report(
                (node,),
                (message,),
                (since.time_ns,),
                f"node {node} holds locks of shard {group} for {message_name(message)} since"
                f" {format_ns(since.time_ns)}; they were never released",
                at_end=True,
            )
