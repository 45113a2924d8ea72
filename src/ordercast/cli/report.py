"""`ordercast report`: the report of a sweep or a reproduction, made again from its tables."""

from pathlib import Path
from typing import Annotated

import typer

from ordercast.cli.output import console


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep or a reproduction.")],
) -> int:
    """Write DIR/report.html from the tables in DIR: one file, for a browser, a phone or a printer.

    It needs neither the traces nor a running Spark, and the same tables always give the same file.

    [bold]Example[/]

    ordercast reproduce baseline --quick --out out && ordercast report out
    """
    from ordercast.report.build import report as build

    console.print(str(build(folder)), markup=False, soft_wrap=True)
    return 0
