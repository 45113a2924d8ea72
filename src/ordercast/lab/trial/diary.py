"""The diary of a host's applications: what they sent, what they got, and what they were told, as it happens.

It knows nothing of traces, so an account that is taken from diaries is independent of them. Each life of a
host has a file of its own. An entry is one line and is written at once, so a host that is killed has written
down all that its applications knew. If the last line is cut off, it counts as not written. Times are those of
the machine's clock, which no fault touches.
"""

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ordercast.core import (
    Checkpoint,
    GroupId,
    Groups,
    HostId,
    MessageId,
    Nanos,
    NodeId,
    Stamp,
    Unconfirmed,
    Undone,
    message_sender,
    outcome_of,
)
from ordercast.core.bundle import bundle_span
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle, RepliedBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.trace import KIND_OF, ORDERED, SETTLING, notice_event
from ordercast.trace.values import Values


class Sent(NamedTuple):
    """A message was accepted from an application."""

    time_ns: Nanos
    message: MessageId
    groups: Groups


class Got(NamedTuple):
    """A message was handed to an application, in its place in the order or tagged as out of order."""

    time_ns: Nanos
    message: MessageId
    in_order: bool = True
    clock: int | None = None
    """The clock of its place in the order."""


class Called(NamedTuple):
    """A client called an operation of a service."""

    time_ns: Nanos
    message: MessageId
    group: GroupId
    read: bool
    operation: bytes


class Answered(NamedTuple):
    """A client was answered."""

    time_ns: Nanos
    message: MessageId
    place: tuple[int, int]
    """Where the operation was executed: a clock and an issuer."""
    outcome: int
    digest: int


class Told(NamedTuple):
    """An application was told of drops."""

    group: GroupId
    issuer: int
    first: int
    numbers: int
    """How many numbers in a row."""


class Diary:
    """Writes down what the applications of a host see in one life."""

    def __init__(self, folder: Path, live: LiveHost, *, remembers: bool, values: bool = False) -> None:
        """`values`: whether results are written down, and not only their digests."""
        self._values = values
        life = len(list(folder.glob(f"{live.host}-*")))
        path = folder / f"{live.host}-{life}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._write("life", live.host, int(remembers))
        for node in live.nodes:
            live.add_listener(node, partial(self._on_delivery, node))
        for node in live.backlogs:
            live.add_answer_listener(node, self._on_answer)

    def sent(self, message: MessageId, groups: Groups) -> None:
        """Write down that a message was accepted."""
        self._write("sent", message, *groups)

    def called(self, message: MessageId, groups: Groups, operation: bytes, *, read: bool) -> None:
        """Write down that a client called an operation of a service."""
        self._write("called", message, groups[0], int(read), f"{operation.hex()}.")

    def summed(self, message: MessageId, total: int) -> None:
        """Write down what a transaction that adds up everything came to."""
        self._write("summed", message, total)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _on_delivery(self, node: NodeId, delivered: BundleOrNotice) -> None:
        if isinstance(delivered, DeliveredBundle):
            what = "got" if KIND_OF[type(delivered.delivery)] in ORDERED else "late"
            stamp = delivered.delivery.stamp
            clock = () if stamp is None else (stamp.clock,)
            self._write(what, node, delivered.bundle.first, len(delivered.bundle.payloads), *clock)
        elif KIND_OF[type(delivered)] in SETTLING:
            row = notice_event(0, 0, node, delivered)
            numbers = row.numbers or (0,)
            self._write("dropped", node, delivered.group, row.stamp_issuer or 0, numbers[0], delivered.rows)
        elif isinstance(delivered, Unconfirmed):
            self._write("unconfirmed", *bundle_span(delivered.payload))
        elif isinstance(delivered, Undone):
            self._write("undone", node, delivered.group, delivered.stamp.clock)
        elif delivered.begins_anew or (isinstance(delivered, Checkpoint) and delivered.restored):
            self._write("anew", node)

    def _on_answer(self, answered: RepliedBundle) -> None:
        replied, (first, _, results), _ = answered
        stamp = replied.stamp or Stamp(-1, -1)
        for message, result in enumerate(results, first):
            self._write("answered", message, stamp.clock, stamp.issuer, outcome_of(result), crc32(result))
            if self._values:
                self._write("result", message, f"{result.hex()}.")

    def _write(self, what: str, *numbers: int | str) -> None:
        os.write(self._file, f"{what} {time.time_ns()} {' '.join(map(str, numbers))}\n".encode())


