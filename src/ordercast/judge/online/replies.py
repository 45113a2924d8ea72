"""Answered: a client of a service is told what became of each operation. Judged at the end of a complete run.

A client that does not crash after it invoked an operation, or a read, gets an answer, or is told that the
outcome is unknown.
"""

from ordercast.core import MessageId
from ordercast.judge.finding import message_at
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.population import Population
from ordercast.trace import ANSWERING, RETURNING, Event, Kind


class Replies(Oracle):
    """Every operation of a client that stays has an outcome."""

    reads = True

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._population = Population()
        self._open: dict[MessageId, tuple[Event, int]] = {}
        """The operations without an outcome, each with how often its client had crashed before."""
        self._settled: set[MessageId] = set()

    def handlers(self) -> dict[Kind, Handler]:
        """Invocations, answers, unknown outcomes and crashes."""
        return {
            Kind.SUBMIT: self._on_submit,
            **dict.fromkeys((*ANSWERING, *RETURNING), self._on_outcome),
            Kind.CRASH: self._population.on_crash,
        }

    def _on_submit(self, event: Event) -> None:
        if event.message is not None and event.message not in self._settled:
            self._open[event.message] = (event, self._population.crashes.get(event.node, 0))

    def _on_outcome(self, event: Event) -> None:
        if event.message is not None:
            self._settled.add(event.message)
            self._open.pop(event.message, None)

    def finish(self) -> None:
        """Look for operations without an outcome."""
        for message, (event, crashes) in self._open.items():
            if self._population.crashes.get(event.node, 0) == crashes:
                self.report(
                    (event.node,),
                    (message,),
                    (event.time_ns,),
                    f"node {event.node} called {message_at(message, event.time_ns)} and did not crash"
                    " afterwards; it never got an answer, and was not told that the outcome is unknown",
                    at_end=True,
                )
