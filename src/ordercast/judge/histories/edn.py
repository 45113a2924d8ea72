"""Values as Jepsen writes them, in EDN: numbers, texts, keywords, nil, vectors and maps.

What a history has besides, such as symbols, fractions, lists and sets, is read as an `Other`, so that whoever
needs such a value can refuse it. Tags (``#inst``) are passed over.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from ordercast.core import LocalError

DEPTH_MAX = 8
INTEGER_MAX = 2**63 - 1

_TOKEN = re.compile(
    r'[\s,]*(?:("(?:[^"\\]|\\.)*")|\[((?:[0-9]{1,18}[ ,]+)*[0-9]{1,18})\]|([\[\](){}])|([^\s,\[\](){}"]+))'
)
"""A text, a vector of plain numbers, a mark, or a word. Such vectors make up most of a long history."""
_REST = re.compile(r"[\s,]*\Z")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_KEYWORD = re.compile(r":[^:\s]+")
_CLOSING = {"[": "]", "{": "}", "(": ")"}


class Keyword(msgspec.Struct, frozen=True):
    """A keyword, such as ``:invoke``, without its colon."""

    name: str

    def __repr__(self) -> str:
        """As it is written."""
        return f":{self.name}"


class Other(msgspec.Struct, frozen=True):
    """Something that is no value of a history, as it is written; of a list or set only how it begins."""

    text: str


class Table(msgspec.Struct, frozen=True):
    """A map from keywords, numbers or texts."""

    entries: dict["Keyword | int | str", "Form"]


Form: TypeAlias = int | str | Keyword | Table | Other | tuple["Form", ...] | None


class _Token(NamedTuple):
    kind: int
    text: str


_TEXT, _NUMBERS, _MARK, _WORD = 1, 2, 3, 4


def parse_forms(text: str) -> list[Form]:
    """All values in a text."""
    tokens = _tokens(text)
    return [_form(token, tokens, DEPTH_MAX) for token in tokens]


def refuse_other(form: Form) -> None:
    """Raise an error if something in a form is no value of a history."""
    if isinstance(form, Other):
        raise LocalError(f"{form.text[:40]!r} is no number of 64 bits, text, keyword or nil")
    if isinstance(form, tuple) and not all(type(one) is int for one in form):
        for one in form:
            refuse_other(one)
    if isinstance(form, Table):
        for value in form.entries.values():
            refuse_other(value)


def _tokens(text: str) -> Iterator[_Token]:
    place, match = 0, _TOKEN.match
    while (found := match(text, place)) is not None:
        kind = found.lastindex or 0
        yield _Token(kind, found.group(kind))
        place = found.end()
    if not _REST.match(text, place):
        raise LocalError(f"a text that begins at column {text.index(chr(34), place) + 1} does not end")


def _form(token: _Token, tokens: Iterator[_Token], depth: int) -> Form:
    kind, text = token
    if kind == _NUMBERS:
        return tuple(map(int, text.replace(",", " ").split()))
    if kind == _TEXT:
        return _ESCAPE.sub(_unescaped, text[1:-1])
    if kind == _WORD:
        return _tagged(text, tokens, depth) if text[0] == "#" else _word(text)
    if text not in _CLOSING:
        raise LocalError(f"{text!r} closes nothing")
    if depth == 0:
        raise LocalError(f"vectors and maps are nested more than {DEPTH_MAX} deep")
    items = _items(_CLOSING[text], tokens, depth - 1)
    if text == "(":
        return Other("(")
    return tuple(items) if text == "[" else _table(items)


def _tagged(tag: str, tokens: Iterator[_Token], depth: int) -> Form:
    """The value behind a tag. A `#` before a brace makes a set."""
    following = next(tokens, None)
    if following is None:
        raise LocalError(f"nothing follows the tag {tag[:40]!r}")
    if depth == 0:
        raise LocalError(f"tags are nested more than {DEPTH_MAX} deep")
    if tag != "#":
        return _form(following, tokens, depth - 1)
    if following != (_MARK, "{"):
        raise LocalError("'#' begins nothing")
    _items("}", tokens, depth - 1)
    return Other("#{")


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
    entries: dict[Keyword | int | str, Form] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, Keyword | int | str):
            raise LocalError(f"a key of a map must be a keyword, a number or a text, not {key!r}")
        if key in entries:
            raise LocalError(f"a map has the key {key!r} twice")
        entries[key] = value
    return Table(entries)


def _word(text: str) -> Form:
    if text == "nil":
        return None
    if _KEYWORD.fullmatch(text):
        return Keyword(text[1:])
    if _INTEGER.fullmatch(text) and abs(int(text)) <= INTEGER_MAX:
        return int(text)
    return Other(text)


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise LocalError(f"unknown escape \\{code} in a text")
    return _ESCAPES[code]
