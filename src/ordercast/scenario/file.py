"""Scenarios as TOML files, with errors that name the line."""

from pathlib import Path
from typing import Any

from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.toml_file import naming_lines_of, read_toml

_FILES = (("network", "latency", "file"), ("workload", "file"))


def load_scenario(path: Path) -> Scenario:
    """Read a scenario. Paths in it are relative to the folder of the scenario file."""
    content = read_toml(path)
    resolve_files(content, path.parent)
    with naming_lines_of(path):
        return to_scenario(content)


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
