"""Changes of issuers: the views that add or remove an issuer (Hydra section 4.4)."""

from typing import NamedTuple

from ordercast.core import GroupId
from ordercast.trace import ADDED, REMOVED, Event


class Change(NamedTuple):
    """A view adds an issuer after a number, or removes an issuer that is settled up to a number."""

    what: str
    issuer: int
    number: int
    clock: int | None

    def __str__(self) -> str:
        """A phrase: ``removed issuer 3 after number 40 at clock 7``."""
        return f"{self.what} issuer {self.issuer} after number {self.number} at clock {self.clock}"


def changes_of(event: Event) -> list[tuple[GroupId, Change]]:
    """The change that a view makes for its group; none if the view only lists the members."""
    issuer, numbers = event.stamp_issuer, event.numbers
    if event.label not in (ADDED, REMOVED) or issuer is None or not numbers or None in numbers:
        return []
    return [
        (group, Change(event.label, issuer, number, event.stamp_clock)) for group, number in event.slots()
    ]
