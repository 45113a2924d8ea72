"""A service for tests: each answer shows the whole order before it."""

from ordercast.core import Context, StateMachine


class Story(StateMachine):
    """Answers each operation with all operations so far."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    def apply(self, operation: bytes, context: Context) -> bytes:
        """Add it."""
        self.told.append(operation)
        return b"\0" + b" ".join(self.told)

    def read(self, operation: bytes, context: Context) -> bytes:
        """The story."""
        return b"\0" + b" ".join(self.told)

    def snapshot(self) -> bytes:
        """The story."""
        return b" ".join(self.told)

    def restore(self, state: bytes) -> None:
        """Take it back."""
        self.told = state.split()
