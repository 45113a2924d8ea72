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

from ordercast.core import GroupId, Groups, HostId, MessageId, Nanos, NodeId, Unconfirmed
from ordercast.core.bundle import bundle_span
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.trace import KIND_OF, ORDERED, SETTLING, notice_event


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


class Told(NamedTuple):
    """An application was told of drops."""

    group: GroupId
    issuer: int
    first: int
    numbers: int
    """How many numbers in a row."""


class Diary:
    """Writes down what the applications of a host see in one life."""

    def __init__(self, folder: Path, live: LiveHost, *, remembers: bool) -> None:
        life = len(list(folder.glob(f"{live.host}-*")))
        path = folder / f"{live.host}-{life}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._write("life", live.host, int(remembers))
        for node in live.nodes:
            live.add_listener(node, partial(self._on_delivery, node))

    def sent(self, message: MessageId, groups: Groups) -> None:
        """Write down that a message was accepted."""
        self._write("sent", message, *groups)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _on_delivery(self, node: NodeId, delivered: BundleOrNotice) -> None:
        if isinstance(delivered, DeliveredBundle):
            what = "got" if KIND_OF[type(delivered.delivery)] in ORDERED else "late"
            self._write(what, node, delivered.bundle.first, len(delivered.bundle.payloads))
        elif KIND_OF[type(delivered)] in SETTLING:
            row = notice_event(0, 0, node, delivered)
            numbers = row.numbers or (0,)
            self._write("dropped", node, delivered.group, row.stamp_issuer or 0, numbers[0], delivered.rows)
        elif isinstance(delivered, Unconfirmed):
            self._write("unconfirmed", *bundle_span(delivered.payload))
        elif delivered.begins_anew:
            self._write("anew", node)

    def _write(self, what: str, *numbers: int) -> None:
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
        self.unconfirmed: list[MessageId] = []
        self.anew: set[NodeId] = set()
        """Receivers that were told that they start anew: they missed what came before."""

    def note(self, what: str, time_ns: Nanos, numbers: Sequence[int]) -> None:
        """Take up an entry."""
        match what, numbers:
            case "sent", (message, *groups):
                self.sent.append(Sent(time_ns, message, tuple(groups)))
            case (("got" | "late"), (node, first, count)):
                own = self.got.setdefault(node, [])
                own += [Got(time_ns, message, what == "got") for message in range(first, first + count)]
            case "dropped", (node, group, issuer, number, count):
                self.told.setdefault(node, []).append(Told(group, issuer, number, count))
            case "unconfirmed", (first, count):
                self.unconfirmed += range(first, first + count)
            case "anew", (node,):
                self.anew.add(node)


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
    for what, when, *numbers in entries[1:]:
        diary.note(what, int(when), [int(number) for number in numbers])
    return diary
