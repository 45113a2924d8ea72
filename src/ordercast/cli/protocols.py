"""`ordercast protocols`: what there is, and what each promises."""

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.cli.output import console, print_json
from ordercast.core import Protocol


def protocols(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the protocols with their guarantees, and the options that a scenario can set.

    [dim]order[/]: whether messages are delivered in one order within a group, or across groups.
    [dim]agreement[/]: whether a message that one receiver delivers reaches all of them.
    [dim]gaps[/]: whether a missing message is silent, notified, or never happens.
    [dim]action[/]: what `ordercast cluster act` can ask of a live cluster of this protocol.
    [dim]options[/]: with their defaults, for a scenario's table of that name; --json has nested ones too.
    """
    known = [find_protocol(name) for name in protocol_names()]
    if json:
        print_json({"protocols": [_object(protocol) for protocol in known]})
        return 0
    for protocol in known:
        console.print(f"[bold]{protocol.name}[/]  {protocol.summary}")
        console.print(f"  [dim]{protocol.paper}; roles: {', '.join(protocol.roles)}[/]")
        table = Table.grid(padding=(0, 2))
        for field, value in msgspec.to_builtins(protocol.guarantees).items():
            text = ", ".join(value) if isinstance(value, list | tuple) else str(value).lower()
            table.add_row(f"  {field}", text)
        table.add_row("  options", _defaults(protocol) or "none")
        for action in protocol.actions:
            table.add_row("  action", f"{action.name}: {action.summary}")
        console.print(table)
        console.print()
    return 0


def _defaults(protocol: Protocol) -> str:
    defaults: dict[str, object] = msgspec.to_builtins(protocol.options())
    texts = {
        name: "{...}" if isinstance(value, dict) else str(value).lower() for name, value in defaults.items()
    }
    return ", ".join(f"{name} = {text}" for name, text in texts.items())


def _object(protocol: Protocol) -> dict[str, object]:
    return {
        "name": protocol.name,
        "summary": protocol.summary,
        "paper": protocol.paper,
        "roles": protocol.roles,
        "guarantees": protocol.guarantees,
        "options": msgspec.to_builtins(protocol.options()),
        "actions": {action.name: action.summary for action in protocol.actions},
    }
