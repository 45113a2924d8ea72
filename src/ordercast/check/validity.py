"""Validity: what a correct sender submits is delivered. Judged at the end of a complete run.

If a sender submits m and does not crash afterwards, every correct receiver of m's groups delivers m
(Defago et al., section 2, with agreement folded in), or is notified of its drop where gaps are
notified. A message that nobody delivered has no known slot, so no notification can be tied to it;
where a receiver was notified of a slot that nobody saw the message of, that may have been this one,
and the receiver is not accused.

A message on which the receivers disagree is `agreement`'s finding, and is not told twice.
"""

from ordercast.check.agreement import Agreement
from ordercast.check.ledger import Ledger
from ordercast.check.oracle import Handler, Oracle
from ordercast.check.violation import message_at, nodes_named
from ordercast.core import Gaps, GroupId, MessageId, NodeId
from ordercast.trace import Kind, RunDescription


class Validity(Oracle):
    """Every correct receiver delivers what a correct sender submits."""

    name = "validity"
    statement = "what a sender submits and does not crash after, every correct receiver delivers"

    def __init__(self, description: RunDescription, agreement: Agreement | None = None) -> None:
        """Whoever passes `agreement` shows it each event, and finishes it first."""
        super().__init__(description)
        self._agreement = agreement
        self._ledger = Ledger(description) if agreement is None else agreement.ledger
        self._notified = description.guarantees.gaps is Gaps.NOTIFIED
        self._unexplained: set[tuple[NodeId, GroupId]] = set()

    def handlers(self) -> dict[Kind, Handler]:
        """Whatever the account needs, unless agreement keeps it."""
        return self._ledger.handlers() if self._agreement is None else {}

    def finish(self) -> None:
        """Look for each submission at each receiver."""
        if not self.description.complete:
            return
        self._unexplained = self._ledger.unexplained()
        told = self._agreement.flagged if self._agreement is not None else set()
        population = self._ledger.population
        for message, submission in self._ledger.submissions.items():
            steady = population.crashes.get(submission.sender, 0) == submission.crashes
            if message in told or not steady:
                continue
            missing = [
                node
                for node in self._ledger.receivers(submission.groups)
                if population.correct(node) and not self._settled(node, message)
            ]
            if missing:
                self.report(
                    (submission.sender, *missing),
                    (message,),
                    (submission.time_ns,),
                    f"node {submission.sender} submitted"
                    f" {message_at(message, submission.time_ns)} and did not crash afterwards;"
                    f" {nodes_named(missing)} never delivered it",
                    at_end=True,
                )

    def _settled(self, node: NodeId, message: MessageId) -> bool:
        ledger = self._ledger
        if message in ledger.delivered[node]:
            return True
        if not self._notified:
            return False
        if message in ledger.slots:
            return ledger.notified(node, message)
        groups = ledger.submissions[message].groups
        return any((node, group) in self._unexplained for group in groups)
