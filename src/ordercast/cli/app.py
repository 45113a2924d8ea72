"""The application behind the command: its subcommands, and how their errors are reported."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from ordercast.cli import INTERRUPTED
from ordercast.cli.output import console, errors
from ordercast.core import OrdercastError, exception_text

READER_GONE = 141
"""The exit code that a shell reports for a program that SIGPIPE stopped."""
DEFECT = 70
"""Exit code for a defect in ordercast itself (EX_SOFTWARE of sysexits.h)."""

COMMANDS = (
    "protocols",
    "epto",
    "atoms",
    "simulate",
    "live",
    "swarm",
    "conformance",
    "sweep",
    "replay",
    "shrink",
    "check",
    "history",
    "model",
    "reproduce",
    "report",
    "demo",
    "cluster",
    "node",
    "call",
    "gateway",
    "service",
    "send",
    "tail",
    "why",
    "top",
    "bench",
)
"""Each is a module of this package. The module has a function of that name, or its own application `app`."""


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Build the application, with only the requested command if one is named: each command imports much."""
    app = typer.Typer(
        name="ordercast",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    asked = [name for name in COMMANDS if [name] == list(arguments[:1])]
    for name in asked or COMMANDS:
        module = import_module(f"ordercast.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"ordercast {version('ordercast')}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Totally ordered group communication: simulate protocols, inject faults, and check the order."""


def run_app(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit code. Bad input never shows a traceback."""
    try:
        command = typer.main.get_command(build_app(arguments))
        result = command.main(arguments, prog_name="ordercast", standalone_mode=False)
        if result == INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if message:  # an empty message means that the help was shown
            _complain(f"{message} (try: ordercast --help)")
        return 2
    except OrdercastError as error:
        _complain(str(error))
        return 2
    except MemoryError:
        _complain("not enough memory for this command")
        return 2
    except typer.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer's answer to it
            return _reader_gone()
        raise
    except OSError as error:
        _complain(f"system error: {error}")
        return 2
    except Exception as error:
        if os.environ.get("ORDERCAST_DEBUG"):
            raise
        _complain(f"defect in ordercast: {exception_text(error)}; set ORDERCAST_DEBUG=1 for the traceback")
        return DEFECT


def _reader_gone() -> int:
    """The reader closed the pipe: print nothing more, also not at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE


def _complain(text: str) -> None:
    errors.print(f"ordercast: {' '.join(text.split())}", markup=False, soft_wrap=True)
