"""The judge: picks the oracles that a run's promises call for, and shows each the rows it wants.

Rows pass three stations. Clocks and lifecycle see everything. Integrity comes next, for every run,
and is the gate: what it refuses (a second delivery, a made-up group) is its own finding and goes no
further. The oracles behind it each keep to their property, so that one fault in a run raises one
alarm.
"""

from collections.abc import Iterable

from ordercast.check.acyclic_order import AcyclicOrder
from ordercast.check.agreement import Agreement
from ordercast.check.causal import Causal
from ordercast.check.clocks import Clocks
from ordercast.check.drop_detection import DropDetection
from ordercast.check.fifo import Fifo
from ordercast.check.integrity import Integrity
from ordercast.check.lifecycle import Lifecycle
from ordercast.check.oracle import Cursor, Handler, Oracle
from ordercast.check.total_order import TotalOrder
from ordercast.check.validity import Validity
from ordercast.check.view_synchrony import ViewSynchrony
from ordercast.check.violation import END_OF_RUN, Violation
from ordercast.core import Agreement as Promise
from ordercast.core import Causality, Gaps, Order, RemoteError
from ordercast.trace import Event, Kind, RunDescription

ORACLES: tuple[type[Oracle], ...] = (
    Clocks,
    Lifecycle,
    Integrity,
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


class Judge:
    """All oracles of one run, fed event by event."""

    def __init__(self, description: RunDescription) -> None:
        _validate(description)
        self.oracles = oracles_for(description)
        self._cursor = Cursor()
        self._finished = False
        found = [oracle for oracle in self.oracles if isinstance(oracle, Integrity)]
        # The gate stands even where integrity is not promised; then nobody hears of its findings.
        gate = found[0] if found else Integrity(description)
        for oracle in (gate, *self.oracles):
            oracle.cursor = self._cursor
        self._dispatch: dict[Kind, tuple[Handler, ...]] = {}
        for kind in Kind:
            handlers = self._handlers(kind, gate)
            if handlers:
                self._dispatch[kind] = handlers

    def _handlers(self, kind: Kind, gate: Integrity) -> tuple[Handler, ...]:
        tables = [(oracle, oracle.handlers()) for oracle in self.oracles if oracle is not gate]
        free = [table[kind] for oracle, table in tables if not oracle.gated and kind in table]
        gated = [table[kind] for oracle, table in tables if oracle.gated and kind in table]
        if kind not in gate.admits:
            return (*free, *gated)
        admit = gate.admits[kind]

        def through_the_gate(event: Event) -> None:
            admitted = admit(event)
            if admitted is not None:
                for handler in gated:
                    handler(admitted)

        return (*free, through_the_gate)

    def observe(self, event: Event) -> None:
        """The next event of the run."""
        self._cursor.step += 1
        for handler in self._dispatch.get(event.kind, ()):
            handler(event)

    def observe_all(self, events: Iterable[Event]) -> None:
        """The next events of the run; the fast way for many."""
        cursor, find = self._cursor, self._dispatch.get
        for step, event in enumerate(events, cursor.step + 1):
            cursor.step = step
            for handler in find(event.kind, ()):
                handler(event)

    def finish(self) -> None:
        """The run is over."""
        if not self._finished:
            self._finished = True
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


def judge(description: RunDescription, events: Iterable[Event]) -> list[Violation]:
    """The findings on a whole run."""
    court = Judge(description)
    court.observe_all(events)
    court.finish()
    return court.violations


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
