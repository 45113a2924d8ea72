"""Contenders take turns within each round; for comparisons that are told alike."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rich.console import Console


class Named(Protocol):
    """Who takes part."""

    name: str

    def missing(self) -> str:
        """What is not installed here; empty if nothing is."""


C = TypeVar("C", bound=Named)
K = TypeVar("K", str, int)
F = TypeVar("F")


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
