"""The rules of style that a test can enforce, each a function from a module to its faults.

`tests/unit/test_tidy.py` holds the sources to them, and proves each rule on small snippets. What
the rules know about sets is in `tests/tidy_sets.py`, and about layers in `tests/tidy_layers.py`.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tidy_layers import APART, MAY_IMPORT, PEERS, PURE, layer_of
from tests.tidy_sets import set_order_leaks

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
LINES_MAX = {"src": 399, "tests": 500, "benchmarks": 500}
"""Lines of a file, by folder."""

PURE_THIRD_PARTY = frozenset({"msgspec"})
SEEDED = frozenset({"ordercast.core.service"})
"""Modules that may make a generator, from a seed: replicas must draw the same numbers for an operation."""
ENTROPY = frozenset(
    {
        "asyncio",
        "concurrent",
        "datetime",
        "multiprocessing",
        "os",
        "random",
        "secrets",
        "socket",
        "threading",
        "time",
        "uuid",
    }
)
UNSAFE_MODULES = frozenset({"cloudpickle", "dill", "marshal", "pickle", "shelve"})


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file; `name` is its dotted name."""

    name: str
    text: str
    tree: ast.Module
    package: bool = False

    @property
    def layer(self) -> str:
        """The layer it belongs to; empty for the root of `ordercast` and for what is elsewhere."""
        return layer_of(self.name)


Fault = tuple[int, str]


def parse(name: str, text: str, *, package: bool = False) -> Module:
    """A module from its source text."""
    return Module(name, text, ast.parse(text), package)


def load(path: Path, base: Path) -> Module:
    """The module in a file, named by its place below `base`."""
    parts = path.relative_to(base).with_suffix("").parts
    package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if package else parts)
    return parse(name, path.read_text(encoding="utf-8"), package=package)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Every imported name with its line, absolute: `from a.b import c` gives `a.b.c`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = module.name.split(".")
                kept = parts[: len(parts) - node.level + module.package]
                origin = ".".join([*kept, origin] if origin else kept)
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def layering(module: Module) -> Iterator[Fault]:
    """Imports go downwards only, and one protocol does not know another."""
    if not module.layer:
        return
    allowed = MAY_IMPORT.get(module.layer)
    if allowed is None:
        yield 1, f"package {module.layer!r} has no place in MAY_IMPORT"
        return
    for line, name in imports(module):
        if name.split(".")[0] != "ordercast":
            continue
        target = layer_of(name)
        if target == module.layer:
            yield from _across_protocols(module, line, name.split("."))
        elif target not in allowed:
            yield line, f"{module.layer} may not import {name}"


def _across_protocols(module: Module, line: int, target: list[str]) -> Iterator[Fault]:
    own = module.name.split(".")
    if module.layer not in PEERS or len(own) < 3 or len(target) < 3:
        return
    # A module directly below serves all of them; only packages are protocols.
    is_protocol = (SOURCE.joinpath(*target[:3]) / "__init__.py").exists()
    if is_protocol and target[2] != own[2]:
        yield line, f"protocol {own[2]} may not import protocol {target[2]}"


def third_parties(module: Module) -> Iterator[Fault]:
    """PySpark stays in the pipeline, and pure packages depend on almost nothing."""
    for line, name in imports(module):
        top = name.split(".")[0]
        if top in {"pyspark", "py4j"} and module.layer not in {"", "pipeline"}:
            yield line, f"only the pipeline may import {top}"
        elif (
            module.layer in PURE
            and top not in PURE_THIRD_PARTY
            and top not in sys.stdlib_module_names
            and top != "ordercast"
        ):
            yield line, f"{module.layer} may not import the third party {top}"


def entropy(module: Module) -> Iterator[Fault]:
    """Pure packages ask no clock, no dice, no memory address, and depend on no order of sets."""
    if module.layer not in PURE:
        return
    for line, name in imports(module):
        # The type is welcome: a process is handed its own generator.
        if name.split(".")[0] in ENTROPY and name != "random.Random":
            yield line, f"{module.layer} may not import {name}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            if _called(node) in {"hash", "id"}:
                yield node.lineno, f"{_called(node)}() differs from run to run"
            elif _called(node) == "Random" and not (node.args and module.name in SEEDED):
                yield node.lineno, "a generator is handed in, not made here"
        elif (
            isinstance(node, ast.keyword)
            and node.arg == "key"
            and isinstance(node.value, ast.Name)
            and node.value.id in {"hash", "id"}
        ):
            yield node.value.lineno, f"{node.value.id} as a key differs from run to run"
    yield from set_order_leaks(module.tree)


def unsafe(module: Module) -> Iterator[Fault]:
    """No bytes are ever run as code."""
    for line, name in imports(module):
        if name.split(".")[0] in UNSAFE_MODULES:
            yield line, f"{name.split('.')[0]} runs what it reads"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _called(node) in {"eval", "exec"}:
            yield node.lineno, f"{_called(node)}() runs text as code"


def printing(module: Module) -> Iterator[Fault]:
    """Only the command line prints."""
    if module.layer == "cli":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _called(node) == "print":
            yield node.lineno, "print() outside cli"


def docstrings(module: Module) -> Iterator[Fault]:
    """Every module says what it is for."""
    if not (ast.get_docstring(module.tree) or "").strip():
        yield 1, "no module docstring"


def length(module: Module) -> Iterator[Fault]:
    """A file is split before it becomes too long to read."""
    lines, limit = len(module.text.splitlines()), LINES_MAX.get(module.name.split(".")[0], LINES_MAX["src"])
    if lines > limit:
        yield limit + 1, f"{lines} lines, and {limit} is the limit"


def class_names(modules: Iterable[Module]) -> Iterator[str]:
    """A class name means one thing in a package; protocols are packages, and judges are written twice."""
    places: dict[tuple[str, str], list[str]] = {}
    for module in modules:
        home = ".".join(module.name.split(".")[:3]) if module.layer in APART else module.name.split(".")[1:2]
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault((str(home), node.name), []).append(module.name)
    for (_, name), found in places.items():
        if len(found) > 1:
            yield f"{name} in {' and '.join(found)}"


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""
