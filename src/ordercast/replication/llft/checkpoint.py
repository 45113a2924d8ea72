"""The checkpoint of a replica: all that another one needs to go on from the same place."""

from __future__ import annotations

import msgspec

from ordercast.core import MALFORMED, LocalError, NodeId, RemoteError
from ordercast.replication.llft.answered import Ranges
from ordercast.replication.llft.connection import Connection, Kept, Outgoing
from ordercast.replication.llft.lineage import Begun, Views
from ordercast.replication.llft.messages import CLIENT, Role
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.names import Link, Party, ViewId
from ordercast.replication.llft.notices import Pending
from ordercast.replication.llft.seats import Seats


class LinkRecord(msgspec.Struct, frozen=True, array_like=True):
    """One end of a connection."""

    link: Link
    role: Role
    produced: int
    base: int
    acked: int
    released: int
    sent: tuple[tuple[int, Kept], ...]
    view: ViewId | None
    remote_base: int
    delivered: int
    watermark: int
    partial: tuple[bytes, ...]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """A replica after a place."""

    place: int
    lineage: tuple[Begun, ...]
    clock: int
    executor: bytes
    links: tuple[LinkRecord, ...]
    closed: tuple[tuple[Party, Party, int], ...]
    views: dict[Party, ViewId]
    answered: dict[Party, Ranges] = {}
    seats: dict[NodeId, int] = {}
    """Who has a seat in the group, and since which place. Empty if nobody has joined or left yet."""
    seated: int = 0
    """The place at which somebody joined or left last."""
    pending: Pending | None = None
    """What is not settled of this; None if all is, or if it will be before it is handed over."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def capture(
    place: int,
    lineage: Views,
    executor: bytes,
    messaging: Messaging,
    answered: dict[Party, Ranges],
    seats: Seats,
    pending: Pending | None,
) -> bytes:
    """The checkpoint of a member that has performed everything up to a place."""
    links = tuple(map(_record, messaging.connections.values()))
    closed = tuple((client, server, number) for (client, server), number in sorted(messaging.closed.items()))
    views = dict(sorted(messaging.views.begun.items()))
    record = (place, lineage, messaging.clock, executor, links, closed, views)
    if pending is not None:
        return _encoder.encode((*record, answered, seats.since, seats.changed_at, pending))
    if seats.changed_at:
        return _encoder.encode((*record, answered, seats.since, seats.changed_at))
    return _encoder.encode((*record, answered) if answered else record)


def read(data: bytes) -> Record:
    """The checkpoint in some bytes, or `RemoteError`."""
    try:
        record = _decoder.decode(data)
    except (*MALFORMED, LocalError) as error:
        raise RemoteError(f"a checkpoint cannot be read: {error}") from error
    if record.pending is not None:
        record.pending.check(record.place, record.lineage, {one.link: one.produced for one in record.links})
    return record


def _record(connection: Connection) -> LinkRecord:
    outgoing, incoming = connection.outgoing, connection.incoming
    return LinkRecord(
        connection.link,
        connection.role,
        outgoing.produced,
        outgoing.base,
        outgoing.acked,
        outgoing.released,
        tuple(sorted(outgoing.sent.items())),
        incoming.view,
        incoming.base,
        incoming.delivered,
        incoming.delivered_watermark(),
        tuple(incoming.partial),
    )


def install(record: Record, messaging: Messaging, *, keeps_delivered: bool = False) -> None:
    """Take over connections. Messages that this member has received itself, and that come after, are kept.

    `keeps_delivered`: what this member has delivered beyond the checkpoint stays delivered: it has logged it.
    """
    messaging.clock = max(messaging.clock if keeps_delivered else 0, record.clock)
    for client, server, number in record.closed:
        messaging.close(Link(client, server, number))
    known_links = {known.link for known in record.links}
    performed = [known.link for known in record.links if known.delivered or known.role == CLIENT]
    for link in [link for link in messaging.connections if link not in known_links]:
        if any(other[:2] == link[:2] and other > link for other in performed):  # it was replaced
            messaging.close(link)
        elif not keeps_delivered and messaging.connections[link].role == CLIENT:
            messaging.abandon(link)
        elif not keeps_delivered:
            _begin_anew(messaging.connections[link])
    for known in record.links:
        connection = messaging.open(known.link, known.role)
        outgoing, incoming = connection.outgoing, connection.incoming
        outgoing.sent = dict(known.sent)
        outgoing.produced, outgoing.base = known.produced, known.base
        outgoing.acked, outgoing.released = known.acked, known.released
        outgoing.passed = 0
        outgoing.cleared = known.produced
        incoming.partial = list(known.partial)
        if keeps_delivered and incoming.delivered >= known.delivered:
            continue
        incoming.view, incoming.base = known.view, known.remote_base
        incoming.restart(known.delivered, known.watermark)
    messaging.views.install(record.views)


def _begin_anew(connection: Connection) -> None:
    """Nothing of a connection was performed yet where the checkpoint was taken."""
    connection.outgoing = Outgoing()
    connection.incoming.partial = []
    connection.incoming.restart(0, 0)
