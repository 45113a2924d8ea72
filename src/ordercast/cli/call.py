"""`ordercast call`: call an operation of a replicated service."""

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.output import console, errors, print_json
from ordercast.core import (
    LocalError,
    OperationType,
    Refused,
    Service,
    ServiceFailed,
    ServiceType,
    message_name,
)
from ordercast.net.api.connect import TIMEOUT_S, Calling
from ordercast.net.api.open_calls import Unknown
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.host.loop import run
from ordercast.services import service_class

REFUSED, FAILED, UNKNOWN = 1, 3, 4
"""Exit codes if there is no answer; 2 is that of wrong input."""


def call(
    operation: Annotated[
        str | None,
        typer.Argument(metavar="[OPERATION]", help="Name of the operation. Default: list them all."),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="Its arguments, as words or as JSON.")
    ] = None,
    group: Annotated[str, typer.Option(help="Group to call, if the cluster has several.")] = "",
    host: Annotated[
        int | None, typer.Option(help="Host of the client. Default: the first that nobody runs.", metavar="N")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the answer.", min=0.01)] = TIMEOUT_S,
    config: ConfigOption = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Call an operation of the service that a running cluster replicates, and print its result.

    The command runs one of the cluster's clients for as long as the call takes. Without an operation, it
    lists those of the service. Words become values by the types of the operation: text stays text, and
    numbers, lists and other values are written as JSON. Write two dashes before a negative number. A result
    that is text is printed as it is, nothing if there is no value, and anything else as JSON; [bold]--json[/]
    tells them apart.

    The exit code is 0 if the service answered, 1 if it refused, 2 if the input is wrong, 3 if the operation
    failed in the service, and 4 if no answer came in time: then the operation may have been executed, or
    may still be.

    [bold]Examples[/]

    ordercast call put a 1

    ordercast call get a --json

    ordercast call add -- -3

    ordercast call
    """
    cluster = read_config(config)
    if not cluster.service:
        raise LocalError(f"{cluster.file}: the cluster has no service; it orders messages: ordercast send")
    number = list(cluster.groups).index(group) if group in cluster.groups else 0
    service = service_class(cluster.service, cluster.file.parent, number)
    if operation is None:
        _list(service, json)
        return 0
    kind = ServiceType.of(service).find(operation)
    payload = kind.from_words(arguments or [])
    calling = Calling(cluster.file, service, group, host, timeout, "")
    return _call(cluster, calling, kind, payload, json)


def _call(cluster: Cluster, calling: Calling, kind: OperationType, payload: bytes, json: bool) -> int:
    async def main() -> object:
        async with calling as calls:
            return await calls.call(kind, payload)

    try:
        result = run(main())
    except Refused as refusal:
        return _no_answer(kind, "refused", str(refusal), REFUSED, json)
    except ServiceFailed as failure:
        return _no_answer(kind, "failed", str(failure), FAILED, json)
    except Unknown as unknown:
        name = message_name(unknown.message)
        hint = f"; ask the replicas: ordercast why {name} --config {cluster.file}"
        return _no_answer(kind, "unknown", f"{unknown}{hint}", UNKNOWN, json, message=name)
    if json:
        print_json({"operation": kind.name, "outcome": "answered", "result": result})
    elif isinstance(result, str):
        console.print(result, markup=False, soft_wrap=True)
    elif result is not None:
        console.print(msgspec.json.encode(result).decode(), markup=False, soft_wrap=True)
    return 0


def _no_answer(kind: OperationType, outcome: str, text: str, code: int, json: bool, **more: str) -> int:
    if json:
        print_json({"operation": kind.name, "outcome": outcome, "error": text, **more})
    else:
        errors.print(f"ordercast: {kind.name}: {outcome}: {text}", markup=False, soft_wrap=True)
    return code


def _list(service: type[Service], json: bool) -> None:
    kinds = ServiceType.of(service).operations.values()
    if json:
        operations = [
            {"name": kind.name, "signature": kind.signature, "reads": kind.reads, "summary": kind.summary}
            for kind in kinds
        ]
        print_json({"service": service.__name__, "operations": operations})
        return
    table = Table(
        "operation", "reads", "what it does", title=service.__name__, box=None, title_justify="left"
    )
    for kind in kinds:
        table.add_row(f"{kind.name}{kind.signature}", "yes" if kind.reads else "", kind.summary)
    console.print(table)
