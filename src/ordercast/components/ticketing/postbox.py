"""Envelopes on their way to the view-synchronous layer, and from there back to this member."""

from collections import deque
from collections.abc import Callable

from ordercast.components.ticketing.messages import ENVELOPES, Envelope


class Postbox:
    """Envelopes of this member that it has not heard itself yet. They keep their order."""

    __slots__ = ("_multicast", "_unheard", "_waiting")

    def __init__(self, multicast: Callable[[bytes], bool]) -> None:
        self._multicast = multicast
        self._waiting: deque[Envelope] = deque()
        """What the layer has not taken yet."""
        self._unheard = 0
        """How many it has taken and not delivered here yet; while a view changes, it delivers nothing."""

    @property
    def is_clear(self) -> bool:
        """Whether this member has heard everything that it sent."""
        return not (self._waiting or self._unheard)

    @property
    def is_empty(self) -> bool:
        """Whether the layer has taken everything."""
        return not self._waiting

    def post(self, envelope: Envelope) -> None:
        """Put an envelope behind the others."""
        self._waiting.append(envelope)

    def push(self) -> bool:
        """Hand the envelopes to the layer; False if it does not take all now."""
        while self._waiting:
            envelope = self._waiting.popleft()
            self._unheard += 1
            if not self._multicast(ENVELOPES.encode(envelope)):
                self._unheard -= 1
                self._waiting.appendleft(envelope)
                return False
        return True

    def heard(self) -> None:
        """An envelope of this member came back."""
        self._unheard -= 1

    def clear(self) -> None:
        """This member is in no view any more; nothing comes back."""
        self._waiting.clear()
        self._unheard = 0
