"""The judge that takes a run event by event: it shows each row to the oracles that want it.

Rows pass three stations. Oracles that are not gated see everything. Integrity comes next, for every run,
and is the gate: what it refuses (a second delivery, a made-up group) is its own finding and goes no
further. The oracles behind it each keep to their property, so that one fault in a run raises one
alarm.

A delivery must come after its submission. A simulated run is in order of time, and its rows are taken
as they come. In a run of several machines the order of the stream is not to be trusted, and a delivery
waits before the gate for its submission (`holdback.py`); so does one of any run that is judged as a
whole, where the order of rows of different hosts does not matter.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeAlias

from ordercast.core import MessageId, RemoteError
from ordercast.judge.finding import Holes, Violation, in_order
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.holdback import Holdback
from ordercast.judge.online.holes import holes
from ordercast.judge.online.integrity import Integrity
from ordercast.judge.online.ledger import Ledger
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, Event, Kind, RunDescription

MakeOracle: TypeAlias = Callable[[str, Case], Oracle]
"""Makes the oracle of a property, which is handed the property's name, for a case."""


class OnlineJudge:
    """All oracles of one run, fed event by event."""

    def __init__(self, description: RunDescription, oracles: Iterable[tuple[str, MakeOracle]]) -> None:
        """The properties to judge, by name, in the order in which their oracles see an event."""
        _validate(description)
        self._description = description
        self._case = case = Case(description)
        for name, make in oracles:
            case.oracles.append(make(name, case))
        self._account: Ledger | None = case.ledger if description.counts_holes else None
        # The gate stands even where integrity is not promised; then nobody hears of its findings.
        self._gate = case.find(Integrity) or Integrity("", case)
        self._cursor = case.cursor
        self._finished = False
        self._holdback: Holdback | None = None
        if description.source != "simulator":
            self._holdback = self._hold_back(None)
        self._free: dict[Kind, list[Handler]] = {}
        self._through: dict[Kind, Handler] = {}
        self._lay_out()
        self._dispatch: dict[Kind, tuple[Handler, ...]] = {
            kind: (*free, self._through[kind]) if kind in self._through else tuple(free)
            for kind, free in self._free.items()
        }

    def _lay_out(self) -> None:
        """For each kind of row, who sees it before the gate and who behind."""
        gate, oracles = self._gate, self._case.oracles
        tables = [(oracle.gated, oracle.handlers()) for oracle in oracles if oracle is not gate]
        tables += [(True, table) for table in self._case.accounts()]
        for kind in Kind:
            self._free[kind] = [table[kind] for gated, table in tables if not gated and kind in table]
            if kind in gate.admits:
                behind = [table[kind] for gated, table in tables if gated and kind in table]
                self._through[kind] = _through_the_gate(gate.admits[kind], behind)

    def observe(self, event: Event) -> None:
        """The next event of the run."""
        self.observe_all((event,))

    def observe_all(self, events: Iterable[Event]) -> None:
        """The next events of the run; the fast way for many."""
        if self._holdback is not None:
            self._observe_patiently(events, self._holdback)
            return
        cursor, find = self._cursor, self._dispatch.get
        for step, event in enumerate(events, cursor.step + 1):
            cursor.step = step
            for handler in find(event.kind, ()):
                handler(event)

    def observe_whole(self, events: Sequence[Event]) -> None:
        """All events of the run at once, in an order that is to be trusted only for each host."""
        submitted: set[MessageId | None] = set()
        early: set[MessageId | None] = set()
        for event in events:
            kind = event.kind
            if kind is Kind.SUBMIT:
                submitted.add(event.message)
            elif kind in CARRYING and event.message not in submitted:
                early.add(event.message)
        self._holdback = None if early.isdisjoint(submitted) else self._hold_back(submitted)
        self.observe_all(events)

    def _observe_patiently(self, events: Iterable[Event], holdback: Holdback) -> None:
        """The same, where what must pass the gate may have to wait for its turn."""
        cursor = self._cursor
        for step, event in enumerate(events, cursor.step + 1):
            cursor.step = step
            for handler in self._free[event.kind]:
                handler(event)
            if event.kind in self._through:
                try:
                    holdback.observe(step, event)
                finally:
                    cursor.step = step

    def _hold_back(self, expected: Set[MessageId | None] | None) -> Holdback:
        def pass_on(step: int, event: Event) -> None:
            self._cursor.step = step
            self._through[event.kind](event)

        def foretell(step: int, event: Event) -> None:
            self._cursor.step = step
            self._gate.foretell(event)

        return Holdback(self._description, pass_on, foretell, expected)

    def finish(self) -> None:
        """The run is over."""
        if not self._finished:
            self._finished = True
            if self._holdback is not None:
                self._holdback.finish()
            for oracle in self._case.oracles:
                oracle.finish()

    @property
    def violations(self) -> list[Violation]:
        """All findings so far, by event, then by property; those of the end of the run last."""
        return in_order(violation for oracle in self._case.oracles for violation in oracle.violations)

    @property
    def suppressed(self) -> dict[str, int]:
        """How many more findings each property had than were kept."""
        return {oracle.name: oracle.suppressed for oracle in self._case.oracles if oracle.suppressed}

    def holes(self) -> Holes | None:
        """What is missing where so far; None unless the run counts holes (`RunDescription`)."""
        return None if self._account is None else holes(self._account)


def _through_the_gate(admit: Callable[[Event], Event | None], behind: list[Handler]) -> Handler:
    """What shows a row to integrity and, as far as that lets it pass, to those behind."""

    def handle(event: Event) -> None:
        admitted = admit(event)
        if admitted is not None:
            for handler in behind:
                handler(admitted)

    return handle


def _validate(description: RunDescription) -> None:
    """Refuse a description that contradicts itself."""
    known = {node.id for node in description.nodes}
    for group, members in description.groups.items():
        strangers = [node for node in members if node not in known]
        if strangers:
            raise RemoteError(
                f"run {description.run}: group {group} has receiver {strangers[0]},"
                " which is not a node of the run"
            )
