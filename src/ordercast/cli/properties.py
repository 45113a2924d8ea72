"""The properties that runs are judged by, as the registry has them."""

from collections.abc import Sequence

import typer
from rich.table import Table

from ordercast.cli.output import console
from ordercast.judge import PROPERTIES, Property


def at_end_named(properties: Sequence[Property] = PROPERTIES) -> str:
    """Those that are judged at the end of a complete run only: ``agreement and validity``."""
    return " and ".join(declared.name for declared in properties if declared.at_end)


def properties_table(properties: Sequence[Property] = PROPERTIES) -> Table:
    """What each property says, and when a run is judged by it."""
    table = Table.grid(padding=(0, 2))
    for declared in properties:
        table.add_row(f"[bold]{declared.name}[/]", declared.statement, f"[dim]{declared.words}[/]")
    return table


def print_properties(wanted: bool) -> None:
    """List the properties and end, if that is what the user wants."""
    if wanted:
        console.print(properties_table())
        raise typer.Exit
