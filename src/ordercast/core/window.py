"""A sliding window over the numbers of one source: recognises duplicates in bounded memory."""

from ordercast.core.errors import LocalError


class Seen:
    """The numbers of one source that have come: the highest, and a bit for each of the `window` up to it."""

    __slots__ = ("_bits", "_highest", "_mask", "_window")

    def __init__(self, window: int) -> None:
        if window < 1:
            raise LocalError(f"the window must have a width of at least 1, not {window}")
        self._window = window
        self._mask = (1 << window) - 1
        self._highest: int | None = None
        self._bits = 0

    def has(self, number: int) -> bool | None:
        """Whether a number has come; None if it is older than the window."""
        behind = -1 if self._highest is None else self._highest - number
        if behind >= self._window:
            return None
        return behind >= 0 and bool(self._bits >> behind & 1)

    def admit(self, number: int) -> bool:
        """Whether a number is new; one that is older than the window counts as seen."""
        if self._highest is None or number > self._highest:
            ahead = self._window if self._highest is None else number - self._highest
            self._bits = 1 if ahead >= self._window else (self._bits << ahead | 1) & self._mask
            self._highest = number
            return True
        behind = self._highest - number
        if behind >= self._window or self._bits >> behind & 1:
            return False
        self._bits |= 1 << behind
        return True
