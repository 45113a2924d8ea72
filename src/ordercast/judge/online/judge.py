"""The judge: picks the oracles that a run's promises call for, and shows each the rows it wants.

Rows pass three stations. Clocks and lifecycle see everything. Integrity comes next, for every run,
and is the gate: what it refuses (a second delivery, a made-up group) is its own finding and goes no
further. The oracles behind it each keep to their property, so that one fault in a run raises one
alarm.

A delivery must come after its submission. A simulated run is in order of time, and its rows are taken
as they come. In a run of several machines the order of the stream is not to be trusted, and a delivery
waits before the gate for its submission (`holdback.py`); so does one of any run that is judged as a
whole, where the order of rows of different hosts does not matter.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple

from ordercast.core import Agreement as Promise
from ordercast.core import Causality, Gaps, MessageId, Order, RemoteError
from ordercast.judge.online.acyclic_order import AcyclicOrder
from ordercast.judge.online.agreement import Agreement
from ordercast.judge.online.causal import Causal
from ordercast.judge.online.clocks import Clocks
from ordercast.judge.online.drop_detection import DropDetection
from ordercast.judge.online.fifo import Fifo
from ordercast.judge.online.holdback import DELIVERIES, Holdback
from ordercast.judge.online.holes import HoleCount, Holes
from ordercast.judge.online.integrity import Integrity
from ordercast.judge.online.lifecycle import Lifecycle
from ordercast.judge.online.oracle import Cursor, Handler, Oracle
from ordercast.judge.online.stamp import Stamps
from ordercast.judge.online.total_order import TotalOrder
from ordercast.judge.online.validity import Validity
from ordercast.judge.online.view_synchrony import ViewSynchrony
from ordercast.judge.online.violation import END_OF_RUN, Violation
from ordercast.trace import Event, Kind, RunDescription

ORACLES: tuple[type[Oracle], ...] = (
    Clocks,
    Lifecycle,
    Integrity,
    Stamps,
    TotalOrder,
    AcyclicOrder,
    Fifo,
    Causal,
    DropDetection,
    ViewSynchrony,
    Agreement,
    Validity,
)

PROPERTIES: dict[str, str] = {oracle.name: oracle.statement for oracle in ORACLES}
"""Every property that can be judged, and what it says."""


def oracles_for(description: RunDescription) -> list[Oracle]:
    """The oracles of all that this run was promised, in the order in which they see an event."""
    promised = description.guarantees
    oracles: list[Oracle] = [Clocks(description), Lifecycle(description)]
    if promised.integrity:
        oracles.append(Integrity(description))
    oracles.append(Stamps(description))
    if promised.order is not Order.NONE:
        total_order = TotalOrder(description)
        oracles.append(total_order)
        if promised.order is Order.ACROSS and len(description.groups) > 1:
            oracles.append(AcyclicOrder(description, total_order))
    if promised.causality is Causality.FIFO:
        oracles.append(Fifo(description))
    elif promised.causality is Causality.CAUSAL:
        oracles.append(Causal(description))
    if promised.gaps is Gaps.NOTIFIED:
        oracles.append(DropDetection(description))
    if promised.views:
        oracles.append(ViewSynchrony(description))
    agreement = None
    if promised.agreement in (Promise.ALL, Promise.NOTIFIED):
        agreement = Agreement(description)
        oracles.append(agreement)
    if promised.validity:
        oracles.append(Validity(description, agreement))
    return oracles


class Verdict(NamedTuple):
    """The findings on a run, and how many more each property had than were kept.

    The count is exact, but for `total-order` and `acyclic-order` a lower bound: see `relation.py`.
    """

    violations: list[Violation]
    suppressed: dict[str, int]
    holes: Holes | None = None
    """What is missing where; None unless the run counts holes (`RunDescription`)."""


class Judge:
    """All oracles of one run, fed event by event."""

    def __init__(self, description: RunDescription) -> None:
        _validate(description)
        self.oracles = oracles_for(description)
        self._cursor = Cursor()
        self._finished = False
        found = [oracle for oracle in self.oracles if isinstance(oracle, Integrity)]
        # The gate stands even where integrity is not promised; then nobody hears of its findings.
        self._gate = gate = found[0] if found else Integrity(description)
        self._description = description
        self._holdback: Holdback | None = None
        if description.source != "simulator":
            self._holdback = self._hold_back(None)
        for oracle in (gate, *self.oracles):
            oracle.cursor = self._cursor
        tables = [(oracle.gated, oracle.handlers()) for oracle in self.oracles if oracle is not gate]
        self._holes: HoleCount | None = None
        if description.counts_holes:
            self._holes = HoleCount(description)
            tables.append((True, self._holes.handlers()))
        self._free: dict[Kind, list[Handler]] = {}
        self._through: dict[Kind, Handler] = {}
        for kind in Kind:
            self._free[kind] = [table[kind] for gated, table in tables if not gated and kind in table]
            if kind in gate.admits:
                behind = [table[kind] for gated, table in tables if gated and kind in table]
                self._through[kind] = _through_the_gate(gate.admits[kind], behind)
        self._dispatch: dict[Kind, tuple[Handler, ...]] = {
            kind: (*free, self._through[kind]) if kind in self._through else tuple(free)
            for kind, free in self._free.items()
        }

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
            elif kind in DELIVERIES and event.message not in submitted:
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
            for oracle in self.oracles:
                oracle.finish()

    @property
    def violations(self) -> list[Violation]:
        """All findings so far, by event, then by property; those of the end of the run last."""
        found = [violation for oracle in self.oracles for violation in oracle.violations]
        return sorted(found, key=lambda v: (v.step == END_OF_RUN, v.step, v.property))

    @property
    def suppressed(self) -> dict[str, int]:
        """How many more findings each property had than were kept."""
        return {oracle.name: oracle.suppressed for oracle in self.oracles if oracle.suppressed}

    def holes(self) -> Holes | None:
        """What is missing where so far; None unless the run counts holes (`RunDescription`)."""
        return self._holes.holes() if self._holes is not None else None


def _through_the_gate(admit: Callable[[Event], Event | None], behind: list[Handler]) -> Handler:
    """What shows a row to integrity and, as far as that lets it pass, to those behind."""

    def handle(event: Event) -> None:
        admitted = admit(event)
        if admitted is not None:
            for handler in behind:
                handler(admitted)

    return handle


def verdict(description: RunDescription, events: Iterable[Event]) -> Verdict:
    """The findings on a whole run, and how many more there were."""
    court = Judge(description)
    court.observe_whole(events if isinstance(events, Sequence) else list(events))
    court.finish()
    return Verdict(court.violations, court.suppressed, court.holes())


def judge(description: RunDescription, events: Iterable[Event]) -> list[Violation]:
    """The findings on a whole run."""
    return verdict(description, events).violations


def _validate(description: RunDescription) -> None:
    """Refuse a description that contradicts itself."""
    known = {node.id for node in description.nodes}
    for group, members in description.groups.items():
        strangers = [node for node in members if node not in known]
        if strangers:
            raise RemoteError(
                f"run {description.run}: group {group} has a receiver {strangers[0]},"
                " which is not among the nodes"
            )
