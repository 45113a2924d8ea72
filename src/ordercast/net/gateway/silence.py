"""Whether a service answers: calls to one that is silent are refused at once, and not taken into doubt.

A group that has lost its majority answers nothing. Each call to it would wait until its end, and nobody would
know whether it was executed. So when calls have waited for `silent_s` without any answer, new ones are
refused until one is answered; one call at a time is let through, as a probe.
"""

from itertools import count


class Silence:
    """What one group was asked, and when it last answered."""

    def __init__(self, silent_s: float) -> None:
        self._silent_s = silent_s
        self._waiting: dict[int, float] = {}
        """When the calls under way began, the oldest first."""
        self._numbers = count()
        self._heard_s = float("-inf")
        self._unheard = False
        """Whether the last call that ended had no answer."""

    def admit(self, now_s: float) -> bool:
        """Whether another call may be made."""
        if not self._waiting:
            return True
        since_s = max(self._heard_s, next(iter(self._waiting.values())))
        return not self._unheard and now_s - since_s < self._silent_s

    def begin(self, now_s: float) -> int:
        """A call is made; returns its number here."""
        number = next(self._numbers)
        self._waiting[number] = now_s
        return number

    def end(self, number: int, now_s: float, *, heard: bool) -> None:
        """A call has ended, with an answer or without."""
        del self._waiting[number]
        self._unheard = not heard
        if heard:
            self._heard_s = now_s
