"""Scenarios as TOML files, with errors that name the line."""

from pathlib import Path
from typing import Any

import msgspec

from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.toml_file import naming_lines_of, read_toml

_FILES = (("network", "latency", "file"), ("workload", "file"))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario. Paths in it are relative to the folder of the scenario file."""
    content = _load(path)
    with naming_lines_of(path):
        return to_scenario(content)


def load_content(path: Path) -> dict[str, Any]:
    """A scenario as plain data, in which something may be changed before it is read. Its faults still name
    roles, which may be at other hosts then."""
    content: dict[str, Any] = msgspec.to_builtins(load_scenario(path))
    return content | {"fault": _load(path).get("fault", [])}


def _load(path: Path) -> dict[str, Any]:
    content = read_toml(path)
    resolve_files(content, path.parent)
    return content


def resolve_files(content: dict[str, Any], folder: Path) -> list[Path]:
    """Resolve the paths in a scenario relative to a folder, and return the files that the scenario names."""
    found = (_resolve(content, keys, folder) for keys in _FILES)
    return [path for path in found if path]


def _resolve(content: dict[str, Any], keys: tuple[str, ...], folder: Path) -> Path | None:
    table: Any = content
    for key in keys[:-1]:
        table = table.get(key) if isinstance(table, dict) else None
    named = table.get(keys[-1]) if isinstance(table, dict) else None
    if not named or not isinstance(named, str):
        return None
    table[keys[-1]] = str(folder / named)
    return folder / named
