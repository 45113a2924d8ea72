"""`ordercast service`: tools for those who write a service."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ordercast.cli.output import console, print_json
from ordercast.core import LocalError
from ordercast.services.rehearsal import Deed, first_difference, first_fault

app = typer.Typer(
    no_args_is_help=True,
    help="Check a service before it is replicated.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def tools() -> None:
    """Check a service before it is replicated."""


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Service: module:Class, or a built-in one.")],
    operations: Annotated[int, typer.Option(help="Number of random operations.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the random operations.")] = 1,
    folder: Annotated[
        Path, typer.Option(help="Folder in which the module is looked for first.", exists=True)
    ] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Check that all replicas of a service would do the same.

    The command runs the same random operations in two processes with different hash seeds, and in a third
    one that saves and restores the service every few operations. Results and states must be equal.
    Differences come from the order of sets, from clocks and random numbers other than those of
    [bold]self.context[/], and from state that a snapshot does not have. Operations are drawn by the types of
    their parameters, or by the static method generate of the class, if it has one. The exit code is 1 if
    there is a difference.

    [bold]Example[/]

    ordercast service check store:Store
    """
    found = _faults(name, folder.resolve(), seed, operations)
    if json:
        print_json({"service": name, "operations": operations, "seed": seed, "faults": found})
    elif found:
        for text in found:
            console.print(f"[red]{name}[/]: ", end="")
            console.print(text, markup=False, soft_wrap=True)
    else:
        console.print(f"{name}: {operations} operations did the same in every process", markup=False)
    return 1 if found else 0


def _faults(name: str, folder: Path, seed: int, operations: int) -> list[str]:
    words = (name, str(folder), str(seed), str(operations))
    one, other = _rehearse(words, "1"), _rehearse(words, "2")
    if fault := first_fault(one):
        number, deed = fault
        return [f"after operation {number}, {deed.operation}, {deed.state[1:]}"]
    found = first_difference(one, other)
    if found is not None:
        return [
            f"two processes differ first at operation {found.number}, {found.one.operation}: {found.text}"
        ]
    found = first_difference(one, _rehearse(words, "1", "restoring"))
    if found is not None:
        return [
            "a replica that restored a snapshot differs first at operation"
            f" {found.number}, {found.one.operation}: {found.text}"
        ]
    return []


def _rehearse(words: tuple[str, ...], hash_seed: str, how: str = "plain") -> list[Deed]:
    """Hold a rehearsal in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "ordercast.services.rehearsal", *words, how],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise LocalError(said[-1] if said else f"the process ended with code {done.returncode}")
    try:
        return msgspec.json.decode(done.stdout, type=list[Deed])
    except msgspec.DecodeError as error:
        raise LocalError(f"the module of {words[0]} prints to standard output, which it must not") from error
