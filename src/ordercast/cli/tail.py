"""`ordercast tail`: show what a receiver of a running cluster delivers."""

import base64
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.hosts import reach_node
from ordercast.cli.output import console, errors
from ordercast.core import LocalError, Membership, NodeId, format_ns
from ordercast.net.cluster.cluster import Cluster

PAYLOAD_SHOWN = 200
"""Bytes of a payload that are shown to people; --json has all bytes."""


def tail(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group to watch.")],
    node: Annotated[
        int | None, typer.Option(help="Node of the receiver. Default: the first receiver that answers.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Exit after this many messages.")
    ] = None,
    config: ConfigOption = CONFIG,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, with payloads in base64.")
    ] = False,
) -> int:
    """Show what a receiver delivers from now on, in its order.

    If the protocol promises total order, all receivers of a group deliver in the same order: watch two of
    them and compare. Each line has the name of the message ([dim]3#17[/] is message 17 of node 3), the time
    since its submission, and its payload. Drop notifications and views appear at their places in the order.
    If the terminal is too slow, some messages are not shown, and a line says how many.

    [bold]Examples[/]

    ordercast tail orders

    ordercast tail orders --node 2 --json -n 100
    """
    cluster = read_config(config)
    nodes = _receivers(cluster, group, node)
    if node is None and cluster.plan().guarantees.membership is not Membership.FIXED:
        nodes = _inside(cluster, group, nodes)
    left = count
    with reach_node(cluster, nodes, "a receiver of that group") as (receiver, client):
        lines = client.tail([group], receiver, count)
        next(lines)
        if not json:
            errors.print(f"node {receiver} delivers in group {group}:", style="dim", highlight=False)
        for line in lines:
            _show(line, json)
            if "message" in line and left is not None:
                left -= 1
    if left != 0:
        raise LocalError(f"host {client.host} has stopped")
    return 0


def _receivers(cluster: Cluster, group: str, node: NodeId | None) -> list[NodeId]:
    if group not in cluster.groups:
        raise LocalError(f"unknown group '{group}'; the groups are: {', '.join(cluster.groups)}")
    plan = cluster.plan()
    members = list(plan.groups[list(cluster.groups).index(group)])
    if plan.guarantees.membership is not Membership.FIXED:
        everybody = {node for nodes in plan.groups.values() for node in nodes}.union(plan.joiners)
        members += sorted(everybody.difference(members))
    if node is None:
        return members
    if node not in members:
        known = ", ".join(map(str, members))
        raise LocalError(f"node {node} is not a receiver of {group}; the receivers are: {known}")
    return [node]


def _inside(cluster: Cluster, group: str, nodes: list[NodeId]) -> list[NodeId]:
    """Those of the receivers that are in the group now, as their hosts say; all if no host answers."""
    number, asked = list(cluster.groups).index(group), False
    for node in nodes:
        with suppress(LocalError), reach_node(cluster, [node], "a receiver") as (_, client):
            joined = client.status().get("joined", {})
            asked = True
            if number in joined.get(str(node), ()):
                return [node]
    if asked:
        names = ", ".join(map(str, nodes))
        raise LocalError(
            f"nobody that answers receives group '{group}' now; name a receiver to wait until it does:"
            f" --node {names}"
        )
    return nodes


def _show(line: dict[str, Any], json: bool) -> None:
    if json:
        print(msgspec.json.encode(line).decode(), flush=True)
    else:
        console.print(line_text(line), soft_wrap=True)


def line_text(line: dict[str, Any]) -> Text:
    """A delivery as one line for people."""
    if "message" in line:
        late = " (out of order)" if line.get("out_of_order") else ""
        latency = format_ns(line["latency_ns"], 3)
        return Text.assemble(
            (f"{line['message']:<12}", "bold"), f"{latency:>8}  ", payload_text(line["payload"]), late
        )
    if "dropped" in line:
        return Text("dropped: number {number} of issuer {issuer}".format(**line["dropped"]), "red")
    if "view" in line:
        view = line["view"]
        change = f", issuer {view.get('issuer')} {view['change']}" if view["change"] else ""
        members = "members " + ", ".join(map(str, view["members"]))
        return Text(
            f"view {view['config']} of {view['group']}{change}: {members} {view['note']}".rstrip(), "cyan"
        )
    if "lost" in line:
        return Text(f"{line['lost']} messages not shown, because the reader is too slow", "yellow")
    return Text(", ".join(f"{name} {value}" for name, value in line.items()))


def payload_text(payload: str) -> str:
    """The payload as printable text, with control characters escaped."""
    content = base64.b64decode(payload)
    text = content[:PAYLOAD_SHOWN].decode("utf-8", errors="backslashreplace")
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe + (f" ... ({len(content)} bytes)" if len(content) > PAYLOAD_SHOWN else "")
