"""Messages in words: one short line that shows the fields of a protocol message.

Payloads are shown by the names of the messages that they carry, other bytes by their first few and their
number. Long lists are cut.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from ordercast.core.bundle import unpack_bundle
from ordercast.core.errors import RemoteError
from ordercast.core.ids import message_name

ITEMS_MAX = 8
"""How many items of a list are shown."""
BYTES_MAX = 8
"""How many bytes are shown if they are not a payload."""
TEXT_MAX = 400
"""The longest line; the rest is cut."""


def named(message: object) -> str:
    """The type of a message with its article, for a sentence: a Vote, an Ask."""
    kind = type(message).__name__
    return f"an {kind}" if kind[0] in "AEIO" else f"a {kind}"


def message_text(message: object) -> str:
    """A message with its fields, in one line: ``Token(ring=3, number=17, batch=<4#17>)``."""
    text = _text(message)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def _text(value: object) -> str:
    match value:
        case msgspec.Struct():
            fields = (f"{name}={_text(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{type(value).__name__}({', '.join(fields)})"
        case bytes() | bytearray() | memoryview():
            return _bytes(bytes(value))
        case Enum():
            return str(value.value)
        case Mapping():
            return "{" + _listed(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
        case tuple() | list():
            return "[" + _listed(map(_text, value)) + "]"
        case set() | frozenset():
            return "{" + _listed(sorted(map(_text, value))) + "}"
    return repr(value)


def _listed(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = f", ... {len(shown)} in all" if len(shown) > ITEMS_MAX else ""
    return ", ".join(shown[:ITEMS_MAX]) + more


def _bytes(content: bytes) -> str:
    """The messages of a payload by name, any other bytes by the first few."""
    try:
        first, times, _ = unpack_bundle(content)
    except RemoteError:
        more = f".. {len(content)} bytes" if len(content) > BYTES_MAX else ""
        return f"<{content[:BYTES_MAX].hex()}{more}>"
    last = first + len(times) - 1
    return f"<{message_name(first)}>" if last == first else f"<{message_name(first)} to {message_name(last)}>"
