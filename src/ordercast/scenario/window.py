"""What bounds a closed loop: the places for messages under way, and the number of messages in all."""


class Window:
    """How many messages a closed loop has under way, and how many it may submit now.

    It may be worth while to wait until several places are free: `refill` says how many.
    """

    __slots__ = ("_refill", "limit", "under_way")

    def __init__(self, limit: int, refill: int = 1) -> None:
        self.limit = limit
        self.under_way = 0
        self._refill = refill

    @property
    def room(self) -> int:
        """How many places are free."""
        return self.limit - self.under_way

    @property
    def ready(self) -> bool:
        """Whether so many places are free that it is worth while to submit."""
        return self.limit - self.under_way >= self._refill

    def take(self, count: int) -> None:
        """Let so many more messages be under way."""
        self.under_way += count

    def done(self, count: int) -> int:
        """So many were answered, or are waited for no longer; returns how many places are free now."""
        self.under_way -= count
        return self.limit - self.under_way

    def lose(self) -> None:
        """Nothing that is under way will be answered."""
        self.under_way = 0


class Budget:
    """How many messages may be submitted in all; several clients may share it."""

    __slots__ = ("messages", "taken")

    def __init__(self, messages: int, taken: int = 0) -> None:
        self.messages = messages
        self.taken = taken

    @property
    def remaining(self) -> int:
        """How many are left."""
        return max(0, self.messages - self.taken)

    def take(self) -> int | None:
        """The number of the next message, from 1 on; None if there is none left."""
        if self.taken >= self.messages:
            return None
        self.taken += 1
        return self.taken
