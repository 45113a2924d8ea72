"""Runs of a tiny model of shards, correct and broken, as traces and as histories of their clients.

Each shard is a group of two replicas. A transaction reads one list in each of its shards, and then appends
to it. In a `stamped` run it has one stamp, and every shard executes in the order of stamps. In a `locking`
run each shard has an order of its own: a transaction locks its list in each of its shards, and commits when
it has all of its locks (two-phase locking).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from ordercast.core import (
    Agreement,
    Consistency,
    Gaps,
    GroupId,
    Guarantees,
    MessageId,
    Nanos,
    NodeId,
    Order,
    message_id,
)
from ordercast.judge.histories.transactions import Append, Fate, Read, Transaction
from ordercast.trace import ABORTED, COMMITTED, Event, Kind, NodeDescription, RunDescription

SHARDS = 3
GROUPS = {group: (2 * group, 2 * group + 1) for group in range(SHARDS)}
CLIENTS = range(2 * SHARDS, 2 * SHARDS + 4)


class Part(NamedTuple):
    """What became of a transaction in one shard."""

    locked: Nanos
    """When its locks were taken; where there are none, when it was executed."""
    ended: Nanos
    aborted: tuple[tuple[Nanos, Nanos], ...] = ()
    """Earlier tries."""


@dataclass
class Done:
    """A transaction that was executed."""

    message: MessageId
    client: NodeId
    invoked: Nanos
    answered: Nanos
    lists: dict[GroupId, str]
    """The list that it touches in each shard."""
    parts: dict[GroupId, Part] = field(default_factory=dict)
    reads: dict[GroupId, tuple[int, ...]] = field(default_factory=dict)


def promised(order: Order, consistency: Consistency = Consistency.STRICT_SERIALIZABLE) -> Guarantees:
    """What shards promise."""
    return Guarantees(
        order=order,
        agreement=Agreement.ALL,
        uniform=True,
        validity=True,
        gaps=Gaps.NEVER,
        consistency=consistency,
    )


def description(guarantees: Guarantees, *, complete: bool = True) -> RunDescription:
    """A run of the model."""
    nodes = [NodeDescription(node, "replica", node) for members in GROUPS.values() for node in members]
    nodes += [NodeDescription(node, "client", node) for node in CLIENTS]
    return RunDescription(
        run="test",
        source="simulator",
        protocol="test",
        guarantees=guarantees,
        nodes=tuple(nodes),
        groups=dict(GROUPS),
        complete=complete,
    )


def drawn(rng: Random, count: int, lists: int) -> list[Done]:
    """Transactions of a few clients, each of which waits for its answers."""
    ready, numbers = dict.fromkeys(CLIENTS, 0), dict.fromkeys(CLIENTS, 0)
    found = []
    for _ in range(count):
        client = min(CLIENTS, key=lambda one: ready[one] + rng.randrange(50))
        invoked = ready[client] + rng.randint(1, 60)
        groups = sorted(rng.sample(range(SHARDS), rng.randint(1, SHARDS)))
        one = Done(
            message_id(client, numbers[client]),
            client,
            invoked,
            invoked + rng.randint(20, 120),
            {group: f"{group}/{rng.randrange(lists)}" for group in groups},
        )
        numbers[client] += 1
        ready[client] = one.answered
        found.append(one)
    return found


def stamped(seed: int, *, skew: int = 0, count: int = 12, lists: int = 1) -> list[Done]:
    """Each transaction has a stamp of a moment under way, or, with a skew, of clocks that are apart."""
    rng = Random(seed)
    done = drawn(rng, count, lists)
    clocks = [rng.randint(0, skew) for _ in range(SHARDS)]
    for number, one in enumerate(done):
        moment = rng.randint(one.invoked + 1, one.answered - 1) + max(clocks[group] for group in one.lists)
        stamp = 1000 * moment + number
        one.parts = {group: Part(stamp, stamp) for group in one.lists}
    _execute(done)
    return done


def locking(seed: int, *, early: bool = False, count: int = 12, lists: int = 1) -> list[Done]:
    """Two-phase locking; if `early`, a shard gives up its locks before the others have theirs."""
    rng = Random(seed)
    done = drawn(rng, count, lists)
    taken: dict[str, list[tuple[Nanos, Nanos]]] = {}
    used: list[set[Nanos]] = [set() for _ in range(SHARDS)]
    for one in done:
        tries: dict[GroupId, list[tuple[Nanos, Nanos]]] = {group: [] for group in one.lists}
        begin = one.invoked
        while not one.parts:
            parts = _try(rng, one, begin, used, early)
            busy = [group for group, key in one.lists.items() if _taken(taken, key, parts[group])]
            if not busy:
                one.parts = {g: part._replace(aborted=tuple(tries[g])) for g, part in parts.items()}
                for group, key in one.lists.items():
                    taken.setdefault(key, []).append(parts[group][:2])
            begin += rng.randint(5, 30)
        one.answered = max(one.answered, *(part.ended + 1 for part in one.parts.values()))
    return _in_turn(done)


def _try(rng: Random, one: Done, begin: Nanos, used: list[set[Nanos]], early: bool) -> dict[GroupId, Part]:
    """The places at which a transaction would lock and commit in each shard, all different."""

    def place(group: GroupId, at_least: Nanos) -> Nanos:
        found = at_least + rng.randint(1, 40)
        while found in used[group]:
            found += 1
        used[group].add(found)
        return found

    locked = {group: place(group, begin) for group in one.lists}
    ready = max(locked.values())
    return {g: Part(locked[g], place(g, locked[g] if early else ready)) for g in one.lists}


def _taken(taken: dict[str, list[tuple[Nanos, Nanos]]], key: str, part: Part) -> bool:
    return any(part.locked <= end and start <= part.ended for start, end in taken.get(key, ()))


def _in_turn(done: list[Done]) -> list[Done]:
    """Have each client wait for its answers, and execute."""
    kept, ready = [], dict.fromkeys(CLIENTS, 0)
    for one in done:
        if one.invoked > ready[one.client]:
            ready[one.client] = one.answered
            kept.append(one)
    _execute(kept)
    return kept


def _execute(done: Sequence[Done]) -> None:
    """What each transaction reads: what those before it in the shard appended to its list."""
    for group in GROUPS:
        lists: dict[str, tuple[int, ...]] = {}
        mine = [one for one in done if group in one.lists]
        for one in sorted(mine, key=lambda one: (one.parts[group].ended, one.message)):
            key = one.lists[group]
            one.reads[group] = lists.get(key, ())
            lists[key] = (*one.reads[group], one.message)


def history(done: Sequence[Done]) -> list[Transaction]:
    """What the clients saw."""
    return [
        Transaction(
            one.client,
            one.invoked,
            one.answered,
            Fate.COMMITTED,
            tuple(
                micro
                for group, key in one.lists.items()
                for micro in (Read(key, one.reads[group]), Append(key, one.message))
            ),
        )
        for one in done
    ]


def trace(done: Sequence[Done], *, locks: bool = False) -> list[Event]:
    """What the trace of the run is."""
    rows: list[tuple[Nanos, int, Event]] = []

    def row(time_ns: Nanos, turn: int, node: NodeId, kind: Kind, **fields: object) -> None:
        event = Event(time_ns, time_ns, node, kind)
        rows.append((time_ns, turn, event._replace(**fields)))  # type: ignore[arg-type]

    for one in done:
        groups = tuple(one.lists)
        named: dict[str, object] = {"message": one.message, "submitted_ns": one.invoked}
        row(one.invoked, 0, one.client, Kind.SUBMIT, groups=groups, digest=1, **named)
        first = groups[0]
        place = _place(first, one.parts[first].ended, locks=locks)
        row(one.answered, 3, one.client, Kind.REPLY, groups=(first,), size=1, digest=2, **named, **place)
        for group, part in one.parts.items():
            for node in GROUPS[group]:
                here = _place(group, part.ended, locks=locks)
                row(part.ended, 1, node, Kind.DELIVER, groups=groups, digest=1, **named, **here)
                for start, end in part.aborted if locks else ():
                    _lock(row, node, group, one.message, start, end, ABORTED)
                if locks:
                    _lock(row, node, group, one.message, part.locked, part.ended, COMMITTED)
    return [event for _, _, event in sorted(rows, key=lambda found: found[:2])]


class Writer(Protocol):
    """Writes a row."""

    def __call__(self, time_ns: Nanos, turn: int, node: NodeId, kind: Kind, **fields: object) -> None:
        """At a time, and in turn with others of that time."""


def _lock(
    row: Writer, node: NodeId, group: GroupId, message: MessageId, start: Nanos, end: Nanos, label: str
) -> None:
    for kind, place, told in ((Kind.LOCKED, start, None), (Kind.RELEASED, end, label)):
        at = _place(group, place, locks=True)
        row(place, 2, node, kind, message=message, groups=(group,), label=told, **at)


def _place(group: GroupId, number: int, *, locks: bool) -> dict[str, object]:
    """A stamp; where shards lock, each has places of its own."""
    return {"stamp_clock": number, "stamp_issuer": group if locks else 0}
