"""Validity: messages of a correct sender are delivered. Judged at the end of a complete run.

If a sender submits m and does not crash afterwards, every correct receiver of m's groups delivers m
(Defago et al., section 2, with agreement folded in), or is notified of its drop where gaps are
notified. A message of which its sender was told that it may be lost is not judged. Where views are promised,
the same receivers owe the message as for agreement.

A message that nobody delivered has no known slot, so no notification can be matched to it. If a receiver was
notified of a slot whose message nobody delivered, that message may have been one of these. So each such
notification excuses one message, the earliest submitted first. If the run has bundles (several messages with
one number), each notification excuses all messages that may have been one bundle: those of one sender with
consecutive numbers, to the same groups.

A message on which the receivers disagree is a finding of `agreement`, and is not reported again.
"""

from ordercast.core import Gaps, Groups, MessageId, NodeId
from ordercast.judge.finding import message_at, nodes_named
from ordercast.judge.online.agreement import Agreement
from ordercast.judge.online.case import Case
from ordercast.judge.online.oracle import Oracle


class Validity(Oracle):
    """Every correct receiver delivers what a correct sender submits."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._agreement = case.find(Agreement)
        self._ledger = case.ledger
        self._notified = case.description.guarantees.gaps is Gaps.NOTIFIED

    def finish(self) -> None:
        """Look for each submission at each receiver."""
        ledger = self._ledger
        told = self._agreement.flagged if self._agreement is not None else set()
        lacking: dict[MessageId, list[NodeId]] = {}
        for message, submission in ledger.submissions.items():
            steady = ledger.population.crashes.get(submission.sender, 0) == submission.crashes
            if message not in told and message not in ledger.returned and steady:
                missing = self._missing(message, submission.groups)
                if missing:
                    lacking[message] = missing
        if self._notified:
            lacking = self._unexcused(lacking)
        for message, missing in lacking.items():
            submission = ledger.submissions[message]
            self.report(
                (submission.sender, *missing),
                (message,),
                (submission.time_ns,),
                f"node {submission.sender} submitted"
                f" {message_at(message, submission.time_ns)} and did not crash afterwards;"
                f" {nodes_named(missing)} never delivered it",
                at_end=True,
            )

    def _missing(self, message: MessageId, groups: Groups) -> list[NodeId]:
        """The receivers that owe a message, and neither delivered it nor got a notification for it."""
        ledger = self._ledger
        correct, receivers = ledger.population.correct, ledger.receivers(groups)
        missing = [n for n in receivers if message not in ledger.delivered[n] and correct(n)]
        if not missing:
            return missing
        owing = ledger.owing(message, [n for n in receivers if message in ledger.delivered[n]])
        return [
            node
            for node in missing
            if node in owing and not (self._notified and ledger.notified(node, message))
        ]

    def _unexcused(self, lacking: dict[MessageId, list[NodeId]]) -> dict[MessageId, list[NodeId]]:
        """Leave out messages that a notification without a known message may have been for."""
        ledger = self._ledger
        excuses = ledger.unexplained()
        if not excuses:
            return lacking
        bundled = any(len(messages) > 1 for messages in ledger.carried.values())
        bundles = self._bundles(bundled)
        excused: set[tuple[NodeId, int]] = set()
        accused: set[tuple[NodeId, int]] = set()
        unknown = [message for message in lacking if message not in ledger.slots]
        # Those that fewer notifications can excuse come first, so that the others take what is left.
        for message in sorted(unknown, key=lambda m: len(ledger.submissions[m].groups)):
            groups = ledger.submissions[message].groups
            for node in lacking[message]:
                claim = (node, bundles[message])
                if claim in excused or claim in accused:
                    continue
                group = max(groups, key=lambda g: excuses[node, g])
                if excuses[node, group] > 0:
                    excuses[node, group] -= 1
                    excused.add(claim)
                else:
                    accused.add(claim)
        left = {
            message: [
                node for node in missing if message in ledger.slots or (node, bundles[message]) not in excused
            ]
            for message, missing in lacking.items()
        }
        return {message: missing for message, missing in left.items() if missing}

    def _bundles(self, bundled: bool) -> dict[MessageId, int]:
        """For each message without a slot, its possible bundle: a bundle of its own if the run has none."""
        ledger = self._ledger
        bundles: dict[MessageId, int] = {}
        last: dict[NodeId, tuple[MessageId, Groups, int]] = {}
        for place, (message, submission) in enumerate(ledger.submissions.items()):
            before, groups, bundle = last.get(submission.sender, (-1, (), -1))
            follows = before + 1 == message and groups == submission.groups
            if not bundled or not follows or message in ledger.slots:
                bundle = place
            bundles[message] = bundle
            own = () if message in ledger.slots else submission.groups
            last[submission.sender] = (message, own, bundle)
        return bundles
