"""TOML files that people write, as typed data, with errors that name the file and the line.

Code that finds a wrong value raises a `KeyedError`. Code that knows the file uses `naming_lines_of`, which
turns the key into a line number.
"""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ordercast.core import LocalError, OptionError, Options, Protocol

T = TypeVar("T")

_TABLE = re.compile(r"\s*\[(\[)?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_WHERE = re.compile(r" - at `\$(.*)`$")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")


class KeyedError(LocalError):
    """A wrong value in a file; `key` says where, such as ``fault[1].host``."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{key}: {what}")
        self.key = key
        self.what = what


@contextmanager
def about(key: str) -> Iterator[None]:
    """Turn every `LocalError` in this context into an error about this key, or about the option it names."""
    try:
        yield
    except OptionError as error:
        raise KeyedError(f"options.{error.option}", str(error)) from error
    except LocalError as error:
        raise KeyedError(key, str(error)) from error


def convert(content: Any, schema: type[T], *, list_keys: bool = False) -> T:
    """Convert plain data to this type; an error names the wrong key."""
    try:
        return msgspec.convert(content, schema)
    except msgspec.ValidationError as error:
        key, what = read_validation_error(str(error), schema, list_keys=list_keys)
        own = error.__cause__
        if isinstance(own, KeyedError):  # the type's own check knows which key is wrong
            key, what = f"{key}.{own.key}".lstrip("."), own.what
        raise KeyedError(key, what) from error


def convert_options(content: dict[str, Any], protocol: Protocol, *, list_keys: bool = False) -> Options:
    """Convert the table ``options`` of a file to the protocol's options."""
    try:
        return msgspec.convert(content, protocol.options)
    except msgspec.ValidationError as error:
        key, what = read_validation_error(str(error), protocol.options, list_keys=list_keys)
        raise KeyedError(f"options.{key}".rstrip("."), f"{what} (of {protocol.name})") from error


def read_validation_error(error: str, schema: Any = None, *, list_keys: bool = False) -> tuple[str, str]:
    """The key that a validation error is about, and what is wrong with it.

    With a type, the error lists the choices for a wrong name. With `list_keys`, it lists the known keys.
    """
    where = _WHERE.search(error)
    what = error[: where.start()] if where else error
    key = where.group(1).lstrip(".") if where else ""
    unknown = _UNKNOWN.search(what)
    if unknown:
        names = _known_keys(schema, key) if schema is not None and list_keys else []
        return f"{key}.{unknown.group(1)}".lstrip("."), f"unknown key{_hint(names)}"
    names = choices(schema, key) if schema is not None and what.startswith("Invalid") else []
    return key, what[0].lower() + what[1:] + _hint(names)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or an error that names it."""
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise LocalError(f"{path}: not TOML: {error}") from error


@contextmanager
def naming_lines_of(path: Path | None) -> Iterator[None]:
    """Add the file and the line to every `KeyedError` in this context."""
    try:
        yield
    except KeyedError as error:
        if path is None:
            raise
        line = _line_of(_lines(_read(path)), error.key)
        place = f"{path}, line {line}" if line else f"{path}"
        raise LocalError(f"{place}: {error}" if error.key else f"{place}: {error.what}") from error


def choices(schema: Any, key: str) -> list[str]:
    """The names allowed at a key such as ``fault[0].kind``; empty if the key is not a choice."""
    *path, last = _parts(key) or [""]
    return list(dict.fromkeys(name for one in _types_at(schema, path) for name in _names(one, last)))


def _known_keys(schema: Any, key: str) -> list[str]:
    """The keys of the table at a key, in data of this type."""
    keys: dict[str, None] = {}
    for one in _types_at(schema, _parts(key)):
        if isinstance(one, inspect.StructType):
            keys |= {one.tag_field: None} if one.tag_field else {}
            keys |= {field.encode_name: None for field in one.fields}
    return list(keys)


def _hint(names: list[str]) -> str:
    return f"; there are: {', '.join(names)}" if names else ""


def _parts(key: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", key)


def _types_at(schema: Any, path: list[str]) -> list[inspect.Type]:
    types = list(_variants(inspect.type_info(schema)))
    for part in path:
        types = [below for one in types for below in _below(one, part)]
    return types


def _variants(one: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(one, inspect.UnionType):
        for variant in one.types:
            yield from _variants(variant)
    elif isinstance(one, inspect.Metadata):
        yield from _variants(one.type)
    else:
        yield one


def _below(one: inspect.Type, part: str) -> Iterator[inspect.Type]:
    match one:
        case inspect.StructType():
            for field in one.fields:
                if field.encode_name == part:
                    yield from _variants(field.type)
        case inspect.VarTupleType() | inspect.ListType():
            yield from _variants(one.item_type)
        case inspect.DictType():
            yield from _variants(one.value_type)


def _names(one: inspect.Type, last: str) -> Iterator[str]:
    if isinstance(one, inspect.StructType) and one.tag_field == last:
        yield str(one.tag)
    for below in _below(one, last):
        match below:
            case inspect.LiteralType():
                yield from map(str, below.values)
            case inspect.EnumType():
                yield from (str(member.value) for member in below.cls)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error


def _lines(text: str) -> dict[str, int]:
    """The line of every key, by its path such as ``fault[1].at_ms``; a rough parser is enough."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _TABLE.match(line)
        key = _KEY.match(line)
        if header:
            *above, last = header.group(2).split(".")
            table = ""
            for part in above:
                table = f"{table}.{part}".lstrip(".")
                # A table below an array of tables belongs to its last entry so far.
                table += f"[{counts[table]}]" if table in counts else ""
            table = f"{table}.{last}".lstrip(".")
            if header.group(1):
                counts[table] = counts.get(table, -1) + 1
            table += f"[{counts[table]}]" if table in counts else ""
            lines[table] = number
        elif key:
            name = key.group(1).strip("\"'")
            lines.setdefault(f"{table}.{name}".lstrip("."), number)
    return lines


def _line_of(lines: dict[str, int], dotted: str) -> int | None:
    """The line of a path, or of its nearest parent with a line (keys of inline tables have none)."""
    while dotted:
        if dotted in lines:
            return lines[dotted]
        dotted = re.sub(r"(\.[^.\[]+|\[[^\]]*\]|^[^.\[]+)$", "", dotted)
    return None
