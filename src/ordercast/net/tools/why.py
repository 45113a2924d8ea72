"""Why a message is not delivered, in one sentence, from what the hosts of a cluster say.

The functions here are pure: they make words from facts. The most certain fact decides: which node holds the
message and what it waits for; else where it was delivered; else what its sender knows of it. Hosts that gave
no answer are named, because the reason may be there.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from ordercast.core import (
    Chain,
    HostId,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    follow,
    format_ns,
    message_id,
    message_name,
    message_sender,
)
from ordercast.net.tools.facts import HostFact, NodeFact, SenderFact, WaitFact
from ordercast.net.tools.progress import Run

SURE = 0.999
"""Higher probabilities are given as "more than this"."""


class WhyAnswer(msgspec.Struct, frozen=True):
    """The answer: a sentence, and its parts."""

    sentence: str
    verdict: str
    """waiting, delivered, backlog, not-submitted, earlier-life, under-way, unknown; idle if nothing waits;
    answered or given-up for an operation of a service."""
    message: str | None = None
    node: NodeId | None = None
    host: HostId | None = None
    blocker: str = ""
    age_ns: Nanos | None = None
    stable: float | None = None
    """The probability that all who should know it do, if the protocol can tell (EpTO section 8.4)."""
    delivered: tuple[NodeId, ...] = ()
    absent: tuple[HostId, ...] = ()
    cause: NodeId | None = None
    """The node at the end of the chain of waits, which does not answer or waits for nothing itself."""


class _Place(NamedTuple):
    """A wait, and the node where it is."""

    host: HostId
    node: NodeId
    role: str
    wait: WaitFact


def parse_message(text: str) -> MessageId:
    """The identity of a message that is written as ``3#17``."""
    sender, mark, number = text.partition("#")
    if not mark or not all(part.isascii() and part.isdigit() for part in (sender, number)):
        raise LocalError(f"'{text}' is not a message; write message 17 of node 3 as 3#17")
    return message_id(int(sender), int(number))


def why_message(message: MessageId, hosts: Sequence[HostFact], absent: Mapping[HostId, str]) -> WhyAnswer:
    """Where a message is; `absent` has the hosts that do not answer, with their roles."""
    nodes = {node: fact for host in hosts for node, fact in host.nodes.items()}
    delivered = tuple(sorted(node for node, fact in nodes.items() if _within(message, fact.delivered)))
    found = [place for place in _places(hosts) if place.wait.carries(message)]
    if found:
        return _waiting(message, found, delivered, hosts, absent)
    if outcome := _outcome(message, nodes, delivered, absent):
        return outcome
    if delivered:
        return _delivered(message, nodes, delivered, absent)
    return _nowhere(message, nodes, absent)


def why_oldest(hosts: Sequence[HostFact], absent: Mapping[HostId, str]) -> WhyAnswer:
    """The oldest wait of all."""
    places = list(_places(hosts))
    if places:
        oldest = max(places, key=_age)
        message = oldest.wait.first
        subject = oldest.wait.subject
        if message is not None:
            more = f", and {oldest.wait.count - 1} more" if oldest.wait.count > 1 else ""
            subject = f"message {message_name(message)} ({subject}{more})"
        text = f"{subject} {_at(oldest)}"
        return _answer("waiting", text, absent, message, oldest, chain=_chain(oldest, hosts))
    backlogs = [
        f"sender {node} has {_count(fact.sender.backlog)} in its backlog{_because(fact, fact.sender)}"
        for host in hosts
        for node, fact in host.nodes.items()
        if fact.sender is not None and fact.sender.backlog
    ]
    if backlogs:
        return _answer("backlog", "; ".join(backlogs), absent)
    return _answer("idle", "nothing waits at the hosts that answer" if absent else "nothing waits", absent)


def _waiting(
    message: MessageId,
    found: list[_Place],
    delivered: tuple[NodeId, ...],
    hosts: Sequence[HostFact],
    absent: Mapping[HostId, str],
) -> WhyAnswer:
    """A message that waits: the place where it has waited longest is nearest to the cause."""
    oldest = max(found, key=_age)
    text = f"message {message_name(message)} {_at(oldest)}"
    others = sorted({place.node for place in found} - {oldest.node})
    if others:
        text += f"; it also waits at {_nodes(others)}"
    if delivered:
        text += f"; it was delivered at {_nodes(delivered)}"
    return _answer("waiting", text, absent, message, oldest, delivered, _chain(oldest, hosts))


def _chain(place: _Place, hosts: Sequence[HostFact]) -> Chain[WaitFact]:
    """Who waits for whom, from this place on."""
    waits = {node: fact.waits for host in hosts for node, fact in host.nodes.items()}
    return follow(place.node, place.wait, waits)


def _chain_text(chain: Chain[WaitFact]) -> str:
    """The waits after the first one, and the cause, as a part of a sentence."""
    texts = [f"; at node {node} {wait.subject} waits for {wait.blocker}" for node, wait in chain.links[1:]]
    if chain.cause is not None:
        what = "does not answer" if chain.absent else "waits for nothing itself"
        texts.append(f"; the cause is at node {chain.cause}, which {what}")
    return "".join(texts)


