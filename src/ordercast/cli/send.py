"""`ordercast send`: send messages to a group of a running cluster."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Annotated

import typer

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.hosts import reach_node
from ordercast.cli.output import console, print_json
from ordercast.core import HostId, LocalError, MessageId, NodeId, message_name
from ordercast.core.bundle import MESSAGE_BYTES_MAX
from ordercast.net.cluster.cluster import Cluster

BATCH_MESSAGES = 1_000
BATCH_BYTES = 256 << 10
"""Limits of one request to a sender."""
READ_BYTES = 64 << 10


def send(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group, or several groups: orders,payments")],
    messages: Annotated[
        list[str] | None, typer.Argument(metavar="[MESSAGE]...", help="Messages to send.")
    ] = None,
    stdin: Annotated[bool, typer.Option("--stdin", help="Send each line of standard input.")] = False,
    count: Annotated[
        int | None,
        typer.Option(min=1, help="Number of generated messages, or of repetitions of the given messages."),
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=0, max=MESSAGE_BYTES_MAX, help="Bytes per generated message.")
    ] = None,
    node: Annotated[
        int | None, typer.Option(help="Node of the sender. Default: the first sender that answers.")
    ] = None,
    config: ConfigOption = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Hand messages to a sender of a running cluster.

    The command ends when the sender has taken the messages. [bold]ordercast tail[/] shows their delivery, and
    [bold]ordercast why[/] shows what blocks a message. The name of a message is its sender and the sender's
    own number: [dim]3#17[/] is message 17 of node 3. If the sender is congested, the command waits.

    [bold]Examples[/]

    ordercast send orders "buy 10" "sell 4"

    ordercast send orders,payments "settle" --node 3

    ordercast send orders --count 10000 --size 100

    tail -f events.log | ordercast send orders --stdin
    """
    portions = _portions(messages or [], stdin, count, size)
    cluster = read_config(config)
    groups = [name.strip() for name in group.split(",")]
    for name in groups:
        if name not in cluster.groups:
            raise LocalError(f"unknown group '{name}'; the groups are: {', '.join(cluster.groups)}")
    sent: list[tuple[MessageId, int]] = []
    with reach_node(cluster, _senders(cluster, node), "a sender") as (sender, client):
        for batch in (batch for portion in portions for batch in split(portion)):
            _note(sent, client.submit(groups, batch, sender), len(batch))
    _show(sent, sender, client.host, json)
    return 0


def _senders(cluster: Cluster, node: NodeId | None) -> list[NodeId]:
    senders = list(cluster.plan().senders)
    if node is None:
        return senders
    if node not in senders:
        raise LocalError(f"node {node} is not a sender; the senders are: {', '.join(map(str, senders))}")
    return [node]


def _portions(messages: list[str], stdin: bool, count: int | None, size: int | None) -> Iterable[list[bytes]]:
    """The messages to send, in portions as they become available."""
    if sum((bool(messages), stdin, size is not None)) > 1:
        raise LocalError("choose one of: messages, --stdin, or --size for generated messages")
    if stdin:
        if count is not None:
            raise LocalError("--count works with messages or with --size, not with --stdin")
        return read_lines(lambda: os.read(sys.stdin.fileno(), READ_BYTES))
    if messages:
        payloads = [message.encode(errors="surrogateescape") for message in messages]
        return _chunks(chain.from_iterable(repeat(payloads, count or 1)))
    if count is None and size is None:
        raise LocalError("nothing to send: give a message, --stdin, or --count and --size to generate some")
    return _chunks(made_up(index, size) for index in range(count or 1))


def made_up(index: int, size: int | None) -> bytes:
    """A generated message with its index, of the given size if there is one."""
    text = b"message %d" % index
    return text if size is None else text[:size].ljust(size, b".")


def read_lines(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    """The lines of the input, as many at a time as have arrived."""
    rest = b""
    while chunk := read():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MESSAGE_BYTES_MAX:
            raise LocalError(f"a line of standard input is longer than the limit, {MESSAGE_BYTES_MAX} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _chunks(payloads: Iterable[bytes]) -> Iterator[list[bytes]]:
    left = iter(payloads)
    while chunk := list(islice(left, BATCH_MESSAGES)):
        yield chunk


def split(portion: list[bytes]) -> Iterator[list[bytes]]:
    """The same messages in requests of limited size; a large message goes alone."""
    batch: list[bytes] = []
    size = 0
    for payload in portion:
        if batch and (len(batch) >= BATCH_MESSAGES or size + len(payload) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    if batch:
        yield batch


def _note(sent: list[tuple[MessageId, int]], first: MessageId, count: int) -> None:
    """Note consecutive messages as one range; others may use the same sender in between."""
    if sent and sum(sent[-1]) == first:
        sent[-1] = (sent[-1][0], sent[-1][1] + count)
    else:
        sent.append((first, count))


def _show(sent: list[tuple[MessageId, int]], sender: NodeId, host: HostId, json: bool) -> None:
    total = sum(count for _, count in sent)
    if json:
        runs = [{"first": message_name(first), "count": count} for first, count in sent]
        print_json({"sent": total, "node": sender, "host": host, "messages": runs})
        return
    if not sent:
        console.print("nothing to send")
        return
    first, (last, count) = sent[0][0], sent[-1]
    names = (
        message_name(first) if total == 1 else f"{message_name(first)} to {message_name(last + count - 1)}"
    )
    what = "1 message" if total == 1 else f"{total} messages"
    console.print(f"{what} handed to sender {sender} on host {host}: {names}", soft_wrap=True)
