"""The keys of a general transaction between its two halves, as the program that has locked them uses them."""

from typing import Any

import msgspec

from ordercast.core.errors import LocalError
from ordercast.core.shard import Keys

_decode = msgspec.msgpack.Decoder().decode


class Transaction:
    """A general transaction that has locked its keys. Use it as a map of them."""

    def __init__(self, keys: Keys, values: dict[str, bytes]) -> None:
        self._keys = keys
        self._values: dict[str, Any] = {key: _decode(value) for key, value in values.items()}
        self._open = True
        self.written: dict[str, Any] = {}
        """What it has written so far; None for a key that is removed."""

    def __contains__(self, key: str) -> bool:
        """Whether a key has a value."""
        self._named(key)
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        """The value of a key; KeyError if it has none."""
        self._named(key)
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        self._named(key)
        return self._values.get(key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        """Set the value of a key, when the transaction commits. What was read is a copy: assign it."""
        self._may_write(key)
        if value is None:
            raise LocalError(f"None cannot be the value of {key!r}; remove the key with del")
        self._values[key] = self.written[key] = value

    def __delitem__(self, key: str) -> None:
        """Remove a key, when the transaction commits."""
        self._may_write(key)
        del self._values[key]
        self.written[key] = None

    def _named(self, key: str) -> None:
        if not self._open:
            raise LocalError("the transaction has ended")
        if key not in self._keys.writes and key not in self._keys.reads:
            raise LocalError(f"the transaction has not locked the key {key!r}")

    def _may_write(self, key: str) -> None:
        self._named(key)
        if key not in self._keys.writes:
            raise LocalError(
                f"the transaction has locked the key {key!r} for reading only; name it in writes"
            )

    def end(self) -> None:
        """Do nothing more."""
        self._open = False
