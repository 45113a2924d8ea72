"""Agreement: if one receiver delivers a message, all do. Judged at the end of a complete run.

*All* (Defago et al., section 2): if a correct receiver delivers m, every correct receiver of m's
groups delivers m; *uniform*: if any receiver does, even one that crashed later.

*Message or notification* (drop detection of Hydra, section 4.1): every correct receiver of m's
groups delivers m or a notification for m's slot; and a slot of which one receiver is notified is
delivered or notified at every correct receiver of its group. Where views are promised, *every* means
the members of the view in which it was delivered that no later view leaves out (`ledger.py`). A
slot is (issuer, group, number), never a count of deliveries: a notification has no place in the order.

Hydra promises this to whole groups (Appendix B). When a sequencer is removed, a minority of receivers may
have got numbers above the last number that the quorum agreed on, and the others get neither messages nor
notifications for them. So a slot above the last number of a removed issuer binds nobody in its group, if only
a minority of the group got it, as message or as notification. A message to several groups is still owed in
the groups that settle their number of it. If a majority of one group delivered the message, it is owed in all
of its groups, as if there were no removal: every quorum contains a node of that majority, and reports cover
all groups.
"""

from ordercast.core import Agreement as Promise
from ordercast.core import Groups, MessageId, NodeId, format_ns
from ordercast.judge.finding import message_at, messages_named, nodes_named
from ordercast.judge.online.case import Case
from ordercast.judge.online.ledger import Slot
from ordercast.judge.online.oracle import Oracle


class Agreement(Oracle):
    """Every correct receiver delivers what one delivers, or is notified of its drop."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self.ledger = case.ledger
        self.flagged: set[MessageId] = set()
        """Messages on which receivers disagree; known after `finish`."""
        self._notified = case.description.guarantees.agreement is Promise.NOTIFIED
        self._uniform = case.description.guarantees.uniform

    def finish(self) -> None:
        """Compare what the receivers delivered."""
        for message in self.ledger.submissions:
            self._judge_message(message)
        if self._notified:
            for slot in self.ledger.dropped:
                self._judge_slot(slot)

    def _judge_message(self, message: MessageId) -> None:
        ledger = self.ledger
        groups = ledger.submissions[message].groups
        missing = [n for n in self._correct(groups) if message not in ledger.delivered[n]]
        if not missing:
            return
        receivers = ledger.receivers(groups)
        witnesses = [
            node
            for node in receivers
            if self._binds(node) and message in ledger.delivered[node] and ledger.survived(node, message)
        ]
        owing = ledger.owing(message, witnesses)
        missing = [node for node in missing if node in owing]
        if self._notified:
            missing = [
                node
                for node in missing
                if not ledger.notified(node, message) and not ledger.unbound(node, message)
            ]
        if not witnesses or not missing:
            return
        self.flagged.add(message)
        witness = witnesses[0]
        time_ns = ledger.delivered[witness][message]
        instead = " and got no notification of its drop" if self._notified else ", although up at the end"
        self.report(
            (witness, *missing),
            (message,),
            (time_ns,),
            f"node {witness} delivered {message_at(message, time_ns)};"
            f" {nodes_named(missing)} never delivered it{instead}",
            at_end=True,
        )

    def _judge_slot(self, slot: Slot) -> None:
        ledger = self.ledger
        holders = ledger.dropped[slot]
        carried = ledger.carried.get(slot, [])
        witnesses = [node for node in holders if self._binds(node)]
        if not witnesses or ledger.beyond(slot) or not self.flagged.isdisjoint(carried):
            return
        witness = witnesses[0]
        owing = ledger.owing_slot(slot, witnesses)
        missing = [
            node
            for node in self._correct((slot.group,))
            if node in owing and node not in holders and not any(m in ledger.delivered[node] for m in carried)
        ]
        if missing:
            what = f" ({messages_named(carried)})" if carried else ""
            self.report(
                (witness, *missing),
                carried,
                (holders[witness],),
                f"node {witness} was notified at {format_ns(holders[witness])} that number"
                f" {slot.number} of issuer {slot.issuer} in group {slot.group}{what} is dropped;"
                f" {nodes_named(missing)} got neither the message nor a notification",
                at_end=True,
            )

    def _binds(self, node: NodeId) -> bool:
        """Whether what this node delivered binds the others."""
        return self._uniform or self.ledger.population.correct(node)

    def _correct(self, groups: Groups) -> list[NodeId]:
        """The correct receivers of some groups."""
        correct = self.ledger.population.correct
        return [node for node in self.ledger.receivers(groups) if correct(node)]
