"""Messages larger than a datagram, put together from their pieces in bounded memory."""

from collections import OrderedDict

from ordercast.core import SECOND, Nanos, RemoteError
from ordercast.core.message import PACKET_BYTES_MAX
from ordercast.net.links.packet import Piece

UNFINISHED_BYTES_MAX = 2 * PACKET_BYTES_MAX
"""Of one peer; when more comes the oldest unfinished message is given up."""
UNFINISHED_NS: Nanos = 2 * SECOND
UNFINISHED_MAX = 256


class _Puzzle:
    __slots__ = ("count", "parts", "since", "size")

    def __init__(self, count: int, since: Nanos) -> None:
        self.count = count
        self.parts: dict[int, bytes] = {}
        self.size = 0
        self.since = since


class Pieces:
    """The unfinished messages of one peer's session."""

    __slots__ = ("_puzzles", "_size", "given_up")

    def __init__(self) -> None:
        self._puzzles: OrderedDict[int, _Puzzle] = OrderedDict()
        self._size = 0
        self.given_up = 0

    def add(self, piece: Piece, now: Nanos) -> bytes | None:
        """A piece came: the whole message if it was the last one missing."""
        puzzle = self._puzzles.get(piece.message)
        if puzzle is None:
            self._tidy(now)
            puzzle = self._puzzles[piece.message] = _Puzzle(piece.parts, now)
        if piece.parts != puzzle.count:
            raise RemoteError(f"a fragment of {piece.parts} belongs to a message of {puzzle.count}")
        if piece.place in puzzle.parts:
            return None
        part = bytes(piece.part)
        puzzle.parts[piece.place] = part
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

    def _tidy(self, now: Nanos) -> None:
        while self._puzzles:
            message, oldest = next(iter(self._puzzles.items()))
            if len(self._puzzles) < UNFINISHED_MAX and now - oldest.since < UNFINISHED_NS:
                return
            self._drop(message)

    def _drop(self, message: int) -> None:
        self._size -= self._puzzles.pop(message).size
        self.given_up += 1
