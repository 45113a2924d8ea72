"""What a replica gives to others: entries of its log, and the state at its base.

A large state takes a while, and calls go on meanwhile. So the base stays where it is while another replica
fetches the state there and the log behind it. Otherwise the next checkpoint would send that replica back to
the beginning, again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.messages import (
    BaseChunk,
    BaseRequest,
    Entries,
    FetchEntries,
    StepsTold,
)

if TYPE_CHECKING:
    from ordercast.components.network_ordered.place import LogEntry, Slot
    from ordercast.components.network_ordered.replica import NetworkReplica
    from ordercast.core import Nanos, NodeId


LOG_MAX = 1 << 16
"""The base does not stay any longer when the log behind it has so many entries."""
HOLD = 16
"""So many times `silence_ns` the base stays without a sign of the other replica. Where processors are busy,
it is often silent for longer than a leader may be. A long transfer that began anew each time would never end.
"""


class Supply:
    """Sends in chunks, so that no message is too large."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica
        self._asked: Nanos | None = None
        """When another replica asked for the state, or for the log behind it, or to return."""

    @property
    def holds_base(self) -> bool:
        """Whether another replica is fetching the state at the base, and what lies behind it."""
        replica = self._replica
        patience = HOLD * replica.options.silence_ns
        recent = self._asked is not None and replica.env.now - self._asked < patience
        return recent and len(replica.log.entries) < LOG_MAX

    def hold_base(self) -> None:
        """Another replica has lost its memory. Whoever leads when it returns, the state that it fetches must
        still be there, so all keep theirs."""
        self._asked = self._replica.env.now

    def send_entries(self, to: NodeId, entries: list[LogEntry], lacking: tuple[Slot, ...] = ()) -> None:
        """Send entries, and say which slots are missing here too."""
        replica = self._replica
        part: list[LogEntry] = []
        size = 0
        for entry in entries:
            part.append(entry)
            size += len(entry.payload)
            if size >= replica.options.chunk_bytes:
                replica.env.send(to, Entries(replica.view, replica.tag, tuple(part), ()))
                part, size = [], 0
        if part or lacking:
            replica.env.send(to, Entries(replica.view, replica.tag, tuple(part), lacking))

    def on_fetch(self, source: NodeId, message: FetchEntries) -> None:
        """Send entries that another replica needs; those before the base are only in the state there."""
        replica, entries = self._replica, []
        if self.holds_base:
            self._asked = replica.env.now
        for slot in message.slots:
            entry = replica.find(slot)
            if entry is not None:
                entries.append(entry)
            elif replica.log.is_behind(slot):
                self.offer_state(source)
                return
        self.send_entries(source, entries)

    def offer_state(self, to: NodeId) -> None:
        """Offer the state at the base of the log."""
        self._send_chunk(to, 0)

    def on_state_request(self, source: NodeId, message: BaseRequest) -> None:
        """Send the next part of the state, or the first of another one."""
        same = (message.clock, message.sequencer) == self._replica.log.base.rank
        self._send_chunk(source, message.offset if same else 0)

    def tell_steps(self, to: NodeId, since: int) -> None:
        """Tell a replica the changes of the sequencers after a tag, if they are kept."""
        steps = self._replica.ordering.steps_since(since)
        if steps is not None:
            self._replica.env.send(to, StepsTold(since, steps))

    def _send_chunk(self, to: NodeId, offset: int) -> None:
        replica, state = self._replica, self._replica.ledger.state
        self._asked = replica.env.now
        data = state[offset : offset + replica.options.chunk_bytes]
        replica.env.send(to, BaseChunk(replica.log.base, len(state), offset, data))
