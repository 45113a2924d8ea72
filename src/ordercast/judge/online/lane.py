"""A lane: the numbers of one issuer for one group, as they come at one receiver."""

from bisect import bisect_right
from heapq import heappop, heappush


class Lane:
    """Which numbers have come, and which were skipped."""

    __slots__ = ("_early", "_heap", "_skipped_from", "_skipped_to", "closed", "low", "notified", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        """The number before the first."""
        self.low = start
        """Every number up to here has come or was reported as missing; the next one has not come."""
        self.notified: set[int] = set()
        self.closed: int | None = None
        """The configuration that removed the issuer; after it, no number may come."""
        self._early: set[int] = set()
        self._heap: list[int] = []
        """The same numbers as in `_early`, smallest first."""
        self._skipped_from: list[int] = []
        self._skipped_to: list[int] = []

    @property
    def empty(self) -> bool:
        """Whether nothing has come yet."""
        return self.low == self.start and not self._early

    def came(self, number: int) -> bool:
        """Whether a number has come, or comes too late."""
        return number <= self.low or number in self._early

    def add(self, number: int) -> None:
        """Note a number that came before smaller ones."""
        self._early.add(number)
        heappush(self._heap, number)
        self.advance(self.low)

    def advance(self, number: int) -> None:
        """Settle all numbers up to `number`, and the early ones that follow it without a gap."""
        self.low = max(self.low, number)
        while self._heap and self._heap[0] <= self.low + 1:
            number = heappop(self._heap)
            self._early.discard(number)
            self.low = max(self.low, number)

    def skip(self, number: int) -> tuple[int, int] | None:
        """Settle all numbers below `number` as reported missing; return the first gap (from, to), if any."""
        first = None
        while self.low + 1 < number:
            stop = min(self._heap[0], number) if self._heap else number
            hole = (self.low + 1, stop - 1)
            first = first or hole
            self._skipped_from.append(hole[0])
            self._skipped_to.append(hole[1])
            self.advance(hole[1])
        return first

    def skipped(self, number: int) -> bool:
        """Whether this number was reported as missing; then it is not reported again when it comes."""
        place = bisect_right(self._skipped_from, number) - 1
        return place >= 0 and number <= self._skipped_to[place]
