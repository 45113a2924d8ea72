"""All or nothing: what one shard of a transaction delivers, all its shards deliver, and they end it alike.

Judged at the end of a complete run. Within a shard, `agreement` says what its replicas owe.
"""

from ordercast.core import GroupId, MessageId, format_ns, message_name
from ordercast.judge.finding import listed, message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.lock_spans import LockSpans
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import COMMITTED, ORDERED, Event, Kind


class AllOrNothing(Oracle):
    """No shard does alone what belongs to several."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._members = case.description.groups
        self._submitted: dict[MessageId, Event] = {}
        self._delivered: dict[MessageId, dict[GroupId, Event]] = {}
        self._ends = {group: LockSpans() for group in case.description.groups}

    def handlers(self) -> dict[Kind, Handler]:
        """Transactions over several shards, and how each shard ended them."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.RELEASED: self._on_released,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None and len(event.groups or ()) > 1:
            self._submitted[event.message] = event

    def _on_deliver(self, event: Event) -> None:
        if event.message in self._submitted:
            found = self._delivered.setdefault(event.message, {})
            for group in event.groups or ():
                if event.node in self._members[group]:
                    found.setdefault(group, event)

    def _on_released(self, event: Event) -> None:
        for group in event.groups or ():
            if group in self._ends:
                self._ends[group].on_released(event)

    def finish(self) -> None:
        """Compare the shards of each transaction."""
        for message, found in self._delivered.items():
            missing = [group for group in self._submitted[message].groups or () if group not in found]
            if missing:
                group, row = next(iter(found.items()))
                text = (
                    f"shards {listed(missing)} never delivered it"
                    if missing[1:]
                    else f"shard {missing[0]} never did"
                )
                self._tell(
                    message, row, f"shard {group} delivered {message_at(message, row.time_ns)}; {text}"
                )
        for message in dict.fromkeys(m for ends in self._ends.values() for m in ends.ended()):
            if message in self._submitted:
                self._judge_ends(message)

    def _judge_ends(self, message: MessageId) -> None:
        """Whether all shards ended a transaction alike."""
        groups = self._submitted[message].groups or ()
        ends = {group: self._ends[group].last(message) for group in groups}
        done = {group: row for group, row in ends.items() if row is not None and row.label == COMMITTED}
        others = [group for group in groups if group not in done]
        if done and others:
            group, row = next(iter(done.items()))
            other = ends[others[0]]
            told = "never ended it" if other is None else f"aborted it at {format_ns(other.time_ns)}"
            text = f"shard {group} committed {message_name(message)} at {format_ns(row.time_ns)}"
            self._tell(message, row, f"{text}; shard {others[0]} {told}")

    def _tell(self, message: MessageId, row: Event, text: str) -> None:
        self.report((row.node,), (message,), (row.time_ns,), text, at_end=True)
