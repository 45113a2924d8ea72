"""What another replica may claim: views, lives, places and slots that there can be.

A claim beyond is refused before it changes anything. Otherwise one message about a view in the far future
would keep a group from ever having a leader again, and one about a slot far ahead would keep it busy with
giving up slots that nobody ever used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.messages import (
    BaseChunk,
    Entries,
    GapCommit,
    GapRequest,
    InView,
    Return,
    StartView,
    SyncPrepare,
    ViewChange,
    ViewChangeRequest,
)
from ordercast.core import SECOND, Message, Nanos, NodeId, RemoteError

if TYPE_CHECKING:
    from ordercast.components.network_ordered.place import LogPlace, Slot
    from ordercast.components.network_ordered.replica import NetworkReplica

VIEWS_AHEAD_MAX = 1 << 32
"""No correct replica is so many views ahead."""
CLOCK_AHEAD_MAX: Nanos = 366 * 86_400 * SECOND
"""Lives and places are named by clocks. Clocks are wrong, but not by more than a year."""
SLOTS_AHEAD_MAX = 1 << 20
"""No log has so many slots that are not certain."""
NUMBERS_AHEAD_MAX = 1 << 32
"""No replica, however long it was away, is so many numbers of a sequencer behind."""

STATE_BYTES_MAX = 1 << 34
"""No service has a larger state: it would not fit into the memory of its hosts twice."""


def check_claims(source: NodeId, message: Message, replica: NetworkReplica) -> None:
    """Refuse a message that no correct replica sends."""
    view, now = replica.view, replica.env.now
    if isinstance(message, InView | ViewChangeRequest) and message.view - view > VIEWS_AHEAD_MAX:
        raise RemoteError(f"node {source} is in view {message.view}, too far ahead of view {view}")
    match message:
        case Return() if message.life - now > CLOCK_AHEAD_MAX:
            raise RemoteError(f"node {source} says that it began at {message.life}, too far ahead of {now}")
        case StartView() | SyncPrepare() | ViewChange():
            _check_log(replica, message.base, message.place)
            _check_slots(source, replica, message.noops)
        case BaseChunk():
            _check_log(replica, message.base, message.base)
            _check_chunk(source, message)
        case GapRequest() | GapCommit():
            _check_slots(source, replica, message.slots)
        case Entries():
            _check_slots(source, replica, tuple(entry.slot for entry in message.entries))
            for entry in message.entries:
                replica.ordering.check(entry)


def _check_chunk(source: NodeId, chunk: BaseChunk) -> None:
    """Refuse a part of a state that is larger than any, or that brings its taker no nearer to the end."""
    end = chunk.offset + len(chunk.data)
    if chunk.total > STATE_BYTES_MAX or end > chunk.total or (not chunk.data and end < chunk.total):
        raise RemoteError(
            f"node {source} sends {len(chunk.data)} bytes at {chunk.offset} of a state of {chunk.total} bytes"
        )


def _check_slots(source: NodeId, replica: NetworkReplica, slots: tuple[Slot, ...]) -> None:
    """Refuse slots that are too far ahead of all that is known of their sequencers."""
    for sequencer, number in slots:
        known = replica.ordering.highest(sequencer)
        if known is not None and number - known > SLOTS_AHEAD_MAX:
            raise RemoteError(
                f"node {source} names number {number} of sequencer {sequencer}, too far ahead of {known}"
            )


def _check_log(replica: NetworkReplica, base: LogPlace, place: LogPlace) -> None:
    """Refuse a log that is longer than any, or in the far future."""
    now = replica.env.now
    if max(base.clock, place.clock) - now > CLOCK_AHEAD_MAX:
        raise RemoteError(f"a log from {base.clock} to {place.clock} is too far ahead of {now}")
    for sequencer, number in base.numbers:
        known = replica.ordering.highest(sequencer)
        if known is not None and number - known > NUMBERS_AHEAD_MAX:
            raise RemoteError(f"a log begins at number {number} of sequencer {sequencer}, far beyond {known}")
    check_length(base, place)


def check_length(base: LogPlace, place: LogPlace) -> None:
    """Refuse a log that is longer than any."""
    before = dict(base.numbers)
    slots = sum(max(0, last - before.get(sequencer, 0)) for sequencer, last in place.numbers)
    if slots > SLOTS_AHEAD_MAX:
        raise RemoteError(f"a log of {slots} slots is too long")
