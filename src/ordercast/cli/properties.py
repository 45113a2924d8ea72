"""The list of properties that runs are judged by, from the registry."""

from collections.abc import Sequence

import typer
from rich.table import Table

from ordercast.cli.output import console
from ordercast.judge import PROPERTIES, Property


def at_end_named(*, serves: bool, properties: Sequence[Property] = PROPERTIES) -> str:
    """The names of the properties that are judged only in complete runs: ``agreement and validity``.

    `serves`: the run has a service.
    """
    at_end = [declared for declared in properties if declared.at_end and (serves or not declared.of_services)]
    *first, last = [declared.name for declared in at_end]
    return " and ".join(filter(None, (", ".join(first), last)))


def properties_table(properties: Sequence[Property] = PROPERTIES) -> Table:
    """A table of what each property states, and which runs are judged by it."""
    table = Table.grid(padding=(0, 2))
    for declared in properties:
        table.add_row(f"[bold]{declared.name}[/]", declared.statement, f"[dim]{declared.words}[/]")
    return table


def print_properties(wanted: bool) -> None:
    """List the properties and exit, if the user asked for that."""
    if wanted:
        console.print(properties_table())
        raise typer.Exit
