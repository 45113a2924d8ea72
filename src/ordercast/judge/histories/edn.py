"""Values as Jepsen writes them, in EDN: numbers, texts, keywords, nil, vectors and maps."""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from ordercast.core import LocalError

DEPTH_MAX = 8
INTEGER_MAX = 2**63 - 1

_TOKEN = re.compile(r'[\s,]*(?:("(?:[^"\\]|\\.)*")|([\[\]{}])|([^\s,\[\]{}"]+))')
_REST = re.compile(r"[\s,]*\Z")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_KEYWORD = re.compile(r":[^:\s]+")
_CLOSING = {"[": "]", "{": "}"}


class Keyword(msgspec.Struct, frozen=True):
    """A keyword, such as ``:invoke``, without its colon."""

    name: str

    def __repr__(self) -> str:
        """As it is written."""
        return f":{self.name}"


class Table(msgspec.Struct, frozen=True):
    """A map from keywords."""

    entries: dict[str, "Form"]


Form: TypeAlias = int | str | Keyword | Table | tuple["Form", ...] | None


class _Token(NamedTuple):
    kind: int
    text: str


_TEXT, _MARK, _WORD = 1, 2, 3


def parse_forms(text: str) -> list[Form]:
    """All values in a text."""
    tokens = _tokens(text)
    return [_form(token, tokens, DEPTH_MAX) for token in tokens]


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while not _REST.match(text, place):
        found = _TOKEN.match(text, place)
        if found is None:
            raise LocalError(f"a text that begins at column {text.index(chr(34), place) + 1} does not end")
        kind = found.lastindex or 0
        yield _Token(kind, found.group(kind))
        place = found.end()


def _form(token: _Token, tokens: Iterator[_Token], depth: int) -> Form:
    if token.kind == _TEXT:
        return _ESCAPE.sub(_unescaped, token.text[1:-1])
    if token.kind == _WORD:
        return _word(token.text)
    if token.text not in _CLOSING:
        raise LocalError(f"{token.text!r} closes nothing")
    if depth == 0:
        raise LocalError(f"vectors and maps are nested more than {DEPTH_MAX} deep")
    items = _items(_CLOSING[token.text], tokens, depth - 1)
    return tuple(items) if token.text == "[" else _table(items)


def _items(closing: str, tokens: Iterator[_Token], depth: int) -> list[Form]:
    items: list[Form] = []
    for token in tokens:
        if token == (_MARK, closing):
            return items
        items.append(_form(token, tokens, depth))
    raise LocalError(f"{closing!r} is missing")


def _table(items: list[Form]) -> Table:
    if len(items) % 2:
        raise LocalError("a map has a key without a value")
    entries: dict[str, Form] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, Keyword):
            raise LocalError(f"a key of a map must be a keyword, not {key!r}")
        if key.name in entries:
            raise LocalError(f"a map has the key {key} twice")
        entries[key.name] = value
    return Table(entries)


def _word(text: str) -> Form:
    if text == "nil":
        return None
    if _KEYWORD.fullmatch(text):
        return Keyword(text[1:])
    if _INTEGER.fullmatch(text) and abs(int(text)) <= INTEGER_MAX:
        return int(text)
    raise LocalError(f"{text[:40]!r} is no number of 64 bits, text, keyword or nil")


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise LocalError(f"unknown escape \\{code} in a text")
    return _ESCAPES[code]
