"""Writes a scenario as a TOML file that `load_scenario` reads again, without values that are defaults."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ordercast.core import LocalError
from ordercast.scenario.file import resolve_files
from ordercast.scenario.spec import Scenario

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_scenario(path: Path, scenario: Scenario, comment: str = "") -> None:
    """Write a scenario to a file, below a comment."""
    try:
        path.write_text(scenario_toml(scenario, comment), encoding="utf-8")
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from error


def scenario_toml(scenario: Scenario, comment: str = "") -> str:
    """The text of a scenario file. Paths in it are absolute, so it may be put into any folder."""
    content: dict[str, Any] = _plain(scenario)
    resolve_files(content, Path.cwd())
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in content.items() if _is_plain(value)]
    for name, value in content.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(name)}]", *_lines(value)]
        elif not _is_plain(value):
            for table in value:
                lines += ["", f"[[{_key(name)}]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _is_plain(value: object) -> bool:
    """Whether a value is no table and no list of tables."""
    return not isinstance(value, dict) and not _is_tables(value)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _plain(value: Any) -> Any:
    """Plain data: structures become tables without the fields that have their default."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        table = {config.tag_field: config.tag} if config.tag_field else {}
        return table | {name: _plain(own) for name, own in _chosen(value)}
    if isinstance(value, dict):
        return {key: _plain(own) for key, own in value.items() if own is not None}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return msgspec.to_builtins(value)


def _chosen(struct: msgspec.Struct) -> Iterable[tuple[str, Any]]:
    """The fields of a structure that do not have their default."""
    for field in msgspec.structs.fields(struct):
        own = getattr(struct, field.name)
        made = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
        if own is not None and own != made:
            yield field.encode_name, own


def _lines(table: dict[str, Any]) -> Iterable[str]:
    for name, value in table.items():
        if _is_tables(value):
            yield f"{_key(name)} = ["
            yield from (f"  {_value(item)}," for item in value)
            yield "]"
        else:
            yield f"{_key(name)} = {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {_value(own)}" for name, own in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