def _outcome(
    message: MessageId,
    nodes: Mapping[NodeId, NodeFact],
    delivered: tuple[NodeId, ...],
    absent: Mapping[HostId, str],
) -> WhyAnswer | None:
    """What the client of an operation knows of it; None if it is not an operation, or has no outcome yet."""
    client = message_sender(message)
    fact = nodes.get(client)
    if fact is None or not (_within(message, fact.answered) or _within(message, fact.unknown)):
        return None
    where = f"; it was executed at {_nodes(delivered)}" if delivered else ""
    if _within(message, fact.answered):
        text = f"operation {message_name(message)} was answered to client {client}{where}"
        return _answer("answered", text, absent, message, None, delivered)
    text = f"client {client} has given operation {message_name(message)} up: no answer came in time"
    text += where or "; no replica that answers has executed it"
    return _answer("given-up", text, absent, message, None, delivered)


def _within(message: MessageId, runs: Sequence[Run]) -> bool:
    return any(first <= message < end for first, end in runs)


def _delivered(
    message: MessageId,
    nodes: Mapping[NodeId, NodeFact],
    delivered: tuple[NodeId, ...],
    absent: Mapping[HostId, str],
) -> WhyAnswer:
    text = f"message {message_name(message)} was delivered at {_nodes(delivered)}"
    without = _went_on_without(message, nodes)
    if without:
        text += f"; {_nodes(without)} went on without it"
    return _answer("delivered", text, absent, message, None, delivered)


def _nowhere(message: MessageId, nodes: Mapping[NodeId, NodeFact], absent: Mapping[HostId, str]) -> WhyAnswer:
    """No node that answers holds it or has delivered it: ask its sender."""
    name, origin = message_name(message), message_sender(message)
    fact = nodes.get(origin)
    sender = fact.sender if fact is not None else None
    without = _went_on_without(message, nodes)
    lost = f"; {_nodes(without)} went on without it" if without else ""
    if fact is None or sender is None:
        reason = "which is not a sender" if fact is not None else "which does not answer"
        text = f"no node that answers knows message {name}; it would come from node {origin}, {reason}{lost}"
        return _answer("unknown", text, absent, message)
    if message >= sender.next:
        last = (
            f"its last message is {message_name(sender.next - 1)}"
            if sender.next > sender.first
            else "it has sent none yet"
        )
        text = f"message {name} has not been submitted: sender {origin} has not reached this number; {last}"
        return _answer("not-submitted", text, absent, message)
    if message >= sender.next - sender.backlog:
        ahead = message - (sender.next - sender.backlog)
        place = f"behind {ahead} others" if ahead else "first in line"
        text = f"message {name} is in the backlog of sender {origin}, {place}{_because(fact, sender)}"
        return _answer("backlog", text, absent, message)
    if message < sender.first:
        text = (
            f"message {name} is from an earlier life of sender {origin}, and no node here remembers it{lost}"
        )
        return _answer("earlier-life", text, absent, message)
    text = f"message {name} has left sender {origin}, and no node that answers holds it or has delivered it"
    return _answer("under-way", text + (lost or "; it is under way, or lost"), absent, message)


def _because(fact: NodeFact, sender: SenderFact) -> str:
    """Why a sender's protocol takes no more messages, in the protocol's own words if there are any."""
    general = [wait for wait in fact.waits if wait.first is None]
    if general:
        return f"; {general[0].subject} must wait for {general[0].blocker}"
    if sender.blocked:
        return f", because {sender.blocked}"
    held = [wait for wait in fact.waits if wait.first is not None]
    if held:
        return f", held up by earlier messages, which wait for {held[0].blocker}"
    return ""


def _went_on_without(message: MessageId, nodes: Mapping[NodeId, NodeFact]) -> list[NodeId]:
    """Nodes that delivered earlier and later messages of its sender, and not this one."""
    return sorted(
        node
        for node, fact in nodes.items()
        if any(before[1] <= message < after[0] for before, after in pairwise(fact.delivered))
    )


def _places(hosts: Iterable[HostFact]) -> Iterable[_Place]:
    for host in hosts:
        for node, fact in host.nodes.items():
            for wait in fact.waits:
                yield _Place(host.host, node, fact.role, wait)


def _age(place: _Place) -> Nanos:
    return -1 if place.wait.age_ns is None else place.wait.age_ns


def _at(place: _Place) -> str:
    age = place.wait.age_ns
    waits = "waits" if age is None else f"has waited {format_ns(age, 3)}"
    known = "" if place.wait.stable is None else f"; {_probability(place.wait.stable)}"
    return f"{waits} at node {place.node} ({place.role}, host {place.host}) for {place.wait.blocker}{known}"


def _probability(stable: float) -> str:
    """The probability that all know a message; a bound is not given more exactly than people read it."""
    sure = f"{100 * stable:.1f}" if stable < SURE else f"more than {100 * SURE:g}"
    return f"all receivers already know it with {sure} % probability"


def _answer(
    verdict: str,
    text: str,
    absent: Mapping[HostId, str],
    message: MessageId | None = None,
    place: _Place | None = None,
    delivered: tuple[NodeId, ...] = (),
    chain: Chain[WaitFact] | None = None,
) -> WhyAnswer:
    text += _chain_text(chain) if chain else ""
    gone = "".join(f"; host {host} ({roles}) does not answer" for host, roles in sorted(absent.items()))
    return WhyAnswer(
        sentence=f"{text}{gone}.",
        verdict=verdict,
        message=None if message is None else message_name(message),
        node=place.node if place else None,
        host=place.host if place else None,
        blocker=place.wait.blocker if place else "",
        age_ns=place.wait.age_ns if place else None,
        stable=place.wait.stable if place else None,
        delivered=delivered,
        absent=tuple(sorted(absent)),
        cause=chain.cause if chain else None,
    )


def _nodes(nodes: Sequence[NodeId]) -> str:
    return ("node " if len(nodes) == 1 else "nodes ") + ", ".join(map(str, nodes))


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"
