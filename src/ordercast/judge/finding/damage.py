"""Damage: something wrong with the record of a run itself, not with what the protocol did.

A trace can lose rows, have rows twice or in another order, or be changed after it was written. Then a missing
delivery is no proof that the receiver did not deliver. So damage is a finding of its own, and never counts as
a broken promise.
"""

from typing import Literal

import msgspec

from ordercast.core import NodeId

What = Literal["empty", "files", "hash", "lists", "order", "positions", "run", "steps", "submissions"]
"""What is damaged: the name of a rule in `docs/checks.md`."""

DAMAGES_MAX = 20
"""How many damages of a run are kept; later ones are only counted."""


class Damage(msgspec.Struct, frozen=True):
    """One fault of a record. ``file`` and ``row`` say where it shows, if it shows at one place."""

    what: What
    detail: str
    file: str = ""
    row: int | None = None
    """The row in its file, counted from 0."""
    node: NodeId | None = None

    @property
    def place(self) -> str:
        """The file and the row, in words; empty if there are none."""
        if self.row is None:
            return self.file
        return f"{self.file}, row {self.row}"

    @property
    def hides_rows(self) -> bool:
        """Whether rows may be missing or at wrong places. Then promises cannot be judged."""
        return self.what != "hash"

    def __str__(self) -> str:
        """A line that a person can read."""
        return f"{self.place}: {self.detail}" if self.place else self.detail
