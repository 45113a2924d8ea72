"""Where the sources name something: which files would have to change for one more of its kind.

A name is counted where the code says it, not where a comment or a docstring does. Files that are about one
protocol (below `protocols/`, or with a protocol's name in their path) or about parts of protocols
(`components/`) are left out: they make deliveries, or are written for what one protocol delivers, so that a
new kind does not touch them.
"""

import ast
import io
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ordercast.catalogue import protocol_names
from tests.tidy import SOURCE, imports, load

PACKAGE = SOURCE / "ordercast"


@cache
def source_files() -> tuple[str, ...]:
    """All sources that are not about one protocol, by their paths below the package."""
    paths = (path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py")))
    return tuple(path for path in paths if not _about_a_protocol(path))


def _about_a_protocol(path: str) -> bool:
    return path.startswith(("protocols/", "components/")) or any(name in path for name in protocol_names())


def files_naming(words: Iterable[str]) -> set[str]:
    """The files whose code has one of these words as a name."""
    wanted = frozenset(words)
    return {path for path in source_files() if not wanted.isdisjoint(_names(path))}


def files_saying(text: str) -> set[str]:
    """The files whose code has a string that is just this."""
    return {path for path in source_files() if text in _strings(path)}


def files_importing(module: str) -> set[str]:
    """The files that import a module of the package, or something from it."""
    start = f"ordercast.{module}."
    return {path for path in source_files() if any(f"{name}.".startswith(start) for name in _imports(path))}


@cache
def _imports(path: str) -> set[str]:
    return {name for _, name in imports(load(PACKAGE / path, SOURCE))}


@cache
def _names(path: str) -> set[str]:
    lines = io.StringIO((PACKAGE / path).read_text(encoding="utf-8"))
    return {token.string for token in tokenize.generate_tokens(lines.readline) if token.type == tokenize.NAME}


@cache
def _strings(path: str) -> set[object]:
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def patch(path: Path, changes: Iterable[tuple[str, str]]) -> None:
    """Replace some texts of a file, each of which is there once."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, f"{path}: {old!r}"
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
