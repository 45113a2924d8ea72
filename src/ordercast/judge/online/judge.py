"""The judge that takes a run event by event: it shows each row to the oracles that want it.

A row passes three stages. First, oracles that are not gated see it. Then integrity, which is the gate in
every run, sees it: a row that integrity refuses (a second delivery, an unknown group) is a finding of
integrity, and no other oracle sees it. Last, the gated oracles see it. So one fault in a run causes one
finding.

A delivery must come after its submission. The rows of a simulated run are in order of time, and are taken as
they come. In a run of several machines the order of the stream is not reliable, so a delivery waits before
the gate for its submission (`holdback.py`). A delivery of any run that is judged as a whole does so too,
because there the order of rows of different hosts does not matter.

Where side branches are discarded, all rows wait until the end of the run. Only then is it known which of them
are void; other rows stand in their places (`side_branches.py`).

Where agreement is not uniform and views are promised, a delivery also waits before the gate until it is known
whether its node survives the view (`survival.py`).
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeAlias

from ordercast.core import MessageId, Partition, RemoteError
from ordercast.judge.finding import Holes, Replay, Violation, in_order
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.holdback import Holdback
from ordercast.judge.online.holes import holes
from ordercast.judge.online.integrity import Integrity
from ordercast.judge.online.ledger import Ledger
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.side_branches import SideBranches
from ordercast.judge.online.survival import Survival, is_provisional
from ordercast.trace import CARRYING, ENTERING, LEAVING, READ, Event, Kind, RunDescription

MakeOracle: TypeAlias = Callable[[str, Case], Oracle]
"""Makes the oracle of a property from the property's name and a case."""


class OnlineJudge:
    """All oracles of one run, fed event by event."""

    def __init__(
        self,
        description: RunDescription,
        oracles: Iterable[tuple[str, MakeOracle]],
        replay: Replay | None = None,
    ) -> None:
        """`oracles` has the properties to judge, in the order in which their oracles see an event."""
        _validate(description)
        self._description = description
        self._case = case = Case(description, replay)
        if description.guarantees.partition is Partition.SIDE_BRANCHES_DISCARDED:
            case.side_branches = SideBranches(description)
        self._kept: list[Event] = []
        """All rows so far, if they wait for the end."""
        for name, make in oracles:
            case.oracles.append(make(name, case))
        self._account: Ledger | None = case.ledger if description.counts_holes else None
        # There is a gate even if integrity is not promised; then its findings are not reported.
        self._gate = case.find(Integrity) or Integrity("", case)
        self._cursor = case.cursor
        self._finished = False
        self._holdback: Holdback | None = None
        if description.source != "simulator":
            self._holdback = self._hold_back(None)
        self._free: dict[Kind, list[Handler]] = {}
        self._through: dict[Kind, Handler] = {}
        self._survival: Survival | None = None
        self._lay_out()
        if is_provisional(description):
            self._survival = self._wait_for_survival()
        self._dispatch: dict[Kind, tuple[Handler, ...]] = {
            kind: (*free, self._through[kind]) if kind in self._through else tuple(free)
            for kind, free in self._free.items()
        }

    def _lay_out(self) -> None:
        """Find out, for each kind of row, which oracles see it before the gate and which after it."""
        gate, oracles = self._gate, self._case.oracles
        provisional = is_provisional(self._description)
        tables = [
            (oracle.gated and (oracle.lasting or not provisional), oracle.reads, oracle.handlers())
            for oracle in oracles
            if oracle is not gate
        ]
        tables += [(True, False, table) for table in self._case.accounts()]
        for kind in Kind:
            self._free[kind] = [table[kind] for gated, _, table in tables if not gated and kind in table]
            if kind in gate.admits:
                behind = [table[kind] for gated, _, table in tables if gated and kind in table]
                self._through[kind] = _through_the_gate(gate.admits[kind], behind)
        kind = Kind.SUBMIT
        reading = [table[kind] for gated, reads, table in tables if gated and reads and kind in table]
        reads = _through_the_gate(gate.admits[kind], reading)
        self._through[kind] = _by_label(reads, self._through[kind])

    def observe(self, event: Event) -> None:
        """Take the next event of the run."""
        self.observe_all((event,))

    def observe_all(self, events: Iterable[Event]) -> None:
        """Take the next events of the run, faster than one by one."""
        if self._case.side_branches is not None:
            self._kept.extend(events)
        else:
            self._take(events)

    def _take(self, events: Iterable[Event]) -> None:
        if self._holdback is not None:
            self._observe_patiently(events, self._holdback)
            return
        cursor, find = self._cursor, self._dispatch.get
        for step, event in enumerate(events, cursor.step + 1):
            cursor.step = step
            for handler in find(event.kind, ()):
                handler(event)

    def observe_whole(self, events: Sequence[Event]) -> None:
        """Take all events of the run at once; their order is reliable only within each host."""
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
        """Take the next events; rows that must pass the gate may have to wait for their turn."""
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

    def _wait_for_survival(self) -> Survival:
        """Let deliveries wait before the gate until it is known whether they count (`survival.py`)."""
        through = dict(self._through)

        def pass_on(step: int, event: Event) -> None:
            here, self._cursor.step = self._cursor.step, step
            through[event.kind](event)
            self._cursor.step = here

        survival = Survival(pass_on)

        decide: dict[Kind, Handler] = {
            **dict.fromkeys(LEAVING, survival.on_left),
            Kind.RECOVER: survival.on_recover,
            Kind.VIEW: survival.on_view,
        }
        for kind, first in decide.items():
            self._through[kind] = _one_after_another(first, through[kind])
        for kind in (*CARRYING, *ENTERING):
            self._through[kind] = lambda event: survival.on_row(self._cursor.step, event)
        return survival

    def finish(self) -> None:
        """End the run, and judge what only the end can show."""
        if not self._finished:
            self._finished = True
            if self._case.side_branches is not None:
                self._take(self._case.side_branches.surviving(self._kept))
            if self._holdback is not None:
                self._holdback.finish()
            if self._survival is not None:
                self._survival.finish()
            for oracle in self._case.oracles:
                oracle.finish()

    @property
    def violations(self) -> list[Violation]:
        """All findings so far, by event, then by property; those of the end of the run last."""
        return in_order(violation for oracle in self._case.oracles for violation in oracle.violations)

    @property
    def suppressed(self) -> dict[str, int]:
        """For each property, how many more findings there were than were kept."""
        return {oracle.name: oracle.suppressed for oracle in self._case.oracles if oracle.suppressed}

    def holes(self) -> Holes | None:
        """The holes so far; None unless the run counts holes (`RunDescription`)."""
        return None if self._account is None else holes(self._account)


def _through_the_gate(admit: Callable[[Event], Event | None], behind: list[Handler]) -> Handler:
    """A handler that shows a row to integrity and, if integrity admits it, to the gated oracles."""

    def handle(event: Event) -> None:
        admitted = admit(event)
        if admitted is not None:
            for handler in behind:
                handler(admitted)

    return handle


def _by_label(reads: Handler, others: Handler) -> Handler:
    """A handler of submissions: reads of a service are shown only to oracles that ask for them."""

    def handle(event: Event) -> None:
        if event.label == READ:
            reads(event)
        else:
            others(event)

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


def _one_after_another(first: Handler, second: Handler) -> Handler:
    def both(event: Event) -> None:
        first(event)
        second(event)

    return both
