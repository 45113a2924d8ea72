"""`ordercast protocols`: list the protocols and what each promises."""

from typing import Annotated

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from ordercast.catalogue import broken_protocols, find_protocol, protocol_names
from ordercast.cli.output import console, print_json
from ordercast.core import Protocol


def protocols(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the protocols with their guarantees, options and actions.

    [dim]order[/]: whether messages are delivered in one order within a group, for each two groups that
    overlap, or across all groups.
    [dim]agreement[/]: whether all receivers deliver a message that one of them delivers.
    [dim]gaps[/]: whether a missing message is silent, notified, or never happens.
    [dim]membership[/]: whether receivers may join and leave groups while the protocol runs.
    [dim]action[/]: what `ordercast cluster act` can do with a live cluster of this protocol.
    [dim]newcomers[/]: the roles of hosts that `ordercast cluster add-host` can take in while a cluster runs.
    [dim]options[/]: with their defaults, for the table `options` of a scenario; --json has nested ones too.
    """
    broken = broken_protocols()
    known = [find_protocol(name) for name in protocol_names() if name not in broken]
    if json:
        print_json({"protocols": [_object(protocol) for protocol in known], "broken": broken})
        return 0
    for protocol in known:
        console.print(f"[bold]{protocol.name}[/]  {protocol.summary}")
        console.print(f"  [dim]{protocol.paper}; roles: {', '.join(protocol.roles)}[/]")
        table = Table.grid(padding=(0, 2))
        for field, value in msgspec.to_builtins(protocol.guarantees).items():
            text = ", ".join(value) if isinstance(value, list | tuple) else str(value).lower()
            table.add_row(f"  {field}", text)
        table.add_row("  options", _defaults(protocol) or "none")
        newcomers = protocol.all_newcomers({})
        table.add_row("  newcomers", ", ".join(newcomers) or "none: its hosts are fixed")
        for action in protocol.actions:
            table.add_row("  action", f"{action.name}: {action.summary}")
        console.print(table)
        console.print()
    for name, why in broken.items():
        console.print(f"[bold red]{name}[/]  cannot be used: {escape(why)}", soft_wrap=True)
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
        "newcomers": protocol.all_newcomers({}),
        "actions": {action.name: action.summary for action in protocol.actions},
    }
