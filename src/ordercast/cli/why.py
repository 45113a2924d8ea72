"""`ordercast why`: what holds a message up, in one sentence."""

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
        str | None, typer.Argument(metavar="[MESSAGE]", help="Which message, as 3#17; none: the oldest wait.")
    ] = None,
    config: ConfigOption = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Tell what blocks the delivery of a message, and where.

    All hosts on this machine are asked what waits at their nodes. The answer is one sentence: the
    message waits at a node for the clock of a sequencer, for a missing number, for the timestamp
    of a group; or it is delivered; or its sender still has it, and why. Hosts that do not answer
    are named. Without a message it is the oldest wait of all.

    A message is known by its sender and that sender's own number: [dim]3#17[/] is the message 17 of node 3.

    [bold]Examples[/]

    ordercast why 3#17

    ordercast why --json
    """
    asked = None if message is None else parse_message(message)
    cluster = read_config(config)
    with reach_hosts(cluster) as hosts:
        facts = _ask(hosts, asked)
    if not facts:
        raise LocalError("no host of the cluster answers here: is it up? ordercast cluster status")
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
