"""Style is enforced here, not by memory; and each rule is proved on code that breaks it."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ordercast.net.host.live_host import LiveHost
from tests import tidy
from tests.tidy import Fault, Module, parse
from tests.tidy_layers import MAY_IMPORT, PURE

Rule = Callable[[Module], Iterator[Fault]]

IN_SOURCE: tuple[Rule, ...] = (
    tidy.layering,
    tidy.third_parties,
    tidy.entropy,
    tidy.unsafe,
    tidy.printing,
    tidy.docstrings,
    tidy.length,
)


def report(rule: Rule, folder: Path, base: Path) -> str:
    """The faults of every file in a folder, one a line."""
    return "\n".join(
        f"{path.relative_to(tidy.ROOT)}:{line}: {message}"
        for path in sorted(folder.rglob("*.py"))
        for line, message in sorted(rule(tidy.load(path, base)))
    )


@pytest.mark.parametrize("rule", IN_SOURCE)
def test_source_is_tidy(rule: Rule) -> None:
    assert report(rule, tidy.SOURCE, tidy.SOURCE) == ""


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_other_files_are_short(folder: str) -> None:
    assert report(tidy.length, tidy.ROOT / folder, tidy.ROOT) == ""


def test_a_fault_in_a_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    folder = tmp_path / "ordercast" / "core"
    folder.mkdir(parents=True)
    (folder / "clock.py").write_text('"""Asks the clock."""\n\nimport time\n')
    said = report(tidy.entropy, tmp_path, tmp_path)
    assert said == "ordercast/core/clock.py:3: core may not import time"


def test_the_sources_are_found() -> None:
    names = {tidy.load(path, tidy.SOURCE).name for path in tidy.SOURCE.rglob("*.py")}
    assert {"ordercast", "ordercast.core.errors", "ordercast.java"} <= names


def test_the_layers_have_no_cycle() -> None:
    settled: set[str] = set()
    while ready := {layer for layer, below in MAY_IMPORT.items() if below - {layer} <= settled} - settled:
        settled |= ready
    assert settled == set(MAY_IMPORT)


DRIVERS = {layer for layer in MAY_IMPORT if layer.split(".")[0] in ("sim", "net") or layer == "lab.trial"}
NETWORK = {layer for layer in DRIVERS if layer.startswith("net.")}


def test_no_driver_of_runs_imports_another_but_trials_stand_on_the_network() -> None:
    assert len(NETWORK) > 1
    assert not MAY_IMPORT["sim"] & DRIVERS
    assert MAY_IMPORT["lab.trial"] & DRIVERS == NETWORK
    assert all(MAY_IMPORT[layer] & DRIVERS <= NETWORK for layer in NETWORK)


def test_what_a_run_is_lies_below_all_that_drive_one() -> None:
    assert not MAY_IMPORT["scenario"] & (DRIVERS | {"lab.bench"})
    assert all("scenario" in MAY_IMPORT[name] for name in ("sim", "lab.trial", "lab.bench"))


def faults(rule: Rule, name: str, code: str, *, package: bool = False) -> list[Fault]:
    return list(rule(parse(name, code, package=package)))


BAD_LAYERING = [
    ("ordercast.core.ids", "from ordercast.trace import event"),
    ("ordercast.core.ids", "import ordercast.sim.world"),
    ("ordercast.core.ids", "from ordercast import sim"),
    ("ordercast.core.ids", "from ordercast import __version__"),
    ("ordercast.core.ids", "from ..trace import event"),
    ("ordercast.core.ids", "def late():\n    from ordercast.cli import main"),
    ("ordercast.components.consensus.log", "from ordercast.protocols.hydra import deploy"),
    ("ordercast.judge.online.order", "from ordercast.sim import world"),
    ("ordercast.lab.trial.run", "from ordercast.sim import run"),
    ("ordercast.scenario.spec", "from ordercast.sim import world"),
    ("ordercast.scenario.clients", "from ordercast.net.api import group"),
    ("ordercast.sim.world", "from ordercast.net.host import live_host"),
    ("ordercast.net.host.live_host", "from ordercast.sim import world"),
    ("ordercast.net.host.live_host", "from ordercast.judge import order"),
    ("ordercast.net.links.wire", "from ordercast.net.host import live_host"),
    ("ordercast.net.cluster.open_host", "from ordercast.net.tools import server"),
    ("ordercast.pipeline.sweep", "from ordercast.experiments import hydra"),
    ("ordercast.judge.online.order", "from ordercast.judge.columns import order"),
    ("ordercast.judge.columns.line", "from ordercast.judge.online import order"),
    ("ordercast.judge.online.order", "from ordercast.judge import registry"),
    ("ordercast.components.consensus.log", "from ordercast.components.sampling import draws"),
    ("ordercast.experiments.hydra", "from ordercast.cli import main"),
    ("ordercast.unheard_of.module", "import ordercast.core"),
]
GOOD_LAYERING = [
    ("ordercast.core.ids", "from ordercast.core.errors import LocalError"),
    ("ordercast.core.ids", "from .errors import LocalError"),
    ("ordercast.core.ids", "import collections.abc"),
    ("ordercast.protocols.hydra.receiver", "from ordercast.components.consensus import log"),
    ("ordercast.sim.world", "from ordercast.judge.online import order"),
    ("ordercast.sim.run", "from ordercast.scenario import spec"),
    ("ordercast.lab.trial.run", "from ordercast.scenario import spec"),
    ("ordercast.experiments.hydra", "from ordercast.pipeline import sweep"),
    ("ordercast.cli.main", "from ordercast.lab.bench import run"),
    ("ordercast.judge.online.order", "from ordercast.judge.finding import violation"),
    ("ordercast.net.host.live_host", "from ordercast.net.links import wire"),
    ("ordercast", "from ordercast.net.api import group"),
    ("ordercast.sim.world", "from ordercast.judge import order"),
    ("ordercast.experiments.hydra", "from ordercast.pipeline import sweep"),
    ("ordercast.cli.main", "from ordercast.lab.bench import run"),
    ("ordercast.judge.online.order", "from ordercast.judge.finding import Violation"),
    ("ordercast", "from ordercast.net import node"),
]


@pytest.mark.parametrize(("name", "code"), BAD_LAYERING)
def test_layering_flags(name: str, code: str) -> None:
    assert faults(tidy.layering, name, code)


@pytest.mark.parametrize(("name", "code"), GOOD_LAYERING)
def test_layering_allows(name: str, code: str) -> None:
    assert faults(tidy.layering, name, code) == []


def test_layering_knows_a_package_from_a_module() -> None:
    code = "from .errors import LocalError"
    assert faults(tidy.layering, "ordercast.core", code, package=True) == []
    assert [name for _, name in tidy.imports(parse("ordercast.core", code, package=True))] == [
        "ordercast.core.errors.LocalError"
    ]


def test_one_protocol_does_not_import_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocols = tmp_path / "ordercast" / "protocols"
    for name in ("one", "two"):
        (protocols / name).mkdir(parents=True)
        (protocols / name / "__init__.py").touch()
    monkeypatch.setattr(tidy, "SOURCE", tmp_path)
    here = "ordercast.protocols.one.receiver"
    for code in ("from ordercast.protocols.two import x", "from ordercast.protocols import two"):
        assert faults(tidy.layering, here, code), code
    for code in ("from ordercast.protocols.one.sender import x", "from ..registry import x"):
        assert faults(tidy.layering, here, code) == [], code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ordercast.sim.world", "import pyspark"),
        ("ordercast.cli.main", "from pyspark.sql import SparkSession"),
        ("ordercast.core.ids", "import numpy"),
        ("ordercast.judge.online.order", "import pyarrow as pa"),
        ("ordercast.protocols.epto.peer", "from numpy.random import default_rng"),
    ],
)
def test_third_parties_flags(name: str, code: str) -> None:
    assert faults(tidy.third_parties, name, code)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ordercast.pipeline.session", "from pyspark.sql import SparkSession"),
        ("pyspark_ordercast", "from pyspark.sql.datasource import DataSource"),
        ("ordercast.core.message", "import msgspec\nimport heapq\nfrom ordercast.core import ids"),
        ("ordercast.trace.table", "import pyarrow as pa"),
        ("ordercast.sim.epto", "import numpy as np"),
    ],
)
def test_third_parties_allows(name: str, code: str) -> None:
    assert faults(tidy.third_parties, name, code) == []


BAD_ENTROPY = [
    *(f"import {module}" for module in sorted(tidy.ENTROPY)),
    "from time import monotonic_ns",
    "import os.path",
    "from concurrent.futures import Future",
    "from random import random",
    "from random import Random\ngenerator = Random(7)",
    "hash(x)",
    "id(x)",
    "sorted(xs, key=id)",
    "for x in {1, 2}: use(x)",
    "for x in set(xs): use(x)",
    "for x in frozenset(xs) | ys: use(x)",
    "for x in xs.difference(ys): use(x)",
    "for i, x in enumerate({1, 2}): use(x)",
    "[x for x in {y for y in ys}]",
    "{x: 1 for x in set(xs)}",
    "list(set(xs))",
    "use(*set(xs))",
    "next(iter({1, 2}))",
    "sorted(set(xs), key=len)",
    "class A:\n xs: set[int]\n def f(self):\n  for x in self.xs: use(x)",
    "class A:\n def __init__(self):\n  self.xs: set[int] = set()\n"
    " def f(self):\n  return [x for x in self.xs]",
    "class A:\n def __init__(self):\n  self.xs = set()\n def f(self):\n  return self.xs.pop()",
    "def f(xs: frozenset[int]):\n for x in xs: use(x)",
    "def f(xs: 'set[int]'):\n return tuple(xs)",
    "def f():\n xs = set()\n for x in xs: use(x)",
]
GOOD_ENTROPY = [
    "from random import Random\ndef f(rng: Random) -> float:\n return rng.random()",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n from random import Random",
    "from ordercast.core.time import Nanos",
    "from .time import Nanos",
    "table.hash(x)\nself.id(x)\nx.id",
    "for x in sorted({1, 2}): use(x)",
    "for x in sorted(set(xs) - ys): use(x)",
    "any(x > 1 for x in {1, 2})",
    "{x + 1 for x in set(xs)}",
    "frozenset(x for x in set(xs))",
    "len(set(xs))",
    "max({1, 2})",
    "x in {1, 2}",
    "for x in [1, 2]: use(x)",
    "for x in dict.fromkeys(xs): use(x)",
    "class A:\n xs: list[int]\n def f(self):\n  for x in self.xs: use(x)",
    "class A:\n xs: set[int]\nclass B:\n xs: list[int]\n def f(self):\n  for x in self.xs: use(x)",
    "class A:\n def __init__(self):\n  self.xs = {}\n def f(self):\n  return self.xs.pop(1)",
    "def f(xs: set[int]):\n for x in sorted(xs): use(x)",
    "def f(xs: set[int]): ...\ndef g(xs: list[int]):\n for x in xs: use(x)",
]


@pytest.mark.parametrize("code", BAD_ENTROPY)
@pytest.mark.parametrize("layer", sorted(PURE))
def test_entropy_flags(layer: str, code: str) -> None:
    assert faults(tidy.entropy, f"ordercast.{layer}.module", code)


@pytest.mark.parametrize("code", GOOD_ENTROPY)
def test_entropy_allows(code: str) -> None:
    assert faults(tidy.entropy, "ordercast.core.module", code) == []


@pytest.mark.parametrize("layer", ["sim", "net", "cli", "pipeline"])
def test_entropy_is_free_where_the_world_begins(layer: str) -> None:
    assert faults(tidy.entropy, f"ordercast.{layer}.module", "import time\nimport socket") == []


@pytest.mark.parametrize(
    "code",
    ["import pickle", "from pickle import loads", "import marshal", "eval('1')", "exec('x = 1')"],
)
@pytest.mark.parametrize("name", ["ordercast.core.a", "ordercast.cli.a", "pyspark_ordercast"])
def test_unsafe_flags(name: str, code: str) -> None:
    assert faults(tidy.unsafe, name, code)


@pytest.mark.parametrize("code", ["import json", "model.eval()", "cursor.exec('select 1')"])
def test_unsafe_allows(code: str) -> None:
    assert faults(tidy.unsafe, "ordercast.net.a", code) == []


def test_printing_is_for_the_command_line() -> None:
    assert faults(tidy.printing, "ordercast.sim.world", "print('hello')")
    assert faults(tidy.printing, "ordercast.cli", "print('hello')") == []
    assert faults(tidy.printing, "ordercast.cli.demo", "print('hello')") == []
    assert faults(tidy.printing, "ordercast.sim.world", "console.print('hello')") == []


@pytest.mark.parametrize("code", ["", "x = 1", '""', '"""  """', "# only a comment"])
def test_docstrings_flags(code: str) -> None:
    assert faults(tidy.docstrings, "ordercast.core.a", code)


def test_docstrings_allows() -> None:
    assert faults(tidy.docstrings, "ordercast.core.a", '"""What it is for."""') == []


@pytest.mark.parametrize(("lines", "too_long"), [(1, 0), (399, 0), (400, 1)])
def test_length(lines: int, too_long: int) -> None:
    assert len(faults(tidy.length, "ordercast.core.a", "x = 1\n" * lines)) == too_long
    assert faults(tidy.length, "tests.core.a", "x = 1\n" * lines) == []


def test_a_class_name_means_one_thing_in_a_package() -> None:
    modules = [tidy.load(path, tidy.SOURCE) for path in sorted(tidy.SOURCE.rglob("*.py"))]
    assert list(tidy.class_names(modules)) == []


def test_a_class_name_that_is_used_twice_is_found() -> None:
    code = "class Lane:\n    pass"
    one, other = parse("ordercast.sim.a", code), parse("ordercast.sim.b.c", code)
    assert list(tidy.class_names([one, other])) == ["Lane in ordercast.sim.a and ordercast.sim.b.c"]
    protocols = [parse(f"ordercast.protocols.{name}.a", code) for name in ("one", "two")]
    judges = [parse(f"ordercast.judge.{name}.a", code) for name in ("online", "columns")]
    assert list(tidy.class_names([one, *protocols, *judges])) == []
    assert len(list(tidy.class_names([*judges, parse("ordercast.judge.online.b", code)]))) == 1


def test_the_live_host_only_puts_its_parts_together() -> None:
    lines, _ = inspect.getsourcelines(LiveHost)
    assert len(lines) < 300
    attributes = {
        target.attr
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute)
    }
    assert "_wire" in attributes
    assert all(name.startswith("_") for name in attributes), "its state is its own"
