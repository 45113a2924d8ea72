"""A search for the packets of missing numbers of one lane (see `repair.py`)."""

from ordercast.core import Nanos, NodeId

BACKOFF_MAX = 4


class Search:
    """Who was asked for which numbers, and what they said."""

    __slots__ = ("attempts", "began", "due", "ending", "first", "gone", "known", "origin", "reached", "since")

    def __init__(self, first: int, high: int, now: Nanos, ending: bool) -> None:
        self.origin = self.first = first
        """The first missing number: at the beginning, and now."""
        self.known = high
        """The highest number that was known to be missing at the last success."""
        self.began = self.since = now
        """When the search began, and when it last had success."""
        self.ending = ending
        """Whether the sequencer was removed before the search began."""
        self.reached = 0
        """Numbers up to here have been asked for."""
        self.attempts = 0
        """How often the question was repeated."""
        self.due: Nanos = now
        """When it is to be repeated."""
        self.gone: dict[NodeId, int] = {}
        """For each node, up to which number it has nothing from the first missing number on."""

    def go_on(self, first: int, high: int, now: Nanos) -> None:
        """Go on after success; if nothing is left of the old gap, begin anew."""
        if first > self.known:
            self.origin, self.began, self.reached, self.attempts = first, now, 0, 0
            self.gone.clear()
        self.first, self.known, self.since = first, high, now

    def note_gone(self, node: NodeId, first: int, last: int) -> None:
        """Note that a node does not have these numbers."""
        known = self.gone.get(node, 0)
        if first <= max(known + 1, self.first) and last > known:
            self.gone[node] = last

    def refused(self, node: NodeId) -> bool:
        """Whether the only node that was asked does not have the first missing number."""
        return self.attempts == 0 and self.gone.get(node, 0) >= self.first

    def ask(self, last: int, now: Nanos, retry_ns: Nanos) -> None:
        """Note that numbers up to the last one are asked for now, for the first time or again."""
        if self.reached >= self.first:
            self.attempts += 1
        self.reached = last
        self.due = now + (retry_ns << min(self.attempts, BACKOFF_MAX))
