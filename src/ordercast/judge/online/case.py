"""A case: what the oracles of one run share.

They share the place in the stream, the members of groups, the ledger of deliveries, which is kept once for
all oracles that need it, and the list of oracles: some oracles use the findings of another.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ordercast.judge.finding import Replay
from ordercast.judge.online.ledger import Ledger
from ordercast.judge.online.members import Members
from ordercast.judge.online.side_branches import SideBranches
from ordercast.trace import Event, Kind, RunDescription

if TYPE_CHECKING:
    from ordercast.judge.online.oracle import Oracle

Handler: TypeAlias = Callable[[Event], None]
Wanted = TypeVar("Wanted")


class Cursor:
    """The place in the stream of events; all oracles of a judge share one."""

    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step = -1


class Case:
    """One run, and the oracles that watch it."""

    def __init__(self, description: RunDescription, replay: Replay | None = None) -> None:
        self.description = description
        self.replay = replay
        """The operations of the run, if they are known and can be executed again."""
        self.cursor = Cursor()
        self.members = Members(description)
        """Who receives which group; the gate keeps it up to date."""
        self.oracles: list[Oracle] = []
        """In the order in which they see an event."""
        self.side_branches: SideBranches | None = None
        """Which rows are void, where side branches are discarded."""
        self.disordered = False
        """Whether the receivers of some group contradict each other in its order, as far as is known."""
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run. It is kept only if an oracle asks for it before the run begins."""
        if self._ledger is None:
            self._ledger = Ledger(self.description, self.members)
        return self._ledger

    def accounts(self) -> list[dict[Kind, Handler]]:
        """The handlers of the ledger, if an oracle asked for it."""
        return [] if self._ledger is None else [self._ledger.handlers()]

    def find(self, wanted: type[Wanted]) -> Wanted | None:
        """The oracle of this class, if the run has one and it comes before the oracle that asks."""
        return next((oracle for oracle in self.oracles if isinstance(oracle, wanted)), None)
