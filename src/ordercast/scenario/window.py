"""The limits of a closed loop: the number of messages under way, and the total number of messages."""


class Window:
    """How many messages a closed loop has under way, and how many it may submit now.

    `refill` is the number of places that must be free before it is worthwhile to submit.
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
        """Whether enough places are free to make it worthwhile to submit."""
        return self.limit - self.under_way >= self._refill

    def take(self, count: int) -> None:
        """Count `count` more messages as under way."""
        self.under_way += count

    def done(self, count: int) -> int:
        """Note that `count` messages were answered or given up; return how many places are free now."""
        self.under_way -= count
        return self.limit - self.under_way

    def lose(self) -> None:
        """Forget all messages under way: they will not be answered."""
        self.under_way = 0


class Budget:
    """The total number of messages that may be submitted; several clients may share a budget."""

    __slots__ = ("_base", "messages", "taken")

    def __init__(self, messages: int, taken: int = 0, base: int = 0) -> None:
        """`base` is added to the numbers of messages, where several budgets must not have the same ones."""
        self.messages = messages
        self.taken = taken
        self._base = base

    @property
    def remaining(self) -> int:
        """How many messages are left."""
        return max(0, self.messages - self.taken)

    def take(self) -> int | None:
        """The number of the next message, starting behind the base; None if none is left."""
        if self.taken >= self.messages:
            return None
        self.taken += 1
        return self._base + self.taken
