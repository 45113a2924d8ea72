"""What a receiver knows of one sequencer (the arrays s and c of Algorithm 2, and the gaps between)."""

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from ordercast.core import Nanos, NodeId, RemoteError
from ordercast.protocols.hydra.messages import NEVER, Groupcast

RUN_MAX = 4096
"""Missing numbers that are given up at once: one far ahead must not hold a receiver up for long."""
AHEAD_MAX = 1 << 32
"""No sequencer counts so far ahead of what a receiver has heard of."""
UNKNOWN: Nanos = 1 << 40
"""Stands for the time between two messages of a sequencer that has sent less than two."""


Question: TypeAlias = tuple[int, Nanos]
"""For a flush above this clock, asked at this time."""


class Lane:
    """One sequencer, as seen by one receiver.

    Numbers are those of the receiver's own group. All up to `front` are settled (delivered or notified) or in
    `queue`; those above are missing, or in `early`, up to `high`, the highest that is known to exist. Numbers
    are settled one after the other.
    """

    __slots__ = (
        "asked", "clock", "early", "final", "first_early", "front", "frozen", "gap_high", "gap_since",
        "heard", "heard_at", "high", "joining", "mean_ns", "needed_high", "needed_since", "node", "queue",
        "safe", "seen", "sequencer", "strikes",
    )  # fmt: skip

    def __init__(self, sequencer: int, node: NodeId, groups: int, clock: int = 0, number: int = 0) -> None:
        self.sequencer = sequencer
        self.node = node
        self.front = self.high = number
        self.clock = clock
        """The paper's c: nothing unheard-of has this clock or a lower one, unless its number is missing."""
        self.safe = clock
        """Everything with this clock or a lower one is settled, or in `queue`; below `clock` where there is
        a gap."""
        self.queue: deque[Groupcast] = deque()
        self.early: dict[int, Groupcast] = {}
        self.first_early = 0
        """The lowest number in `early`, if there is one."""
        self.seen = [0] * groups
        """The highest number of every group in any multi-stamp (section 4.4); of the own one, see `high`."""
        self.joining = False
        """It is being added: only holds delivery back at `safe`, until its start is agreed."""
        self.frozen = False
        """It is being removed: what was reported of it stands, and nothing more is accepted."""
        self.final: tuple[int, ...] | None = None
        """It was removed: the last numbers of all groups."""
        self.asked: Question | None = None
        """A question that it has not answered yet."""
        self.heard = True
        self.strikes = 0
        self.gap_since: Nanos | None = None
        self.gap_high = 0
        """What was known to exist when the gap was found."""
        self.needed_since: Nanos | None = None
        """Since when something waits for missing numbers only, those up to `needed_high`."""
        self.needed_high = 0
        self.heard_at: Nanos = 0
        self.mean_ns: Nanos = UNKNOWN
        """Between two messages, a moving mean."""

    @property
    def has_gap(self) -> bool:
        """Whether numbers are missing."""
        return self.front < self.high

    @property
    def settled(self) -> int:
        """Numbers up to here are delivered or notified."""
        return self.front - len(self.queue)

    @property
    def highest(self) -> int:
        """No packet here has a higher clock than this; 0 if there is none."""
        if not self.queue and not self.early:
            return 0
        if self.final is None:
            return self.clock
        return max(packet.clock for packet in (*self.queue, *self.early.values()))

    def missing(self) -> range:
        """The first run of missing numbers."""
        stop = self.first_early if self.early else self.high + 1
        return range(self.front + 1, stop)

    def note(self, number: int, clock: int) -> None:
        """A number exists, and what is unheard-of is later than this clock."""
        if number > self.high:
            self.high = number
        if clock > self.clock:
            self.clock = clock
        if self.front == self.high:
            self.safe = self.clock

    def append(self, packet: Groupcast) -> None:
        """The packet with the next number is here, and maybe it was all that some others waited for."""
        self.front += 1
        self.queue.append(packet)
        if self.early:
            self._pull()
        self.safe = self.clock if self.front == self.high else self.queue[-1].clock
        if self.front >= self.needed_high:
            self.needed_since = None

    def keep_early(self, number: int, packet: Groupcast) -> None:
        """A packet came before one with a lower number."""
        if not self.early or number < self.first_early:
            self.first_early = number
        self.early[number] = packet

    def skip(self) -> range:
        """Give up on the first missing numbers, not too many at once; returns them."""
        missing = self.missing()[:RUN_MAX]
        self.front = missing.stop - 1
        self._pull()
        if self.front == self.high:
            self.safe = self.clock
        elif self.queue:
            self.safe = self.queue[-1].clock
        if self.front >= self.needed_high:
            self.needed_since = None
        return missing

    def report(self, group: int) -> tuple[int, ...]:
        """The highest numbers seen, of all groups; of a removed one, those agreed upon."""
        return (*self.seen[:group], max(self.seen[group], self.high), *self.seen[group + 1 :])

    def see(self, groups: Iterable[int], numbers: Iterable[int]) -> None:
        """Take note of a multi-stamp."""
        seen = self.seen
        for group, number in zip(groups, numbers, strict=False):
            if number > seen[group]:
                # A report would make it the last number of a group that never gets there.
                if number - seen[group] > AHEAD_MAX:
                    raise RemoteError(f"number {number} of sequencer {self.sequencer} for group {group}")
                seen[group] = number

    def finish(self, final: tuple[int, ...], group: int) -> int:
        """It is removed: nothing comes after these numbers. Returns how many packets are refused.

        A packet counts only if all of its numbers are within those agreed upon. Otherwise it could be
        delivered here while another of its groups never hears of it.
        """
        kept = {}
        number = self.settled
        for packet in self.queue:
            number += 1
            kept[number] = packet
        kept |= self.early
        held = len(kept)
        before = min(self.safe, self.queue[0].clock - 1) if self.queue else self.safe
        self.front = self.settled
        self.queue.clear()
        self.early = {number: packet for number, packet in kept.items() if within(packet, final)}
        self.final = final
        self.high = max(self.front, final[group])
        self.clock = NEVER
        self._pull()
        if self.front == self.high:
            self.safe = NEVER
        else:
            self.safe = self.queue[-1].clock if self.queue else before
        return held - len(self.queue) - len(self.early)

    def _pull(self) -> None:
        early = self.early
        while self.front + 1 in early:
            self.front += 1
            self.queue.append(early.pop(self.front))
        self.first_early = min(early, default=0)


def within(packet: Groupcast, final: tuple[int, ...]) -> bool:
    """Whether no number of a packet is above the last one of its group."""
    return all(number <= final[group] for group, number in zip(packet.groups, packet.numbers, strict=True))
