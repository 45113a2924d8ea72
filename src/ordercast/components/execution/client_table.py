"""The client table: what was executed for each client, so that nothing is executed twice.

For each client it has a floor and the results of calls above it. A client sends its floor along: it waits for
nothing below. A call below the floor is never executed. So the table is as large as what clients have under
way, and at most `RESULTS_MAX` calls a client; if a client has more, its oldest result is forgotten, and the
floor rises above it.

The table is part of the replicated state: it depends on the order of calls alone.

Calls that go to several groups have records of their own, one for each set of groups. All of these groups
must execute such a call, or none. They see the same calls to this very set, in the same order, so they find
the same floor; of other calls one group may have seen more than another.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ordercast.components.execution.call import Call
from ordercast.core import Groups, MessageId, NodeId, Stamp, message_sender

RESULTS_MAX = 1 << 16


class Executed(NamedTuple):
    """A call that was executed."""

    stamp: Stamp
    """Where."""
    results: bytes


class ClientRecord:
    """What was executed for one client."""

    __slots__ = ("floor", "results")

    def __init__(self, floor: MessageId = 0, results: dict[MessageId, Executed] | None = None) -> None:
        self.floor = floor
        self.results: dict[MessageId, Executed] = results or {}

    def raise_floor(self, floor: MessageId) -> None:
        """Forget the results below a floor, for good."""
        if floor > self.floor:
            self.floor = floor
            if self.results and min(self.results) < floor:
                self.results = {first: kept for first, kept in self.results.items() if first >= floor}


PackedRecord = tuple[MessageId, list[tuple[MessageId, int, int, tuple[int, ...], bytes]]]
PackedTable = dict[NodeId, PackedRecord]
PackedShared = Sequence[tuple[NodeId, Groups, PackedRecord]]


class ClientTable:
    """What was executed for all clients."""

    __slots__ = ("_clients", "_shared")

    def __init__(self) -> None:
        self._clients: dict[NodeId, ClientRecord] = {}
        self._shared: dict[tuple[NodeId, Groups], ClientRecord] = {}
        """The records of calls to several groups."""

    def admit(self, call: Call, groups: Groups = ()) -> ClientRecord | None:
        """The record of a call's client, for the groups that it went to if these are several; None if the
        call must never be executed."""
        if groups:
            client = self._shared.setdefault((call.client, groups), ClientRecord())
        else:
            client = self._clients.get(call.client) or self._clients.setdefault(call.client, ClientRecord())
        client.raise_floor(call.floor)
        return client if call.first >= client.floor else None

    def note(self, client: ClientRecord, first: MessageId, executed: Executed) -> None:
        """Keep the results of a call."""
        client.results[first] = executed
        if len(client.results) > RESULTS_MAX:
            client.raise_floor(sorted(client.results)[1])

    def keep(self, first: MessageId, executed: Executed, groups: Groups = ()) -> None:
        """Keep the results of a call that took long, if its client still waits for them."""
        sender = message_sender(first)
        client = self._shared.get((sender, groups)) if groups else self._clients.get(sender)
        if client is not None and first >= client.floor:
            self.note(client, first, executed)

    def floor(self, client: NodeId) -> MessageId:
        """The floor of a client; 0 if it has not called yet."""
        record = self._clients.get(client)
        return 0 if record is None else record.floor

    def find(self, first: MessageId, client: NodeId) -> Executed | None:
        """The results of a call, if they are still kept."""
        record = self._clients.get(client)
        return None if record is None else record.results.get(first)

    def pack(self) -> PackedTable:
        """The table as plain data; equal tables give equal data."""
        return {node: _pack(client) for node, client in sorted(self._clients.items())}

    def pack_shared(self) -> PackedShared:
        """The records of calls to several groups, likewise."""
        return [(node, groups, _pack(client)) for (node, groups), client in sorted(self._shared.items())]

    @classmethod
    def unpack(cls, packed: PackedTable, shared: PackedShared = ()) -> "ClientTable":
        """The table from such data."""
        table = cls()
        table._clients = {node: _unpack(record) for node, record in packed.items()}
        table._shared = {(node, groups): _unpack(record) for node, groups, record in shared}
        return table


def _pack(client: ClientRecord) -> PackedRecord:
    results = [
        (first, kept.stamp.clock, kept.stamp.issuer, kept.stamp.numbers, kept.results)
        for first, kept in sorted(client.results.items())
    ]
    return client.floor, results


def _unpack(packed: PackedRecord) -> ClientRecord:
    floor, results = packed
    kept = {
        first: Executed(Stamp(clock, issuer, tuple(numbers)), result)
        for first, clock, issuer, numbers, result in results
    }
    return ClientRecord(floor, kept)
