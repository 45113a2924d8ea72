"""The rules by which an account is judged, each by itself. The rules about answers of a service, also that
none is wrong, are in `operations_account.py`.

1. What was accepted is delivered, or somebody is told: the receiver by drop notifications, or the sender.
2. Nothing comes twice.
3. No two receivers disagree on the order of two messages.
4. Nobody waits too long for the next message while messages are sent.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from ordercast.core import MessageId, Nanos, NodeId, format_ns, message_name
from ordercast.lab.trial.diary import Got, Sent
from ordercast.lab.trial.history import History

NAMED_MAX = 10
"""A complaint names at most this many messages."""

Rule: TypeAlias = Literal["missing", "twice", "disorder", "wrong", "outage"]


class Complaint(msgspec.Struct, frozen=True):
    """A rule that was broken, by which nodes and on which messages."""

    rule: Rule
    nodes: tuple[NodeId, ...]
    messages: tuple[MessageId, ...]
    count: int
    """How often: messages that are missing or came twice, otherwise 1."""
    detail: str


def missing(history: History, owed: Collection[MessageId], packets: int) -> Complaint | None:
    """Whether a receiver was told of fewer drops than it lacks messages that it is owed.

    `packets` says in how few packets these messages can have been.
    """
    unexplained = packets - history.drops
    if unexplained <= 0:
        return None
    told = f" (it was told of {history.drops} drops)" if history.drops else ""
    named = tuple(sorted(owed)[:NAMED_MAX])
    detail = f"node {history.node} never got {_names(named, len(owed))} and nobody was told{told}"
    return Complaint("missing", (history.node,), named, unexplained, detail)


def packets_of(messages: Iterable[MessageId], *, bundled: bool) -> int:
    """In how few packets these messages can have been: those of a bundle have consecutive identities."""
    ordered = sorted(messages)
    if not bundled:
        return len(ordered)
    return len(ordered) - sum(after == before + 1 for before, after in pairwise(ordered))


def in_flight(
    history: History,
    lacking: Collection[MessageId],
    witness: Sequence[MessageId],
    sent: Mapping[MessageId, Sent],
    kills: Collection[Nanos],
) -> set[MessageId]:
    """The messages that a receiver may have lost because it was killed when it was about to hand them over.

    It had saved that they were delivered. By the order of a witness, they come right after the last message
    that it handed over in a life, and were accepted before it was killed. Among them may be others that it
    never got but is not owed, for instance those that its own host had accepted.
    """
    places = {message: place for place, message in enumerate(witness)}
    found: set[MessageId] = set()
    for last, killed in history.ends(kills):
        start = -1 if last is None else places.get(last, len(witness))
        for message in witness[start + 1 :]:
            if message in history.messages or sent[message].time_ns > killed:
                break
            found.add(message)
    return found.intersection(lacking)


def twice(history: History) -> Complaint | None:
    """Whether a receiver got a message more than once."""
    counted = [Counter(got.message for got in member) for member in history.members]
    again = [message for counts in counted for message, count in counts.items() if count > 1]
    if not again:
        return None
    named = tuple(again[:NAMED_MAX])
    detail = f"node {history.node} got {_names(named, len(again))} more than once"
    return Complaint("twice", (history.node,), named, len(again), detail)


def disorder(histories: Iterable[History]) -> Iterator[Complaint]:
    """Each pair of receivers that disagree, with two messages that they got in different orders."""
    orders = [(one.node, _order(member)) for one in histories for member in one.members]
    index = _Index([order for _, order in orders])
    for (one, _), (two, _) in combinations(enumerate(orders), 2):
        found = index.disagreement(one, two)
        if found is not None and orders[one][0] != orders[two][0]:
            nodes = (orders[one][0], orders[two][0])
            first, second = map(message_name, found)
            detail = f"node {nodes[0]} got {first} before {second}, but node {nodes[1]} got it after"
            yield Complaint("disorder", nodes, found, 1, detail)


def _order(member: Iterable[Got]) -> list[MessageId]:
    """What was delivered as in order, each message once."""
    return list(dict.fromkeys(got.message for got in member if got.in_order))


class _Index:
    """The place of each message in each order."""

    def __init__(self, orders: Sequence[Sequence[MessageId]]) -> None:
        arrays = [np.array(order, np.int64) for order in orders]
        self._names = np.unique(np.concatenate([np.empty(0, np.int64), *arrays]))
        self._orders = [np.searchsorted(self._names, order) for order in arrays]
        self._places = np.full((len(orders), len(self._names)), -1, np.int64)
        for places, order in zip(self._places, self._orders, strict=True):
            places[order] = np.arange(len(order))

    def disagreement(self, one: int, two: int) -> tuple[MessageId, MessageId] | None:
        """Two messages that two orders have in different orders, as the first one has them."""
        order = self._orders[one]
        common = order[self._places[two][order] >= 0]
        falls = np.flatnonzero(np.diff(self._places[two][common]) < 0)
        if not len(falls):
            return None
        first, second = self._names[common[falls[0] : falls[0] + 2]]
        return int(first), int(second)


class Outage(NamedTuple):
    """The longest time without a message."""

    node: NodeId
    begin_ns: Nanos
    lasted_ns: Nanos


def longest_outage(history: History, sent: Sequence[Nanos]) -> Outage:
    """The longest time that a receiver waited for the next message after one was accepted for it.

    `sent` says when messages were accepted for it, in order. The wait after its last message ends when the
    last message was accepted, because that is how long messages were sent.
    """
    return longest_wait(history.node, history.times, sent)


def longest_wait(node: NodeId, times: Sequence[Nanos], sent: Sequence[Nanos]) -> Outage:
    """The longest time that a node waited for the next of these times after one at which something was sent,
    while something was sent."""
    accepted = np.array(sent, np.int64)
    got = np.sort(np.array(times, np.int64))
    if not len(accepted):
        return Outage(node, 0, 0)
    before = np.concatenate([[accepted[0] - 1], got])
    after = np.concatenate([got, [accepted[-1]]])
    places = np.searchsorted(accepted, before, side="right")
    begins = accepted[np.minimum(places, len(accepted) - 1)]
    waits = np.where(places < len(accepted), after - begins, 0)
    longest = int(waits.argmax())
    return Outage(node, int(begins[longest]), max(0, int(waits[longest])))


def too_long(found: Outage, limit_ns: Nanos, start_ns: Nanos) -> Complaint | None:
    """Whether a receiver waited too long."""
    if found.lasted_ns <= limit_ns:
        return None
    when = f"from {format_ns(found.begin_ns - start_ns, 4)} on"
    lasted = format_ns(found.lasted_ns, 3)
    detail = (
        f"node {found.node} got nothing for {lasted}, {when}, while messages were sent;"
        f" the limit is {format_ns(limit_ns, 3)}"
    )
    return Complaint("outage", (found.node,), (), 1, detail)


def _names(messages: Sequence[MessageId], count: int) -> str:
    more = f" and {count - len(messages)} more" if count > len(messages) else ""
    return f"{', '.join(map(message_name, messages))}{more}"
