"""Traces of honest services, tampered with: each tampering is a lie that clients of a service may be told."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from ordercast.core import MessageId, NodeId
from ordercast.trace import READ, Event, Kind


class Blamed(NamedTuple):
    """Who and what a finding must name."""

    nodes: tuple[NodeId, ...]
    messages: tuple[MessageId, ...] = ()


@dataclass(frozen=True)
class Tampering:
    """A change of a trace, and the properties that it breaks."""

    change: Callable[[list[Event], Random], Blamed]
    breaks: str
    also: frozenset[str] = frozenset()
    """Properties that it may break as well."""


def rows_of(events: list[Event], kind: Kind, **fields: object) -> list[int]:
    """The rows of a kind with these fields."""
    return [
        row
        for row, event in enumerate(events)
        if event.kind is kind and all(getattr(event, name) == value for name, value in fields.items())
    ]


def _operation(events: list[Event], rng: Random) -> int:
    """The row of an answer to an operation, after the first few."""
    return rng.choice([row for row in rows_of(events, Kind.REPLY) if events[row].label != READ][5:])


def _blamed(reply: Event) -> Blamed:
    assert reply.message is not None
    return Blamed((reply.node,), (reply.message,))


def stale_read(events: list[Event], rng: Random) -> Blamed:
    """A read is said to be of a place before the first operation."""
    last = rows_of(events, Kind.REPLY, label=READ)[-1]
    events[last] = events[last]._replace(stamp_clock=None, stamp_issuer=None)
    return _blamed(events[last])


def changed_result(events: list[Event], rng: Random) -> Blamed:
    """An answer has other bytes than the service gave."""
    row = _operation(events, rng)
    events[row] = events[row]._replace(digest=(events[row].digest or 0) ^ 1)
    return _blamed(events[row])


def executed_twice(events: list[Event], rng: Random) -> Blamed:
    """A replica delivers an operation once more, at the end of its order."""
    delivered = rows_of(events, Kind.DELIVER)
    row, last = rng.choice(delivered[:-1]), events[delivered[-1]]
    again = events[row]._replace(
        time_ns=last.time_ns, clock_ns=last.clock_ns, stamp_clock=(last.stamp_clock or 0) + 1
    )
    events.insert(delivered[-1] + 1, again)
    return Blamed((again.node,), (again.message or 0,))


def answered_early(events: list[Event], rng: Random) -> Blamed:
    """A client gets its first answer before it called."""
    row = rows_of(events, Kind.REPLY)[0]
    reply = events.pop(row)
    asked = rows_of(events, Kind.SUBMIT, message=reply.message)[0]
    events.insert(
        asked, reply._replace(time_ns=events[asked].time_ns - 1, clock_ns=events[asked].clock_ns - 1)
    )
    return _blamed(reply)


def before_its_cause(events: list[Event], rng: Random) -> Blamed:
    """The last operation is said to have been executed before all others."""
    delivered = rows_of(events, Kind.DELIVER)
    message = events[delivered[-1]].message
    for row in (
        *rows_of(events, Kind.DELIVER, message=message),
        *rows_of(events, Kind.REPLY, message=message),
    ):
        events[row] = events[row]._replace(stamp_clock=-1)
    return Blamed((), (message or 0,))


def lost(events: list[Event], rng: Random) -> Blamed:
    """No replica delivers an operation that was answered."""
    reply = events[_operation(events, rng)]
    for row in reversed(rows_of(events, Kind.DELIVER, message=reply.message)):
        del events[row]
    return _blamed(reply)


def other_state(events: list[Event], rng: Random) -> Blamed:
    """A replica has two states at one place."""
    row = rng.choice(rows_of(events, Kind.CHECKPOINT))
    events.insert(row + 1, events[row]._replace(digest=(events[row].digest or 0) ^ 1))
    return Blamed((events[row].node,))


def not_asked(events: list[Event], rng: Random) -> Blamed:
    """A client gets the answer to the question of another one."""
    row = _operation(events, rng)
    other = next(e.node for e in events if e.kind is Kind.REPLY and e.node != events[row].node)
    events[row] = events[row]._replace(node=other)
    return _blamed(events[row])


def two_answers(events: list[Event], rng: Random) -> Blamed:
    """A client gets a second answer, which is not the first."""
    row = _operation(events, rng)
    events.insert(row + 1, events[row]._replace(size=(events[row].size or 0) + 1))
    return _blamed(events[row])


def other_place(events: list[Event], rng: Random) -> Blamed:
    """An answer names another place than the delivery."""
    row = _operation(events, rng)
    events[row] = events[row]._replace(stamp_clock=(events[row].stamp_clock or 0) + 1)
    return _blamed(events[row])


def unanswered(events: list[Event], rng: Random) -> Blamed:
    """A client never gets an answer."""
    row = _operation(events, rng)
    return _blamed(events.pop(row))


TAMPERINGS = [
    Tampering(stale_read, "linearizable", frozenset({"answers"})),
    Tampering(changed_result, "answers"),
    Tampering(executed_twice, "integrity"),
    Tampering(answered_early, "linearizable"),
    Tampering(before_its_cause, "linearizable", frozenset({"answers", "stamp-order"})),
    Tampering(lost, "linearizable", frozenset({"validity", "answers", "probe"})),
    Tampering(other_state, "replica-state"),
    Tampering(not_asked, "linearizable", frozenset({"clock", "lifecycle"})),
    Tampering(two_answers, "linearizable", frozenset({"answers"})),
    Tampering(other_place, "linearizable"),
    Tampering(unanswered, "replies"),
]
"""All tamperings."""


def shuffled_answers(events: list[Event], rng: Random) -> None:
    """A field of an answer or of a checkpoint has the value that it has in another row."""
    rows = rows_of(events, Kind.REPLY) + rows_of(events, Kind.CHECKPOINT)
    if not rows:
        return
    names = ("node", "message", "groups", "stamp_clock", "stamp_issuer", "size", "digest", "label", "peer")
    for _ in range(rng.choice((1, 1, 2, 4))):
        row, name = rng.choice(rows), rng.choice(names)
        other = events[rng.choice((*rows, rng.randrange(len(events))))]
        events[row] = events[row]._replace(**{name: getattr(other, name)})
