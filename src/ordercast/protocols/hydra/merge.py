"""The receiver's merge of the messages of all sequencers (section 4.3.2, Algorithm 2 lines 7 to 16).

Messages are ordered by (clock, sequencer). The first of them may go when no sequencer can come before it any
more: when it is not above the *floor*, the lowest (safe, sequencer) of all lanes. Where numbers are missing,
the floor lies below the paper's c_min, here the *ceiling*: a message between the two can go once its
receiver is told of the missing ones. So drop notifications wait until something needs them.

Clocks of lanes only grow, so both minima are kept as heaps of lower bounds, which are mended when looked at,
and so is the first message behind a gap: a packet costs O(log M) for M sequencers, gaps or not.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from ordercast.core import NodeId, RemoteError
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE
from ordercast.protocols.hydra.messages import NEVER, Flush, Groupcast

Position: TypeAlias = tuple[int, int]
"""A place in the order: clock and sequencer."""

END: Position = (NEVER + 1, 0)
"""After everything."""


class Merge:
    """The lanes of a receiver, and which of their messages comes next."""

    __slots__ = (
        "_ceiling", "_early", "_floor", "_gapped", "_heads", "_reached", "group", "held", "lanes", "last",
        "limit",
    )  # fmt: skip

    def __init__(self, group: int, limit: int) -> None:
        self.group = group
        self.limit = limit
        self.lanes: dict[int, Lane] = {}
        self.last: Position = (0, 0)
        """The place of the last message that was taken."""
        self.held = 0
        """Packets in all lanes together."""
        self._heads: list[Position] = []
        self._early: list[Position] = []
        """A heap of lower bounds too: for each lane with messages behind a gap, the place of the first."""
        self._gapped: dict[int, int] = {}
        """For each sequencer the clock of its valid entry in that heap; its other entries are outdated."""
        self._reached: Position = (0, 0)
        """The floor when it was last computed; it is not lower now."""
        self._floor: list[Position] = []
        self._ceiling: list[Position] = []

    def check_stamper(self, source: NodeId, sequencer: int) -> None:
        """Refuse what another node says in the name of a sequencer."""
        lane = self.lanes.get(sequencer)
        if lane is not None and lane.node != source:
            raise RemoteError(f"node {source} speaks for sequencer {sequencer}, which is at node {lane.node}")

    def add(self, lane: Lane) -> None:
        """Add a sequencer."""
        self.lanes[lane.sequencer] = lane
        self._rebuild()

    def discard(self, sequencer: int) -> None:
        """Remove a sequencer."""
        lane = self.lanes.pop(sequencer, None)
        if lane is not None:
            self.held -= lane.held
            self._rebuild()

    def offer(self, lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
        """Take a packet of a sequencer with this number for the receiver's group; False if it is not kept.

        There is `room` for so many packets beyond the limit.
        """
        front = lane.front
        if number <= front or number in lane.early:
            return False
        if lane.state is not ACTIVE and not lane.accepts(packet):
            if lane.final is not None:
                lane.doom(number)
            return False
        clock = packet.clock
        if len(packet.groups) > 1:
            lane.see(packet.groups, packet.numbers)
        # Behind the last one that went it can only be where this receiver missed an addition (Appendix B):
        # it is told of the drop, for the order stands above all.
        if self.held >= self.limit + room or (clock, packet.sequencer) <= self.last:
            lane.note(number, clock)
            if (clock, packet.sequencer) <= self.last:
                lane.doom(number)
            return False
        if number == front + 1:
            if not lane.queue:
                heappush(self._heads, (clock, packet.sequencer))
            elif clock <= lane.queue[-1].clock:  # no sequencer stamps so
                lane.note(number, 0)
                lane.doom(number)
                return False
            self.held += 1 - lane.append(packet)
        else:
            self.held += 1
            lane.keep_early(number, packet)
            if lane.first_early == number:
                self._gapped[packet.sequencer] = clock
                heappush(self._early, (clock, packet.sequencer))
        return True

    def flush(self, flush: Flush) -> None:
        """Take a sequencer's clock and last numbers."""
        self.lanes[flush.sequencer].flush(flush.clock, flush.numbers, self.group)

    def head(self) -> Position | None:
        """The place of the first message here."""
        return self._heads[0] if self._heads else None

    def first(self) -> Position:
        """The place of the first message here, behind a gap or not; the end if there is none."""
        head = self._heads[0] if self._heads else END
        return min(head, self.first_early()) if self._early else head

    def take(self, limit: Position = END) -> Groupcast | None:
        """The first message, if it may be delivered and its place is not above the limit."""
        heads = self._heads
        if not heads:
            return None
        head = heads[0]
        if head > limit or (head > self._reached and head > self.floor()):
            return None
        self.last = head
        queue = self.lanes[head[1]].queue
        packet = queue.popleft()
        self.held -= 1
        if queue:
            heapreplace(heads, (queue[0].clock, head[1]))
        else:
            heappop(heads)
        return packet

    def floor(self) -> Position:
        """Up to here everything is settled or in a queue."""
        heap, lanes = self._floor, self.lanes
        while heap:
            known, sequencer = heap[0]
            safe = lanes[sequencer].safe
            if safe == known:
                self._reached = heap[0]
                return self._reached
            heapreplace(heap, (safe, sequencer))
        return END

    def ceiling(self) -> Position:
        """The paper's c_min: up to here every message has arrived, or is known to be missing."""
        heap, lanes = self._ceiling, self.lanes
        while heap:
            known, sequencer = heap[0]
            clock = lanes[sequencer].clock
            if clock == known:
                return heap[0]
            heapreplace(heap, (clock, sequencer))
        return END

    def first_early(self) -> Position:
        """The place of the first message behind a gap of its own sequencer; it only needs a notification."""
        heap, lanes = self._early, self.lanes
        while heap:
            known, sequencer = heap[0]
            lane = lanes[sequencer]
            if self._gapped.get(sequencer) != known:
                heappop(heap)
            elif not lane.early:
                del self._gapped[sequencer]
                heappop(heap)
            elif (clock := lane.early[lane.first_early].clock) == known:
                return heap[0]
            else:
                self._gapped[sequencer] = clock
                heapreplace(heap, (clock, sequencer))
        return END

    def gap_before(self, target: Position) -> Lane | None:
        """The lane whose missing numbers are the only thing that a target above the floor waits for."""
        lane = self.lanes[self.floor()[1]]
        return lane if lane.has_gap and target <= self.ceiling() else None

    def skip(self, lane: Lane, last: int) -> range:
        """Give up on the first missing numbers of a lane, up to the last; returns them."""
        empty, held = not lane.queue, lane.held
        missing = lane.skip(last)
        self.held -= held - lane.held
        if empty and lane.queue:
            heappush(self._heads, (lane.queue[0].clock, lane.sequencer))
        return missing

    def drop_early(self, lane: Lane, number: int) -> None:
        """Drop a packet behind a gap, if it is here."""
        self.held -= lane.drop_early(number)

    def restart(self, last: Position) -> None:
        """Go on after the message at this place; the lanes have moved there, and have no packets."""
        self.last = last
        self.held = 0
        self._rebuild()

    def finish(self, lane: Lane, final: tuple[int, ...]) -> None:
        """A sequencer is removed after these numbers."""
        self.held -= lane.finish(final, self.group)
        self._rebuild()

    def highest(self) -> int:
        """No message here has a higher clock than this."""
        return max((lane.highest for lane in self.lanes.values()), default=0)

    def _rebuild(self) -> None:
        lanes = self.lanes.values()
        self._reached = (0, 0)
        self._gapped = {lane.sequencer: lane.early[lane.first_early].clock for lane in lanes if lane.early}
        self._early = [(clock, sequencer) for sequencer, clock in self._gapped.items()]
        self._heads = [(lane.queue[0].clock, lane.sequencer) for lane in lanes if lane.queue]
        self._floor = [(lane.safe, lane.sequencer) for lane in lanes]
        self._ceiling = [(lane.clock, lane.sequencer) for lane in lanes]
        for heap in (self._early, self._heads, self._floor, self._ceiling):
            heapify(heap)
