"""What did not come in a run although it was submitted: whether anybody who lived was still owed it.

Nothing is owed to a receiver that is down at the end, or of what was submitted before it lost its state; and
what a sender submits and crashes after may be lost, unless it was delivered. A client that crashed hears
nothing of the calls of its earlier lives.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from ordercast.core import Consistency, Groups, MessageId, Nanos, NodeId, Plan
from ordercast.scenario.receipts import Receipts
from ordercast.trace import CARRYING, LOST, READ, SETTLING, Event, Kind


class Lives:
    """When nodes crashed and lost their state."""

    def __init__(self) -> None:
        self.down: set[NodeId] = set()
        self._crashed: dict[NodeId, Nanos] = {}
        self._lost: dict[NodeId, Nanos] = {}

    def note(self, event: Event) -> None:
        """A node went down, or came back."""
        if event.kind is Kind.CRASH:
            self.down.add(event.node)
            self._crashed[event.node] = event.time_ns
        elif event.kind is Kind.RECOVER:
            self.down.discard(event.node)
            if event.label == LOST:
                self._lost[event.node] = event.time_ns

    def crashed_since(self, node: NodeId, time_ns: Nanos) -> bool:
        """Whether a node has crashed at this time or later."""
        return self._crashed.get(node, -1) >= time_ns

    def is_owed(self, node: NodeId, time_ns: Nanos) -> bool:
        """Whether a receiver is owed what was submitted at this time."""
        return node not in self.down and self._lost.get(node, -1) < time_ns


def only_crashed_lack(plan: Plan, events: Iterable[Event]) -> bool:
    """Whether all that did not come was owed to nobody any more, because nodes have crashed."""
    receipts = Receipts(replicated=plan.guarantees.consistency is not Consistency.NONE)
    lives, submitted, delivered = Lives(), list[Event](), set[MessageId | None]()
    told: Counter[NodeId] = Counter()
    for event in events:
        receipts.note(event)
        lives.note(event)
        if event.kind is Kind.SUBMIT:
            submitted.append(event)
        elif event.kind in CARRYING:
            delivered.add(event.message)
        elif event.kind in SETTLING:
            told[event.node] += 1
    for event in submitted:
        for node in _owed(plan, event, lives, is_delivered=event.message in delivered):
            if not receipts.has(node, event.message):
                told[node] -= 1  # it may have been told of that one
                if told[node] < 0:
                    return False
    return True


def _owed(plan: Plan, event: Event, lives: Lives, *, is_delivered: bool) -> Iterator[NodeId]:
    """Who is owed a receipt of what was submitted."""
    lived = not lives.crashed_since(event.node, event.time_ns)
    if plan.service is not None and lived:
        yield event.node
    if event.label != READ and (lived or is_delivered):
        groups: Groups = event.groups or ()
        for node in sorted({node for group in groups for node in plan.groups[group]}):
            if lives.is_owed(node, event.time_ns):
                yield node
