"""Messages larger than a datagram, put together from their pieces in bounded memory.

Of many datagrams one is easily lost, and the whole message with it. So a host that has a part of a message,
and hears nothing new of it for a while, asks its sender for the places that are missing (`repair.py`): first
for gaps between pieces that came, then for those after them too, which may only be late.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from ordercast.core import MILLISECOND, SECOND, Nanos, RemoteError
from ordercast.core.message import PACKET_BYTES_MAX
from ordercast.net.links.packet import PLACES_MAX, Missing, Piece

UNFINISHED_BYTES_MAX = 2 * PACKET_BYTES_MAX
"""Of one peer; when more comes the oldest unfinished message is given up."""
UNFINISHED_NS: Nanos = 2 * SECOND
"""A message of which nothing new came for so long is given up."""
UNFINISHED_MAX = 256
DONE_MAX = 4096
"""Messages, finished or given up, whose late pieces are known and begin nothing."""
QUIET_NS: Nanos = 5 * MILLISECOND
"""A message of which nothing new came for so long lacks something."""
ASK_AGAIN_NS: Nanos = 20 * MILLISECOND
"""How long the first answer is waited for; each later one twice as long."""
ASKS_MAX = 6
"""Requests in a row that brought nothing; then no more are made."""
ASKED_MAX = 16
"""Messages of one peer that are asked for at a time."""


class _Puzzle:
    __slots__ = ("asks", "complete_to", "count", "due", "heard", "highest", "parts", "size")

    def __init__(self, count: int, now: Nanos) -> None:
        self.count = count
        self.parts: dict[int, bytes] = {}
        self.size = 0
        self.complete_to = 0
        """All places before this one came; it is not looked for further back."""
        self.highest = -1
        self.hear(now)

    def hear(self, now: Nanos) -> None:
        """Something new came: whatever is missing is asked for with new patience."""
        self.heard = now
        self.due = now + QUIET_NS
        self.asks = 0

    def missing(self) -> tuple[int, ...]:
        """The places to ask for now."""
        while self.complete_to in self.parts:
            self.complete_to += 1
        end = self.count if self.asks else self.highest
        absent = (place for place in range(self.complete_to, end) if place not in self.parts)
        return tuple(islice(absent, PLACES_MAX))


class Pieces:
    """The unfinished messages of one peer's session."""

    __slots__ = ("_done", "_puzzles", "_size", "given_up")

    def __init__(self) -> None:
        self._puzzles: OrderedDict[int, _Puzzle] = OrderedDict()
        self._done: OrderedDict[int, None] = OrderedDict()
        self._size = 0
        self.given_up = 0

    def add(self, piece: Piece, now: Nanos) -> bytes | None:
        """A piece came: the whole message if it was the last one missing."""
        puzzle = self._puzzles.get(piece.message)
        if puzzle is None:
            if piece.message in self._done:
                return None
            self._make_room(now)
            puzzle = self._puzzles[piece.message] = _Puzzle(piece.parts, now)
        if piece.parts != puzzle.count:
            raise RemoteError(f"a fragment of {piece.parts} belongs to a message of {puzzle.count}")
        if piece.place in puzzle.parts:
            return None
        part = bytes(piece.part)
        puzzle.parts[piece.place] = part
        puzzle.highest = max(puzzle.highest, piece.place)
        puzzle.hear(now)
        puzzle.size += len(part)
        self._size += len(part)
        if puzzle.size > PACKET_BYTES_MAX:
            self._drop(piece.message)
            raise RemoteError(f"the pieces of a message exceed {PACKET_BYTES_MAX} bytes")
        if len(puzzle.parts) < puzzle.count:
            while self._size > UNFINISHED_BYTES_MAX:
                self._drop(next(iter(self._puzzles)))
            return None
        self._drop(piece.message)
        self.given_up -= 1
        return b"".join(puzzle.parts[index] for index in range(puzzle.count))

    @property
    def unfinished(self) -> int:
        """How many messages have begun and not ended."""
        return len(self._puzzles)

    def missing(self, now: Nanos) -> Iterator[Missing]:
        """What to ask the peer for now; messages that it has long been silent about are given up."""
        if not self._puzzles:
            return
        self._give_up_silent(now)
        due = [(message, puzzle) for message, puzzle in self._puzzles.items() if puzzle.due <= now]
        for message, puzzle in due[:ASKED_MAX]:
            places = puzzle.missing()
            if puzzle.asks < ASKS_MAX:
                puzzle.due = now + (ASK_AGAIN_NS << puzzle.asks)
            else:
                puzzle.due = puzzle.heard + UNFINISHED_NS
                continue
            puzzle.asks += 1
            if places:
                yield Missing(message, places)

    def _make_room(self, now: Nanos) -> None:
        self._give_up_silent(now)
        while len(self._puzzles) >= UNFINISHED_MAX:
            self._drop(next(iter(self._puzzles)))

    def _give_up_silent(self, now: Nanos) -> None:
        silent = [message for message, puzzle in self._puzzles.items() if now - puzzle.heard >= UNFINISHED_NS]
        for message in silent:
            self._drop(message)

    def _drop(self, message: int) -> None:
        """Finished or given up: what comes of it later is of no use."""
        self._size -= self._puzzles.pop(message).size
        self.given_up += 1
        self._done[message] = None
        if len(self._done) > DONE_MAX:
            self._done.popitem(last=False)
