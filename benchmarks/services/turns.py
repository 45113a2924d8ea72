"""Contenders take turns within each round; for comparisons that are told alike."""

import json
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.services.contender import MeasureError


class Named(Protocol):
    """Who takes part."""

    name: str

    def missing(self) -> str:
        """What is not installed here; empty if nothing is."""


C = TypeVar("C", bound=Named)
K = TypeVar("K", bound=str | int)
F = TypeVar("F")


@dataclass(frozen=True)
class Comparison(Generic[C, K, F]):
    """What is measured of whom, and how it is told."""

    package: str
    about: str | None
    everybody: Sequence[C]
    tasks: Sequence[K]
    measure: Callable[[C, K, float, Path], F]
    """Measures one task of a contender for so many seconds, in a folder of its own."""
    tell: Callable[[K, F], str]
    """A line on that, without the name."""
    report: Callable[[dict[str, dict[K, list[F]]], Mapping[str, str]], dict[str, object]]
    table: Callable[[dict[str, dict[K, list[F]]]], Table]
    width: int

    def run(self, seconds: float) -> None:
        """Measure as the command line says, and print."""
        chosen = parser_of(f"python -m {self.package}", self.about, self.everybody, seconds).parse_args()
        console = Console(stderr=True, highlight=False)
        here, absent = present(self.everybody, chosen.only, console)
        measured = in_turns(
            here,
            self.tasks,
            chosen.rounds,
            lambda contender, task: self._attempt(contender, task, chosen.seconds, console),
        )
        if chosen.json:
            print(json.dumps(self.report(measured, absent), indent=2))
        else:
            Console(highlight=False, width=self.width).print(self.table(measured))

    def _attempt(self, contender: C, task: K, seconds: float, console: Console) -> F | None:
        """A failure is told, and is not the end."""
        prefix = f"ordercast-{self.package.rpartition('.')[2]}-"
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
            try:
                found = self.measure(contender, task, seconds, Path(folder))
            except (MeasureError, OSError, TimeoutError) as error:
                console.print(f"{contender.name}, {task}: {type(error).__name__}: {error}", markup=False)
                return None
        console.print(f"{contender.name}, {self.tell(task, found)}", markup=False)
        return found


def parser_of(prog: str, about: str | None, everybody: Sequence[Named], seconds: float) -> ArgumentParser:
    """The options of a comparison."""
    parser = ArgumentParser(prog=prog, description=about, formatter_class=RawDescriptionHelpFormatter)
    names = ",".join(one.name for one in everybody)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=names, help="contenders, with commas: %(default)s")
    parser.add_argument("--json", action="store_true")
    return parser


def present(everybody: Sequence[C], only: str, console: Console) -> tuple[list[C], dict[str, str]]:
    """Who is wanted and here; and who is absent, and why, which is told."""
    wanted = [one for one in everybody if one.name in only.split(",")]
    absent = {one.name: missing for one in wanted if (missing := one.missing())}
    for name, missing in absent.items():
        console.print(f"{name} is absent: {missing}", markup=False)
    return [one for one in wanted if one.name not in absent], absent


def in_turns(
    here: Sequence[C], tasks: Sequence[K], rounds: int, attempt: Callable[[C, K], F | None]
) -> dict[str, dict[K, list[F]]]:
    """Measure every task of every contender in each round; what fails is left out."""
    measured: dict[str, dict[K, list[F]]] = {one.name: {task: [] for task in tasks} for one in here}
    for _ in range(rounds):
        for task in tasks:
            for contender in here:
                if (found := attempt(contender, task)) is not None:
                    measured[contender.name][task].append(found)
    return measured


def ratios(found: Mapping[str, Mapping[str, float]], name: str, key: str) -> dict[str, float]:
    """How many times as much the subject does as each of the others."""
    subject = found.get(name)
    if subject is None:
        return {}
    return {other: round(subject[key] / one[key], 3) for other, one in found.items() if other != name}


def figures_table(
    measured: Mapping[str, Mapping[K, Sequence[F]]],
    labels: Mapping[K, str],
    figures: Mapping[str, str],
    middle: Callable[[Sequence[F]], dict[str, float]],
) -> Table:
    """A row for each contender. `figures` has the heads of columns by the keys of what `middle` gives."""
    columns = [f"{label}: {head}" for label in labels.values() for head in figures.values()]
    table = Table("contender", *columns, "violations")
    for name, found in measured.items():
        cells, wrong = [], 0.0
        for task in labels:
            taken = middle(found[task]) if found[task] else {}
            wrong += taken.get("violations", 0)
            cells += [f"{taken[key]:,.0f}" if taken else "-" for key in figures]
        table.add_row(name, *cells, f"{wrong:.0f}")
    return table
