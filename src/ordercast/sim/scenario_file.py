"""Scenarios as TOML files, with errors that name the line."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ordercast.core import LocalError
from ordercast.sim.scenario import Scenario

_TABLE = re.compile(r"\s*\[(\[)?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_WHERE = re.compile(r" - at `\$(.*)`$")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_FILES = (("network", "latency", "file"), ("workload", "file"))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario; files that it names are relative to its own folder."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LocalError(f"{path}: not TOML: {error}") from error
    for keys in _FILES:
        _resolve(content, keys, path.parent)
    try:
        return msgspec.convert(content, Scenario)
    except msgspec.ValidationError as error:
        raise LocalError(_complaint(path, text, str(error))) from error


def _complaint(path: Path, text: str, error: str) -> str:
    lines = _lines(text)

    def place(dotted: str) -> str:
        line = _line_of(lines, dotted)
        return f"{path}, line {line}: {dotted}" if line else f"{path}: {dotted}"

    found = complaint(error, place)
    return found if found.startswith(str(path)) else f"{path}: {found}"


def _resolve(content: dict[str, Any], keys: tuple[str, ...], folder: Path) -> None:
    table: Any = content
    for key in keys[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    named = table.get(keys[-1]) if isinstance(table, dict) else None
    if named and isinstance(named, str):
        table[keys[-1]] = str(folder / named)


def complaint(error: str, place: Callable[[str], str] = str) -> str:
    """A validation error in plain words; `place` says where a dotted key stands, if it can."""
    where = _WHERE.search(error)
    what = error[: where.start()] if where else error
    dotted = where.group(1).lstrip(".") if where else ""
    unknown = _UNKNOWN.search(what)
    if unknown:
        dotted = f"{dotted}.{unknown.group(1)}".lstrip(".")
        return f"{place(dotted)}: unknown key"
    what = what[0].lower() + what[1:]
    return f"{place(dotted)}: {what}" if dotted else what


def _lines(text: str) -> dict[str, int]:
    """The line of every key, by its path: ``fault[1].at_ms``; a rough reader is enough for that."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _TABLE.match(line)
        key = _KEY.match(line)
        if header:
            first, dot, rest = header.group(2).partition(".")
            if header.group(1) and not dot:
                counts[first] = counts.get(first, -1) + 1
            # A table below an array of tables belongs to its last entry so far.
            table = f"{first}[{counts[first]}]{dot}{rest}" if first in counts else f"{first}{dot}{rest}"
            lines[table] = number
        elif key:
            name = key.group(1).strip("\"'")
            lines.setdefault(f"{table}.{name}".lstrip("."), number)
    return lines


def _line_of(lines: dict[str, int], dotted: str) -> int | None:
    """The line of a path, or of the nearest part of it that has one (inline tables have none)."""
    while dotted:
        if dotted in lines:
            return lines[dotted]
        dotted = re.sub(r"(\.[^.\[]+|\[[^\]]*\]|^[^.\[]+)$", "", dotted)
    return None
