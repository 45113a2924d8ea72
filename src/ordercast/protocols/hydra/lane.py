"""What a receiver knows of one sequencer (the arrays s and c of Algorithm 2, and the gaps)."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ordercast.core import Nanos, NodeId, RemoteError
from ordercast.protocols.hydra.lane_life import (
    ACTIVE,
    ENDING,
    JOINING,
    LANE_LIFE,
    LaneEvent,
    LanePlace,
    LaneState,
)
from ordercast.protocols.hydra.messages import NEVER, Groupcast
from ordercast.protocols.hydra.pulse import Pulse
from ordercast.protocols.hydra.search import Search

RUN_MAX = 4096
"""How many missing numbers are given up at once, so that a number far ahead does not block for long."""
AHEAD_MAX = 1 << 32
"""No correct sequencer is so far ahead of the numbers that a receiver knows."""

Question: TypeAlias = tuple[int, Nanos]
"""A request for a flush above this clock, and its time."""
Watch: TypeAlias = tuple[Nanos, int]
"""Since when missing numbers are watched, and up to which number."""


class Lane(Pulse):
    """One sequencer, as seen by one receiver.

    Numbers are those of the receiver's own group. All up to `front` are settled (delivered or notified) or in
    `queue`; those above are missing, or in `early`, up to `high`, the highest that is known to exist. Numbers
    are settled one after the other.

    Others read its fields and never write them. Only `Merge` takes packets from the front of `queue`.
    """

    __slots__ = (
        "_needed", "_seen", "asked", "begun", "clock", "doomed", "early", "final", "first_early", "front",
        "gap", "high", "node", "queue", "safe", "search", "sequencer", "state", "told",
    )  # fmt: skip

    def __init__(
        self, sequencer: int, node: NodeId, groups: int, clock: int = 0, state: LaneState = JOINING
    ) -> None:
        super().__init__()
        self.sequencer = sequencer
        self.node = node
        self.state = state
        self.front = self.high = 0
        self.begun = 0
        """Its messages count after this number."""
        self.clock = clock
        """The paper's c: every unknown message has a higher clock, unless its number is missing."""
        self.safe = clock
        """Everything with this clock or a lower one is settled, or in `queue`; below `clock` where there is
        a gap."""
        self.queue: deque[Groupcast] = deque()
        self.early: dict[int, Groupcast] = {}
        self.first_early = 0
        """The lowest number in `early`, if there is one."""
        self.final: tuple[int, ...] | None = None
        """The last numbers of all groups, of a lane that is ending."""
        self.asked: Question | None = None
        """A request for a flush that it has not answered yet."""
        self.gap: Watch | None = None
        """The numbers missing when the gap was found."""
        self.told = (0, clock)
        """Its last number for the own group in its last flush, and the clock of that."""
        self.search: Search | None = None
        """The last search for missing packets."""
        self.doomed: set[int] = set()
        """Missing numbers whose packets came, but cannot be delivered."""
        self._seen = [0] * groups
        """The highest number of every group in any multi-stamp (section 4.4); of the own one, see `high`."""
        self._needed: Watch | None = None
        """The missing numbers that are the only thing a message waits for."""

    @property
    def has_gap(self) -> bool:
        """Whether numbers are missing."""
        return self.front < self.high

    @property
    def held(self) -> int:
        """How many packets are here."""
        return len(self.queue) + len(self.early)

    @property
    def settled(self) -> int:
        """Numbers up to here are delivered or notified."""
        return self.front - len(self.queue)

    @property
    def highest(self) -> int:
        """No packet here has a higher clock than this; 0 if there is none."""
        if not self.queue and not self.early:
            return 0
        if self.state is not ENDING:
            return self.clock
        return max(packet.clock for packet in (*self.queue, *self.early.values()))

    def find(self, number: int) -> Groupcast | None:
        """The packet with this number, if it is here."""
        index = number - self.settled - 1
        return self.queue[index] if 0 <= index < len(self.queue) else self.early.get(number)

    def packets(self) -> list[Groupcast]:
        """All packets here, in the order of their numbers."""
        return [*self.queue, *(packet for _, packet in sorted(self.early.items()))]

    def missing(self) -> range:
        """The first run of missing numbers."""
        stop = self.first_early if self.early else self.high + 1
        return range(self.front + 1, stop)

    # Its life

    def hold(self, clock: int) -> None:
        """A lane that joins: delivery goes up to the reported flush, and no further."""
        self.clock = self.safe = clock

    def start(self, clock: int, numbers: Sequence[int], group: int) -> None:
        """Start the lane as agreed: above this clock, after these numbers of all groups."""
        self.state = LANE_LIFE.after(self.state, LaneEvent.START)
        self.clock = self.safe = clock
        self.front = self.high = self.begun = numbers[group]
        self._seen = list(numbers)

    def freeze(self) -> None:
        """Freeze the lane for a removal: accept nothing more of it, because its state is reported."""
        self.state = LANE_LIFE.after(self.state, LaneEvent.FREEZE)

    def finish(self, final: tuple[int, ...], group: int) -> int:
        """End the lane: nothing comes after these numbers. Returns how many packets are refused.

        A packet counts only if all of its numbers are within those agreed upon. Otherwise it could be
        delivered here while another of its groups never hears of it.
        """
        self.state = LANE_LIFE.after(self.state, LaneEvent.FINISH)
        kept = {}
        number = self.settled
        for packet in self.queue:
            number += 1
            kept[number] = packet
        kept |= self.early
        held = len(kept)
        before = self._safe_without_queue()
        self.front = self.settled
        self.queue.clear()
        self.early = {number: packet for number, packet in kept.items() if _within(packet, final)}
        self.final = final
        self.high = max(self.front, final[group])
        self.clock, self.safe = NEVER, before
        self._pull()
        if self.front == self.high:
            self.safe = NEVER
        else:
            self.safe = self.queue[-1].clock if self.queue else before
        return held - len(self.queue) - len(self.early)

    def move(self, number: int, clock: int, group: int) -> None:
        """Go to the number that is settled where the last message has this clock, back or ahead.

        What was known to exist still does. The packets are gone; its owner offers them again.
        """
        self.queue.clear()
        self.early.clear()
        self.doomed.clear()
        self.first_early = 0
        self.front = number
        self.high = max(number, self.high if self.final is None else self.final[group])
        before = max(0, clock - 1)  # nothing of it is missing up to here
        self.clock = max(self.clock, before)
        self.safe = self.clock if self.front == self.high else before
        self.gap = self._needed = self.search = None

    def drop_early(self, number: int) -> bool:
        """Drop a packet that came before one with a lower number; False if it is not here."""
        if self.early.pop(number, None) is None:
            return False
        self.first_early = min(self.early, default=0)
        return True

    def place(self) -> LanePlace:
        """The state to keep over a restart."""
        safe = self._safe_without_queue()
        return LanePlace(
            self.sequencer, self.node, self.state, self.settled, self.high, self.clock, safe, self._seen,
            self.final, self.begun,
        )  # fmt: skip

    @classmethod
    def at(cls, place: LanePlace) -> "Lane":
        """A lane from its kept state; its packets count as lost."""
        lane = cls(place.sequencer, place.node, len(place.seen), place.clock)
        lane.state, lane.final = place.state, place.final
        lane.front, lane.high, lane.safe = place.settled, place.high, place.safe
        lane._seen, lane.begun = place.seen, place.begun
        return lane

    # What comes

    def accepts(self, packet: Groupcast) -> bool:
        """Whether a packet counts; one of an active lane always does."""
        return self.state is ACTIVE or (self.final is not None and _within(packet, self.final))

    def append(self, packet: Groupcast) -> int:
        """Take the packet with the next number, and early packets that only waited for it. Returns how many
        of those are refused."""
        refused = 0
        self.front = front = self.front + 1
        last = packet.clock
        if front > self.high:
            self.high = front
        if last > self.clock:
            self.clock = last
        self.queue.append(packet)
        if self.early:
            refused = self._pull()
            front, last = self.front, self.queue[-1].clock
        self.safe = self.clock if front == self.high else last
        if self._needed is not None and front >= self._needed[1]:
            self._needed = None
        return refused

    def keep_early(self, number: int, packet: Groupcast) -> None:
        """Keep a packet that came before one with a lower number."""
        if number > self.high:
            self.high = number
        if packet.clock > self.clock:
            self.clock = packet.clock
        if not self.early or number < self.first_early:
            self.first_early = number
        self.early[number] = packet

    def note(self, number: int, clock: int) -> None:
        """Note that a number exists, and that every unknown message is later than this clock."""
        if number > self.high:
            self.high = number
        if clock > self.clock:
            self.clock = clock
        if self.front == self.high:
            self.safe = self.clock

    def see(self, groups: Iterable[int], numbers: Iterable[int]) -> None:
        """Note the numbers of a multi-stamp."""
        seen = self._seen
        for group, number in zip(groups, numbers, strict=False):
            if number > seen[group]:
                # A report would make it the last number of a group that never gets there.
                if number - seen[group] > AHEAD_MAX:
                    raise RemoteError(
                        f"number {number} of sequencer {self.sequencer} for group {group} is too far ahead"
                    )
                seen[group] = number

    def flush(self, clock: int, numbers: tuple[int, ...], group: int) -> None:
        """Take a flush: its clock, and the last numbers of all groups."""
        if clock > self.clock:
            self._heard = True
        if self.state is ACTIVE:
            self.see(range(len(numbers)), numbers)
            self.note(numbers[group], clock)
            self.told = max(self.told, (numbers[group], clock))

    def report(self, group: int) -> tuple[int, ...]:
        """The highest numbers seen of all groups; for a removed sequencer, the agreed ones."""
        seen = self._seen
        return (*seen[:group], max(seen[group], self.high), *seen[group + 1 :])

    def beyond(self, final: tuple[int, ...], group: int) -> bool:
        """Whether numbers above the agreed ones were seen here."""
        return any(seen > last for seen, last in zip(self.report(group), final, strict=True))

    # What it is asked for

    def ask(self, clock: int, now: Nanos) -> None:
        """Note that the sequencer is asked for a flush above this clock."""
        self.asked = (clock, now)

    def answered(self) -> None:
        """Note that the requested flush came."""
        self.asked = None

    # What is missing

    def watch_gap(self, now: Nanos) -> None:
        """Watch the numbers that are missing now, if there are any."""
        self.gap = (now, self.high) if self.front < self.high else None

    def overdue(self, now: Nanos, hold_ns: Nanos) -> int:
        """The last number of a gap that has been held back long enough; 0 if there is no such gap."""
        if self.gap is None or self.front >= self.gap[1] or not self.has_gap:
            self.watch_gap(now)  # not the gap that was here before
            return 0
        since, high = self.gap
        return high if now - since >= hold_ns else 0

    def needed_for(self, now: Nanos) -> Nanos:
        """How long a message has waited only for missing numbers.

        All that are missing when the wait begins are waited for together: one after the other, a receiver
        could never catch up with a network that loses more often than its patience runs out.
        """
        if self._needed is None:
            self._needed = (now, self.high)
        return now - self._needed[0]

    def seek(self, now: Nanos) -> Search:
        """The search for the first missing numbers; it begins anew where it is not the same any more."""
        first, ending = self.front + 1, self.state is not ACTIVE
        if self.search is None or self.search.ending != ending:
            self.search = Search(first, self.high, now, ending)
        elif self.search.first != first:
            self.search.go_on(first, self.high, now)
        return self.search

    def come_late(self, number: int, now: Nanos) -> None:
        """Note how late the packet of a number comes that was known to be missing."""
        if number > self.front:
            if self.gap is not None and number <= self.gap[1] and number not in self.early:
                self.late_ns = max(self.late_ns, now - self.gap[0])
        elif self.search is not None and self.search.origin <= number <= self.search.known:
            self.late_ns = max(self.late_ns, now - self.search.began)

    def doom(self, number: int) -> None:
        """Note that the packet of a missing number cannot be delivered, whoever has it."""
        if self.front < number <= self.high:
            self.doomed.add(number)

    def hopeless(self) -> int:
        """The last of the first missing numbers that cannot be delivered; 0 if the first one can."""
        number = self.front
        while number + 1 in self.doomed:
            number += 1
        return number if number > self.front else 0

    def skip(self, last: int) -> range:
        """Give up on the first missing numbers up to the last, not too many at once; returns them."""
        missing = self.missing()
        missing = range(missing.start, min(missing.stop, last + 1, missing.start + RUN_MAX))
        self.doomed.difference_update(missing)
        self.front = missing.stop - 1
        self._pull()
        if self.front == self.high:
            self.safe = self.clock
        elif self.queue:
            self.safe = self.queue[-1].clock
        if self._needed is not None and self.front >= self._needed[1]:
            self._needed = None
        return missing

    def _pull(self) -> int:
        """Move early packets without a gap before them to the queue; returns how many are refused.

        No sequencer stamps a message with a lower clock than the one before it. A packet that claims so must
        not break the order: it counts as one that never came.
        """
        early, refused = self.early, 0
        last = self.queue[-1].clock if self.queue else self.safe
        while (packet := early.pop(self.front + 1, None)) is not None:
            if packet.clock <= last:
                self.doomed.add(self.front + 1)
                refused += 1
                break
            last = packet.clock
            self.front += 1
            self.queue.append(packet)
        self.first_early = min(early, default=0)
        return refused

    def _safe_without_queue(self) -> int:
        """Everything up to here would be settled even if the queue were lost."""
        return min(self.safe, self.queue[0].clock - 1) if self.queue else self.safe


def _within(packet: Groupcast, final: tuple[int, ...]) -> bool:
    """Whether no number of a packet is above the last one of its group."""
    return all(number <= final[group] for group, number in zip(packet.groups, packet.numbers, strict=True))
