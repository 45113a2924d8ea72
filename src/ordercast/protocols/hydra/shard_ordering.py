"""Hydra's order for replicas whose messages go to several groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ordercast.components.cross_shard import ShardOrdering, ShardOwner
from ordercast.components.network_ordered import LogEntry, LogPlace
from ordercast.components.network_ordered.place import Slot
from ordercast.core import Message, NodeId, RemoteError
from ordercast.protocols.hydra.lane_life import ENDING, NOT_BEGUN
from ordercast.protocols.hydra.messages import Groupcast
from ordercast.protocols.hydra.replica_ordering import HydraOrdering

if TYPE_CHECKING:
    from ordercast.protocols.hydra.lane import Lane


class HydraShardOrdering(HydraOrdering, ShardOrdering):
    """The reception of one replica. It leaves out what the replica must not take, and waits there."""

    _owner: ShardOwner

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take a packet, if the replica may, or something else."""
        if type(message) is Groupcast and self._owner.has_promised:
            self.reception.merge.check_stamper(source, message.sequencer)
            if self._is_withheld(message):
                return
        super().on_message(source, message)

    def _is_withheld(self, packet: Groupcast) -> bool:
        """Whether a packet must not be taken. Its number is known then, and its sequencer alive."""
        entry = self._entry(packet)
        if self._lane(packet.sequencer) is None or not self._owner.withhold(entry):
            return False
        self.reception.doubt(*entry.slot)
        try:
            self.reception.on_groupcast(packet)
        except RemoteError:
            self.reception.believe(*entry.slot)
            raise
        self.reception.exists(*entry.slot)
        return True

    def offer(self, entry: LogEntry) -> None:
        """Take an entry that was missing, if the replica may."""
        if self._owner.withhold(entry):
            self.reception.doubt(*entry.slot)
            return
        # What was found cannot be given up. So there is always room in a full buffer for the sequencer that
        # all others wait for.
        merge = self.reception.merge
        is_awaited = merge.floor()[1] == entry.sequencer
        self.reception.offer(self._packet(entry), 1 + merge.held if is_awaited else 1)

    def reset(self, place: LogPlace, entries: Iterable[LogEntry], voids: Iterable[Slot]) -> None:
        """Go to a place; what must not be taken stays out."""
        super().reset(place, entries, voids)
        self._see_taken()
        self.sift()

    def _see_taken(self) -> None:
        """Know all numbers of what the replica has taken, also from others or before a restart: when a
        sequencer is removed, they count in the other groups because this group reports them."""
        lanes = self.reception.merge.lanes
        for entry in self._owner.taken:
            if entry.sequencer in lanes:
                lanes[entry.sequencer].see(entry.groups, entry.numbers)

    def sift(self) -> None:
        """Take out of all lanes what must not be taken."""
        for slot in self._owner.aside:
            self.reception.exists(*slot)
            self.reception.doubt(*slot)
        if self._owner.has_promised:
            for entry in list(self.waiting()):
                if self._owner.withhold(entry):
                    self.reception.doubt(*entry.slot)

    def believe(self, slot: Slot) -> None:
        """Its packet may be taken."""
        self.reception.believe(*slot)

    def is_void(self, entry: LogEntry) -> bool:
        """Whether its lane ends before one of its numbers."""
        lane = self.reception.merge.lanes.get(entry.sequencer)
        if lane is None or lane.final is None:
            return False
        return entry.number > lane.final[self._group] or not entry.is_within(lane.final)

    def bound(self, slot: Slot) -> int | None:
        """The clock of a later packet, of a flush, or of the boundary where the lane ends."""
        lane = self.reception.merge.lanes.get(slot[0])
        if lane is None or lane.state in NOT_BEGUN:
            return None
        return min(self._bounds(lane, slot[1]), default=None)

    def _bounds(self, lane: Lane, number: int) -> Iterator[int]:
        yield from (packet.clock for later, packet in lane.early.items() if later > number)
        told, clock = lane.told
        if told >= number:
            yield clock
        if lane.state is ENDING and lane.sequencer in self._ended:
            yield self._ended[lane.sequencer]

    def waiting(self) -> Iterator[LogEntry]:
        """The entries of all packets in the lanes."""
        return (self._entry(packet) for lane in self._begun_lanes() for packet in lane.packets())
