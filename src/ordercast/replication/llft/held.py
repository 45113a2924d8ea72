"""The ordering information of remote groups that a member holds for them (section III.C).

The primary of a group sends its ordering information with its messages to remote groups, not to its own
backups. A remote group hands it back in its next message, again and again until the group says that all its
members have it. If the primary fails, its successor asks remote groups for what they hold.
"""

from ordercast.replication.llft.names import Party, ViewId
from ordercast.replication.llft.orders import ENTRIES_MAX, OrderLog, Slice


class Held:
    """What is held for one group."""

    __slots__ = ("begin", "log", "safe", "settled", "view")

    def __init__(self, part: Slice) -> None:
        self.view: ViewId = part.view
        self.begin = part.begin
        self.safe = part.safe
        self.settled = part.settled
        self.log = OrderLog(part.after)
        self.log.extend(part)

    def note(self, part: Slice) -> None:
        """Take over a slice of the same view."""
        self.settled = max(self.settled, part.settled)
        self.safe = max(self.safe, part.safe)
        if not self.log.extend(part):  # what lies between is safe by now
            self.log = OrderLog(part.after)
            self.log.extend(part)
        self.log.forget(self.safe)

    def slice(self) -> Slice | None:
        """All of it, to be handed back; None if there is nothing."""
        if self.log.end == self.log.after:
            return None
        entries = self.log.part(self.log.after, ENTRIES_MAX)
        return Slice(self.view, self.begin, self.log.after, entries, self.safe, self.settled)


class Holdings:
    """What is held for all remote groups."""

    def __init__(self) -> None:
        self._held: dict[Party, Held] = {}

    def note(self, party: Party, part: Slice) -> None:
        """A message of a group brought ordering information of it."""
        held = self._held.get(party)
        if held is None or part.view > held.view:
            self._held[party] = Held(part)
        elif part.view == held.view:
            held.note(part)

    def slice(self, party: Party) -> Slice | None:
        """What a group gets back."""
        held = self._held.get(party)
        return None if held is None else held.slice()
