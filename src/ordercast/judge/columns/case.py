"""A case over columns: what the properties of one run share, computed when it is first needed.

Deliveries, notifications and views must pass integrity's gate before another property sees them. A property
also leaves results for others here: `acyclic-order` is judged only if `total-order` found nothing, and
`validity` ignores messages that `agreement` reported.
"""

from functools import cached_property
from typing import NamedTuple

from ordercast.judge.columns.account import Account
from ordercast.judge.columns.calls import Calls
from ordercast.judge.columns.changes import Change, changes_of
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.integrity import admit
from ordercast.judge.columns.ledger import Ledger
from ordercast.judge.columns.line import Line, sequences
from ordercast.judge.columns.notices import Drop, InstalledView, drops_of, judge_changes, views_of
from ordercast.judge.columns.restored import RestoredState, restored_states
from ordercast.judge.columns.side_branches import SideBranches
from ordercast.judge.columns.stamped import Stamped
from ordercast.judge.columns.stays import Stays
from ordercast.judge.columns.survival import lasting
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import Replay


class Admitted(NamedTuple):
    """What integrity admits."""

    account: Account
    drops: list[Drop]
    views: list[InstalledView]


class Case:
    """One run, and what has been computed from it."""

    def __init__(
        self, trace: Trace, replay: Replay | None = None, side_branches: SideBranches | None = None
    ) -> None:
        """`side_branches` are given where void rows were taken out of the trace."""
        self.trace = trace
        self.side_branches = side_branches
        self.replay = replay
        """The operations of the run, if they are known and can be executed again."""
        self.description = trace.description
        self.disordered = False
        """Whether the receivers of some group contradict each other in its order."""
        self.disputed: set[int] = set()
        """The messages on which receivers disagree, by their places."""
        self._admitted: Admitted | None = None

    def open_gate(self, findings: Findings) -> None:
        """Judge integrity, and admit what the other properties may see."""
        trace = self.trace
        account = admit(trace, findings, lasting(trace, views_of(trace, Findings(""))))
        judge_changes(trace, findings)
        self._admitted = Admitted(account, drops_of(trace, findings), views_of(trace, findings))

    @property
    def admitted(self) -> Admitted:
        """What passed the gate. If integrity is not promised, refused rows are not reported."""
        if self._admitted is None:
            self.open_gate(Findings(""))
        assert self._admitted is not None
        return self._admitted

    @property
    def account(self) -> Account:
        """The submissions and deliveries."""
        return self.admitted.account

    @cached_property
    def everything(self) -> Account:
        """The same, with deliveries in views that their nodes did not survive."""
        carried = self.trace.order.carried
        if len(lasting(self.trace, self.admitted.views)) == len(carried):
            return self.account
        return admit(self.trace, Findings(""), carried)

    @cached_property
    def changes(self) -> list[Change]:
        """The views that add or remove an issuer."""
        return changes_of(self.trace, self.admitted.views)

    @cached_property
    def stays(self) -> Stays:
        """Who was in which view, and when."""
        return Stays(self.trace, self.admitted.views)

    @cached_property
    def calls(self) -> Calls:
        """What clients of a service called, and what they were answered."""
        return Calls(self.trace, self.account)

    @cached_property
    def restored(self) -> list[RestoredState]:
        """The states that replicas took from others."""
        return restored_states(self.trace)

    @cached_property
    def line(self) -> Line:
        """The chains of all receivers along one line, whatever their groups."""
        return Line(sequences(self.account), len(self.account.messages))

    @cached_property
    def stamped(self) -> Stamped:
        """The stamps of all deliveries in order."""
        return Stamped(self.account)

    @cached_property
    def stamps_climb(self) -> bool:
        """Whether all receivers follow one line, along which the clocks of stamps grow strictly."""
        if len(self.description.groups) > 1:
            return False  # messages of different groups have no fixed order on the line
        order = self.line.order
        return order is not None and self.line.straight and self.stamped.grow_along(order)

    @cached_property
    def ledger(self) -> Ledger:
        """Who owes what at the end."""
        admitted = self.admitted
        return Ledger(admitted.account, admitted.drops, admitted.views, self.changes, self.stays)

    @cached_property
    def lacking(self) -> Ints:
        """The messages that some correct receiver of their groups did not deliver."""
        return self.ledger.lacking()
