"""A run before the court: what its oracles share while they watch it.

That is the place in the stream, the account of who owes what, which is kept once for all who need it, and
the oracles themselves: some heed what another has found.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ordercast.judge.online.ledger import Ledger
from ordercast.trace import Event, Kind, RunDescription

if TYPE_CHECKING:
    from ordercast.judge.online.oracle import Oracle

Handler: TypeAlias = Callable[[Event], None]
Wanted = TypeVar("Wanted")


class Cursor:
    """The place in the stream of events; a judge shares one among its oracles."""

    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step = -1


class Case:
    """One run, and the oracles that watch it."""

    def __init__(self, description: RunDescription) -> None:
        self.description = description
        self.cursor = Cursor()
        self.oracles: list[Oracle] = []
        """In the order in which they see an event."""
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        """The account of the run, kept from the first time that somebody asks for it, before it begins."""
        if self._ledger is None:
            self._ledger = Ledger(self.description)
        return self._ledger

    def accounts(self) -> list[dict[Kind, Handler]]:
        """How the accounts are fed that somebody asked for."""
        return [] if self._ledger is None else [self._ledger.handlers()]

    def find(self, wanted: type[Wanted]) -> Wanted | None:
        """The oracle of this class, if the run has one and it stands before whoever asks."""
        return next((oracle for oracle in self.oracles if isinstance(oracle, wanted)), None)
