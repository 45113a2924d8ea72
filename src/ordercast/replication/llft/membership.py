"""Who is a member of a group, with what rank, and when each was last heard (section IV)."""

from __future__ import annotations

from ordercast.core import Nanos
from ordercast.replication.llft.names import Precedence


class Peer:
    """What a primary knows of a backup."""

    __slots__ = ("attempts", "change", "heard_at", "performed", "synced")

    def __init__(self, now: Nanos, *, synced: bool) -> None:
        self.heard_at = now
        self.performed = 0
        """It has performed the operations up to this place."""
        self.change = 0
        """The last change of the members that it has acknowledged."""
        self.synced = synced
        """Whether it has the state of the group."""
        self.attempts = 0
        """How often it was told of a change without an acknowledgement."""


class Membership:
    """The members of a view, ascending by precedence: the first is the primary."""

    def __init__(self, members: tuple[Precedence, ...]) -> None:
        self.members = members
        self.change = 0
        """How many changes of the members the view had."""
        self.highest = max(members, default=0)
        """The highest precedence that was ever given, as far as is known."""

    def adopt(self, members: tuple[Precedence, ...], change: int) -> None:
        """Take over the members of a view after so many changes."""
        self.members, self.change = members, change
        self.note(*members)

    def note(self, *precedences: Precedence) -> None:
        """Remember which precedences are taken."""
        self.highest = max(self.highest, *precedences, 0)

    def rank(self, precedence: Precedence) -> int:
        """1 for the primary, 2, 3, ... for the backups."""
        return 1 + sum(other < precedence for other in self.members)

    def patience(self, precedence: Precedence, detect: Nanos) -> Nanos:
        """How long a member of this rank waits for the primary, and the primary for it: a backup of rank 3
        leaves the one of rank 2 time to act first."""
        return detect * max(1, 2 * self.rank(precedence) - 3)
