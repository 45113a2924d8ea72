"""An operation: what a client asked a service for, when, and what the service answered."""

from collections.abc import Hashable
from typing import TypeAlias

import msgspec

Value: TypeAlias = Hashable
"""An argument or a result. Two values are the same if they are equal."""

TEXT_MAX = 60
"""How many characters of a value a sentence shows."""


class Operation(msgspec.Struct, frozen=True):
    """One operation of a history. Times may have any unit: they are only compared.

    Operation a comes before operation b if a was answered at an earlier time than b was invoked. Otherwise
    they overlap. An operation without an answer may take effect at any time after it was invoked, or never.
    """

    client: int
    call: str
    """The name of the operation, such as ``write``."""
    invoked: int
    answered: int | None
    """None if the outcome is unknown."""
    arguments: tuple[Value, ...] = ()
    result: Value = None
    """What the client was told; it has no meaning if the outcome is unknown."""
    key: Value = None
    """What the operation is about. Operations on different keys do not affect each other."""
    source: str = ""
    """Where the operation is recorded, for people: the lines of a file, or the name of a message."""

    @property
    def known(self) -> bool:
        """Whether the outcome is known."""
        return self.answered is not None

    def __str__(self) -> str:
        """A phrase for people: ``client 3 read = 4 (lines 5 and 8)``."""
        key = () if self.key is None else (f"[{shown(self.key)}]",)
        words = (f"client {self.client}", self.call, *key, *map(shown, self.arguments), self._told())
        source = f"({self.source})" if self.source else ""
        return " ".join(word for word in (*words, source) if word)

    def _told(self) -> str:
        if not self.known:
            return "= unknown"
        return "" if self.result is None and self.arguments else f"= {shown(self.result)}"


def shown(value: Value) -> str:
    """A value for people; the middle of a long one is left out."""
    if value is None or isinstance(value, bool):
        return "nil" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX // 2]} ... {text[-TEXT_MAX // 2 :]}"