class LifeDiary:
    """The diary of one life of a host, as it was read."""

    def __init__(self, host: HostId, began_ns: Nanos = 0, *, remembers: bool = True) -> None:
        self.host = host
        self.began_ns = began_ns
        self.remembers = remembers
        """Whether this life is the same member as the one before."""
        self.sent: list[Sent] = []
        self.got: dict[NodeId, list[Got]] = {}
        """What each receiver got, in this order."""
        self.told: dict[NodeId, list[Told]] = {}
        """The drops that each receiver was told of."""
        self.called: list[Called] = []
        self.answered: list[Answered] = []
        self.results: dict[MessageId, bytes] = {}
        """The first result of each call, if results are kept."""
        self.sums: dict[MessageId, int] = {}
        """What transactions that add up everything came to."""
        self.unconfirmed: list[MessageId] = []
        self.undone: list[MessageId] = []
        """Operations whose answers were taken back."""
        self.anew: set[NodeId] = set()
        """Receivers that were told that they start anew: they missed what came before. Replicas that took the
        state of others have not delivered what it stands for."""

    def note(self, what: str, time_ns: Nanos, numbers: Sequence[int]) -> None:
        """Take up an entry."""
        match what, numbers:
            case "sent", (message, *groups):
                self.sent.append(Sent(time_ns, message, tuple(groups)))
            case (("got" | "late"), (node, first, count, *rest)):
                own, clock = self.got.setdefault(node, []), rest[0] if rest else None
                own += [
                    Got(time_ns, message, what == "got", clock) for message in range(first, first + count)
                ]
            case "dropped", (node, group, issuer, number, count):
                self.told.setdefault(node, []).append(Told(group, issuer, number, count))
            case "unconfirmed", (first, count):
                self.unconfirmed += range(first, first + count)
            case "undone", (node, group, clock):
                self._take_back(node, group, clock)
            case "answered", (message, clock, issuer, outcome, digest):
                self.answered.append(Answered(time_ns, message, (clock, issuer), outcome, digest))
            case "summed", (message, total):
                self.sums[message] = total
            case "anew", (node,):
                self.anew.add(node)

    def _take_back(self, node: NodeId, group: GroupId, clock: int) -> None:
        """What a node got or was answered behind a place does not count; nobody knows what becomes of it."""
        self.got[node] = [one for one in self.got.get(node, ()) if one.clock is None or one.clock <= clock]
        called = {one.message for one in self.called if one.group == group}
        answered, self.answered = self.answered, []
        for one in answered:
            mine = message_sender(one.message) == node and one.message in called
            if mine and one.place[0] > clock:
                self.undone.append(one.message)
            else:
                self.answered.append(one)

    def note_call(self, time_ns: Nanos, words: Sequence[str]) -> None:
        """Take up the entry of a call, whose operation is in hexadecimal."""
        message, group, read, operation = words
        packed = _unhex(operation)
        self.called.append(Called(time_ns, int(message), int(group), read == "1", packed))


def _unhex(word: str) -> bytes:
    """The bytes of a word, which ends with a point, for there may be none."""
    return bytes.fromhex(word.removesuffix("."))


def values_of(diaries: Sequence[LifeDiary]) -> Values:
    """What clients called and were answered first, as bytes."""
    results = {message: result for diary in reversed(diaries) for message, result in diary.results.items()}
    return Values({one.message: one.operation for diary in diaries for one in diary.called}, results)


def read_diaries(folder: Path) -> list[LifeDiary]:
    """The diaries of all lives of all hosts; those of one host in the order of its lives."""
    paths = sorted(folder.glob("*-*"), key=lambda path: [int(part) for part in path.name.split("-")])
    return [diary for diary in map(_read, paths) if diary is not None]


def _read(path: Path) -> LifeDiary | None:
    whole, _, _ = path.read_text(encoding="ascii").rpartition("\n")
    entries = [line.split() for line in whole.splitlines()]
    if not entries:  # it was killed before it began
        return None
    began_ns, host, remembers = map(int, entries[0][1:])
    diary = LifeDiary(host, began_ns, remembers=bool(remembers))
    for what, when, *words in entries[1:]:
        if what == "called":
            diary.note_call(int(when), words)
        elif what == "result":
            diary.results.setdefault(int(words[0]), _unhex(words[1]))
        else:
            diary.note(what, int(when), [int(number) for number in words])
    return diary
