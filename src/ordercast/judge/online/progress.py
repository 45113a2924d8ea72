"""Progress: while enough of a cluster is up and connected, its receivers are not silent for too long.

The description says in which stretches of time that is so, for which senders and receivers, and how long a
silence may last. If one of these senders submits a message to a group, each of these receivers in that group
delivers something of the group, or is notified of a drop, within that time. It need not be that message: a
notification does not say which message it stands for. A replica that takes over a state hears something, too.
So does one on a branch that is discarded later. A receiver that joins later is judged when it has been in the
group for as long as a silence may last.
"""

from bisect import bisect_left

from ordercast.core import GroupId, Nanos, NodeId, format_ns
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, RESTORED, SETTLING, UNDOING, Event, Kind, Stretch


class Progress(Oracle):
    """No receiver is silent for too long."""

    lasting = False

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._members = case.members
        self._submissions: list[Event] = []
        self._heard: dict[tuple[NodeId, GroupId], list[Nanos]] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, deliveries and notifications."""
        heard: dict[Kind, Handler] = dict.fromkeys((*CARRYING, *SETTLING), self._on_heard)
        heard |= dict.fromkeys(UNDOING, self._on_undone)
        return {**heard, Kind.CHECKPOINT: self._on_checkpoint, Kind.SUBMIT: self._submissions.append}

    def _on_checkpoint(self, event: Event) -> None:
        if event.label == RESTORED:
            self._on_heard(event)

    def _on_undone(self, event: Event) -> None:
        """A void row counts if it was a delivery, or a state that was taken over."""
        if event.message is not None or event.label == RESTORED:
            self._on_heard(event)

    def _on_heard(self, event: Event) -> None:
        for group in event.groups or ():
            self._heard.setdefault((event.node, group), []).append(event.time_ns)

    def finish(self) -> None:
        """Look for the first silence of each receiver in each stretch."""
        for stretch in self.description.stretches:
            silent: set[tuple[NodeId, GroupId]] = set()
            for event in self._submissions:
                if event.node in stretch.senders and stretch.counts(event.time_ns):
                    self._judge(stretch, event, silent)

    def _judge(self, stretch: Stretch, event: Event, silent: set[tuple[NodeId, GroupId]]) -> None:
        for group in event.groups or ():
            for node in self._members.of(group):
                if (
                    node in stretch.receivers
                    and (node, group) not in silent
                    and self._settled(stretch, event, node, group)
                ):
                    heard = self._heard.get((node, group), [])
                    place = bisect_left(heard, event.time_ns)
                    if place == len(heard) or heard[place] > event.time_ns + stretch.silence_ns:
                        silent.add((node, group))
                        self._tell(stretch, event, node, group, heard[place:])

    def _settled(self, stretch: Stretch, event: Event, node: NodeId, group: GroupId) -> bool:
        """Whether a receiver had been in a group for a while before a submission, and stayed in it."""
        if not self._members.changing:
            return True
        begin, end = event.time_ns - stretch.silence_ns, event.time_ns + stretch.silence_ns
        return self._members.was_in(node, group, begin, end)

    def _tell(self, stretch: Stretch, event: Event, node: NodeId, group: GroupId, later: list[Nanos]) -> None:
        assert event.message is not None
        until = f"until {format_ns(later[0])}" if later else "any more"
        self.report(
            (event.node, node),
            (event.message,),
            (event.time_ns, event.time_ns + stretch.silence_ns),
            f"node {event.node} submitted {message_at(event.message, event.time_ns)} to group {group};"
            f" node {node} was connected with it and with enough others, but heard nothing of the group"
            f" {until}; the longest silence promised is {format_ns(stretch.silence_ns)}",
            at_end=True,
        )
