"""Scenarios as TOML files, with errors that name the line."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ordercast.core import LocalError
from ordercast.sim.scenario import Scenario, ScenarioError, to_scenario

_TABLE = re.compile(r"\s*\[(\[)?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_FILES = (("network", "latency", "file"), ("workload", "file"))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario; files that it names are relative to its own folder."""
    content = read_toml(path)
    resolve_files(content, path.parent)
    with naming_lines_of(path):
        return to_scenario(content)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or an error that names it."""
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise LocalError(f"{path}: not TOML: {error}") from error


def resolve_files(content: dict[str, Any], folder: Path) -> list[Path]:
    """Take the files that a scenario names as relative to this folder; returns those that it names."""
    found = (_resolve(content, keys, folder) for keys in _FILES)
    return [path for path in found if path]


@contextmanager
def naming_lines_of(path: Path | None) -> Iterator[None]:
    """Whatever is wrong with a scenario in here, say in which line of its file."""
    try:
        yield
    except ScenarioError as error:
        if path is None:
            raise
        line = _line_of(_lines(_read(path)), error.key)
        place = f"{path}, line {line}" if line else f"{path}"
        raise LocalError(f"{place}: {error}" if error.key else f"{place}: {error.what}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error


def _resolve(content: dict[str, Any], keys: tuple[str, ...], folder: Path) -> Path | None:
    table: Any = content
    for key in keys[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    named = table.get(keys[-1]) if isinstance(table, dict) else None
    if not named or not isinstance(named, str):
        return None
    table[keys[-1]] = str(folder / named)
    return folder / named


def _lines(text: str) -> dict[str, int]:
    """The line of every key, by its path: ``fault[1].at_ms``; a rough reader is enough for that."""
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
    """The line of a path, or of the nearest part of it that has one (inline tables have none)."""
    while dotted:
        if dotted in lines:
            return lines[dotted]
        dotted = re.sub(r"(\.[^.\[]+|\[[^\]]*\]|^[^.\[]+)$", "", dotted)
    return None
