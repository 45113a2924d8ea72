"""Causal order.

Submission of m happens before submission of m' if the same host submitted m earlier, or the host of the
sender of m' delivered m before it submitted m', or by a chain of such steps (Lamport's relation, on what
applications see). If m happens before m', no receiver delivers m after m' (*causal order*, Hadzilacos and
Toueg). Happens-before is by host: a sender and a receiver on one machine are one application. A restart keeps
the host's history, because the application may have acted on it.

The submissions of a host are numbered, and a vector clock says how many of each host lie in the past. Each
submission keeps only what its host learnt since its previous submission. To join the past of a submission, a
clock also joins all earlier submissions of that host that it does not have yet. This covers transitivity
through hosts that a message was not addressed to, at the cost of one step for each submission and receiver.
"""

from bisect import bisect_left
from typing import NamedTuple

from ordercast.core import HostId, MessageId, Nanos, message_name
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, LOST, ORDERED, Event, Kind

Clock = dict[HostId, int]
"""How many submissions of each host lie in a past."""


class _Submission(NamedTuple):
    host: HostId
    number: int


class _Replay:
    """Replays a receiver's log up to `length`, to find the place at which each host's count was reached.

    It is only made when there is a finding, and it continues where it stopped.
    """

    __slots__ = ("clock", "length", "raised")

    def __init__(self) -> None:
        self.clock: Clock = {}
        self.length = 0
        self.raised: dict[HostId, tuple[list[int], list[int]]] = {}
        """For each host, the growing counts in the clock, and their places in the log."""


class Causal(Oracle):
    """No receiver delivers a message after one that its submission happened before."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._host = {node.id: node.host for node in case.description.nodes}
        hosts = sorted(set(self._host.values()))
        self._submissions: dict[MessageId, _Submission] = {}
        self._learnt: dict[HostId, list[Clock]] = {host: [] for host in hosts}
        self._known: dict[HostId, Clock] = {host: {} for host in hosts}
        self._heard: dict[HostId, Clock] = {host: {} for host in hosts}
        """For each host, the newest submission of each other one that it delivered since its own last."""
        self._past: dict[int, Clock] = {node.id: {} for node in case.description.nodes}
        self._log: dict[int, list[tuple[MessageId, Nanos]]] = {n.id: [] for n in case.description.nodes}
        self._replays: dict[int, _Replay] = {}

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, all deliveries, and recoveries without state, which make a new receiver."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys(CARRYING, self._on_out_of_order),
            **dict.fromkeys(ORDERED, self._on_deliver),
            Kind.RECOVER: self._on_recover,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is None:
            return
        host = self._host[event.node]
        known = self._known[host]
        learnt: Clock = {}
        for other, number in self._heard[host].items():
            self._join(known, other, number, learnt)
        self._heard[host].clear()
        self._learnt[host].append(learnt)
        number = known[host] = len(self._learnt[host])
        self._submissions[event.message] = _Submission(host, number)

    def _on_deliver(self, event: Event) -> None:
        submission = self._submissions.get(event.message)  # type: ignore[arg-type]
        if submission is None or event.message is None:
            return
        host, number = submission
        past = self._past[event.node]
        if past.get(host, 0) >= number:
            self._accuse(event, submission)
        else:
            self._join(past, host, number, None)
        self._log[event.node].append((event.message, event.time_ns))
        self._hear(event.node, submission)

    def _on_out_of_order(self, event: Event) -> None:
        """Such a delivery is not part of the order, but the application knows the message from now on."""
        submission = self._submissions.get(event.message)  # type: ignore[arg-type]
        if submission is not None:
            self._hear(event.node, submission)

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._past[event.node].clear()
            self._log[event.node].clear()
            self._replays.pop(event.node, None)

    def _hear(self, node: int, submission: _Submission) -> None:
        heard = self._heard[self._host[node]]
        if heard.get(submission.host, 0) < submission.number:
            heard[submission.host] = submission.number

    def _join(self, clock: Clock, host: HostId, number: int, learnt: Clock | None) -> None:
        """Add a submission and its past to a clock; note in `learnt` what was new."""
        start = clock.get(host, 0)
        if start >= number:
            return
        clock[host] = number
        if learnt is not None:
            learnt[host] = number
        for past in self._learnt[host][start:number]:
            for other, count in past.items():
                if clock.get(other, 0) < count:
                    clock[other] = count
                    if learnt is not None:
                        learnt[other] = count

    def _accuse(self, event: Event, submission: _Submission) -> None:
        """Report a late delivery, with the first delivery that had this message in its past."""
        if self.full:
            self.suppressed += 1
            return
        message: MessageId = event.message  # type: ignore[assignment]
        later, later_ns = self._log[event.node][self._reached(event.node, submission)]
        self.report(
            (event.node,),
            (message, later),
            (later_ns, event.time_ns),
            f"node {event.node} delivered {message_at(message, event.time_ns)} after"
            f" {message_at(later, later_ns)}; host {self._submissions[later].host} submitted"
            f" {message_name(later)} when it already knew {message_name(message)}"
            f" of host {submission.host}",
        )

    def _reached(self, node: int, submission: _Submission) -> int:
        """The first place in a receiver's log at which a submission lay in the past."""
        replay, log = self._replays.setdefault(node, _Replay()), self._log[node]
        for place in range(replay.length, len(log)):
            there, learnt = self._submissions[log[place][0]], Clock()
            self._join(replay.clock, there.host, there.number, learnt)
            for host, count in learnt.items():
                counts, places = replay.raised.setdefault(host, ([], []))
                counts.append(count)
                places.append(place)
        replay.length = len(log)
        counts, places = replay.raised[submission.host]
        return places[bisect_left(counts, submission.number)]
