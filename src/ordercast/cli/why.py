"""`ordercast why`: say in one sentence what blocks a message."""

from typing import Annotated

import typer

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.hosts import Hosts, note_elsewhere, reach_hosts
from ordercast.cli.output import console, print_json
from ordercast.core import LocalError, MessageId
from ordercast.net.tools.client import NoAnswer
from ordercast.net.tools.facts import HostFact
from ordercast.net.tools.why import parse_message, why_message, why_oldest


def why(
    message: Annotated[
        str | None,
        typer.Argument(metavar="[MESSAGE]", help="Message such as 3#17. Default: the longest wait."),
    ] = None,
    config: ConfigOption = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show what blocks the delivery of a message or an operation of a service, and where.

    The command asks all hosts on this machine what waits at their nodes, and answers in one sentence: the
    message waits at a node, and for what; or all have delivered it; or its sender still has it, and why. The
    answer names hosts that do not answer. An operation of a service is named like a message: its client and
    the client's own number; the answer says whether it was executed and answered. Without a message, the
    command explains the longest wait in the cluster.

    The name of a message is its sender and the sender's own number: [dim]3#17[/] is message 17 of node 3.

    [bold]Examples[/]

    ordercast why 3#17

    ordercast why --json
    """
    asked = None if message is None else parse_message(message)
    cluster = read_config(config)
    with reach_hosts(cluster) as hosts:
        facts = _ask(hosts, asked)
    if not facts:
        raise LocalError("no host answers on this machine; check the cluster: ordercast cluster status")
    answer = why_oldest(facts, hosts.absent) if asked is None else why_message(asked, facts, hosts.absent)
    if json:
        print_json(answer)
        return 0
    console.print(answer.sentence, markup=False, soft_wrap=True)
    note_elsewhere(hosts)
    return 0


def _ask(hosts: Hosts, asked: MessageId | None) -> list[HostFact]:
    facts = []
    for host, client in list(hosts.clients.items()):
        try:
            facts.append(client.explain(asked))
        except NoAnswer:
            hosts.lose(host)
    return facts
