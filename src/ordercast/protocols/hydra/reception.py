"""The reception of groupcasts: Algorithm 2 up to the gaps, about which it asks its owner.

It merges the messages of all sequencers by (clock, sequencer), follows the configurations, and gets flushes.
What becomes of missing numbers is not its business: a `Receiver` notifies of their drop (section 4.3.2), and
replicas agree on them (section 6). Each number is decided before delivery passes it, so a packet that is
found later falls into its place in the order by itself.

Its owner tells it what comes, and calls `advance` at the end of each handler. Inside `ordered` and the other
calls that it makes, the owner must not call `advance` or `reset`, except for `reset` inside `decided`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Protocol

from ordercast.components.network_ordered.place import LogPlace
from ordercast.core import Env, GroupId, NodeId, RemoteError
from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.lane import AHEAD_MAX, Lane
from ordercast.protocols.hydra.lane_life import ACTIVE, BLIND, FROZEN, NOT_BEGUN
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX, Limits
from ordercast.protocols.hydra.merge import END, Merge
from ordercast.protocols.hydra.messages import (
    Announce,
    Fetch,
    Flush,
    Flushes,
    Groupcast,
    Step,
    Steps,
    Suspect,
)
from ordercast.protocols.hydra.new_lane import started
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.solicitor import DELAY, RETRY, Solicitor

RUNS_MAX = 16
"""How many runs of missing numbers one handler gives up; the others wait for the next."""
MISSING_MAX = 256
"""Of how many missing numbers of a lane an owner is told at once."""
PATIENCE = "patience"
"""The timer of the owner to go on giving up."""


class Owner(Protocol):
    """Who is told what comes next, and asked about gaps."""

    def ordered(self, packet: Groupcast) -> None:
        """This packet is next."""

    def needed(self, lane: Lane) -> bool:
        """A message waits only for missing numbers of a lane; True if some of them were given up."""

    def missing(self, lane: Lane) -> None:
        """Numbers of a lane are known to be missing; told again and again, if the owner wants that."""

    def decided(self, step: Step) -> None:
        """A step is decided, and the lanes are changed; delivery may be before or beyond its boundary."""

    def changed(self, step: Step) -> None:
        """Delivery has reached the boundary of a step."""


class Reception:
    """What one receiver of a group has of the sequencers, and what of it comes next."""

    def __init__(
        self,
        env: Env,
        owner: Owner,
        group: GroupId,
        groups: int,
        service: tuple[NodeId, ...],
        aggregator: NodeId | None,
        options: HydraOptions,
        save: Callable[[], None],
        *,
        eager: bool = False,
    ) -> None:
        """An `eager` owner is told of missing numbers as soon as they are known."""
        self._env = env
        self._owner = owner
        self.group = group
        self._own = (group,)
        self._groups = groups
        self._service = service
        self._options = options
        self._eager = eager
        self._adaptive = options.flush == "adaptive"
        self.limits = Limits(service, groups)
        self.merge = Merge(group, options.buffer)
        self.follower = Follower(env, self.merge, groups, options.strangers, save, owner.decided)
        self.solicitor = Solicitor(env, self.merge, self.follower, aggregator, options)
        self.holds = False
        """Whether nothing is delivered for now; what comes is buffered."""
        self._voids: dict[int, set[int]] = {}
        """By sequencer: numbers that are given up, and not passed yet."""
        self._doubts: set[tuple[int, int]] = set()
        """Those of them that must not be passed yet."""

    # Where it is

    def begin(self, initial: Mapping[int, NodeId]) -> None:
        """Begin with the first configuration."""
        for sequencer, node in initial.items():
            self.merge.add(started(sequencer, node, 0, (0,) * self._groups, self.group))
        self.follower.newest = max(initial, default=0)

    def fetch(self) -> None:
        """Ask for the steps that were decided meanwhile."""
        self._env.multicast(self._service, Fetch(self.follower.steps))

    @property
    def place(self) -> LogPlace:
        """The place that delivery has reached."""
        lanes = self.merge.lanes
        known = sorted(sequencer for sequencer, lane in lanes.items() if lane.state not in NOT_BEGUN)
        return LogPlace(*self.merge.last, tuple((sequencer, lanes[sequencer].settled) for sequencer in known))

    def find(self, sequencer: int, number: int) -> Groupcast | None:
        """The packet with this number, if it is here and not delivered yet."""
        lane = self.merge.lanes.get(sequencer)
        return None if lane is None else lane.find(number)

    def reset(
        self, place: LogPlace, packets: Iterable[Groupcast] = (), voids: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Go to a place, back or ahead. What is beyond it comes again, with these packets and without the
        numbers (sequencer, number) that are given up.

        A lane that the place does not name goes back to its start.
        """
        merge = self.merge
        self.follower.since = max(self.follower.since, merge.last[0])
        begun = [lane for lane in merge.lanes.values() if lane.state not in NOT_BEGUN]
        again = [*packets, *(packet for lane in begun for packet in lane.packets())]
        numbers = dict(place.numbers)
        for lane in begun:
            lane.move(numbers.get(lane.sequencer, lane.begun), place.clock, self.group)
        merge.restart(place.rank)
        self._voids = {}
        self._doubts.clear()
        for sequencer, number in voids:
            self.settle(sequencer, number)
        for packet in again:
            lane_or_none = merge.lanes.get(packet.sequencer)
            if lane_or_none is not None:
                self._take(lane_or_none, packet, self.limits.own_number(packet, self.group), len(again))

    def doubt(self, sequencer: int, number: int) -> None:
        """A number is about to be given up: its packet is not taken any more, but delivery waits."""
        lane = self.merge.lanes.get(sequencer)
        if lane is None or lane.state in NOT_BEGUN or number <= lane.settled:
            return
        self._voids.setdefault(sequencer, set()).add(number)
        self._doubts.add((sequencer, number))
        if number > lane.front:
            self.merge.drop_early(lane, number)
        else:
            self._requeue()

    def believe(self, sequencer: int, number: int) -> None:
        """A number that was in doubt counts after all: its packet may be offered."""
        self._doubts.discard((sequencer, number))
        numbers = self._voids.get(sequencer, set())
        numbers.discard(number)
        if not numbers:
            self._voids.pop(sequencer, None)

    def _requeue(self) -> None:
        """Take a packet out of a queue that must not be there any more; others are behind it."""
        doubts = sorted(self._doubts)
        self.reset(self.place, (), [(one, at) for one, numbers in self._voids.items() for at in numbers])
        self._doubts.update(doubts)

    def settle(self, sequencer: int, number: int) -> None:
        """Give a number up: delivery passes it, and its packet is not taken any more."""
        lane = self.merge.lanes.get(sequencer)
        self._doubts.discard((sequencer, number))
        if lane is None or lane.state in NOT_BEGUN or number <= lane.settled:
            return
        self._voids.setdefault(sequencer, set()).add(number)
        if lane.state is ACTIVE:
            lane.note(number, 0)
        if number > lane.front:
            self.merge.drop_early(lane, number)
        else:  # it waits in the queue, with others behind it
            self._requeue()

    def exists(self, sequencer: int, number: int) -> None:
        """Note that a number exists: somebody lacks it."""
        lane = self.merge.lanes.get(sequencer)
        if lane is not None and lane.state is ACTIVE and number - lane.high <= AHEAD_MAX:
            lane.note(number, 0)

    def discard(self, sequencer: int) -> None:
        """Forget a sequencer that was removed: nobody goes back to where its numbers count."""
        self.merge.discard(sequencer)
        self._voids.pop(sequencer, None)

    # What comes

    def on_groupcast(self, packet: Groupcast) -> bool:
        """Take a stamped message; True if it is new."""
        groups = packet.groups
        if groups == self._own and len(packet.numbers) == 1:
            number = packet.numbers[0]
        else:
            number = self.limits.own_number(packet, self.group)
        lane = self.merge.lanes.get(packet.sequencer)
        if lane is None or (lane.state is not ACTIVE and lane.state in NOT_BEGUN):
            self.follower.on_stranger(packet)
            return False
        now = self._env.now
        if number - lane.high > AHEAD_MAX or packet.clock - now > CLOCK_AHEAD_MAX:
            raise RemoteError(
                f"number {number} of sequencer {lane.sequencer} at {packet.clock} is too far ahead"
                f" of {lane.high} at {now}"
            )
        if self._adaptive:
            lane.measure(now)
        else:
            lane.hear()
        if number <= lane.high:
            lane.come_late(number, now)
        if self._voids and number in self._voids.get(lane.sequencer, ()):
            return False
        new = self.merge.offer(lane, packet, number)  # as in `_take`: one call less for each packet
        if lane.front != lane.high and lane.gap is None:
            lane.watch_gap(now)
        return new

    def offer(self, packet: Groupcast, room: int = 0) -> bool:
        """Take a packet that another node kept, if it is one that is missing; there is `room` beyond the
        limit, because a full buffer may hold just what waits for this packet."""
        number = self.limits.own_number(packet, self.group)
        lane = self.merge.lanes.get(packet.sequencer)
        if lane is None or lane.state in NOT_BEGUN or not lane.front < number <= lane.high:
            return False
        return self._take(lane, packet, number, room if number == lane.front + 1 else 0)

    def _take(self, lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
        if self._voids and number in self._voids.get(lane.sequencer, ()):
            return False
        new = self.merge.offer(lane, packet, number, room)
        if lane.front != lane.high and lane.gap is None:
            lane.watch_gap(self._env.now)
        return new

    def on_flushes(self, message: Flush | Flushes) -> None:
        """Take a flush of a sequencer, or those that an aggregator sends."""
        if type(message) is Flush:
            self._check_flush(message)
            self._on_flush(message)
        elif type(message) is Flushes:
            for flush in message.flushes:  # all of them, before any changes something
                self._check_flush(flush)
            self.solicitor.on_flushes(message)
            for flush in message.flushes:
                self._on_flush(flush)

    def _check_flush(self, flush: Flush) -> None:
        """Refuse a flush that no sequencer sends."""
        self.limits.check_flush(flush, self._env.now)
        lane = self.merge.lanes.get(flush.sequencer)
        if lane is not None and lane.state not in NOT_BEGUN and flush.numbers:
            self.limits.check_ahead(flush, self.group, lane.high)

    def _on_flush(self, flush: Flush) -> None:
        lane = self.merge.lanes.get(flush.sequencer)
        if not flush.numbers:
            return
        if lane is None or lane.state in NOT_BEGUN:
            self.follower.on_flush(flush)
        else:
            if lane.asked is not None:
                self.solicitor.on_flush(lane, flush)
            self.merge.flush(flush)
            if lane.front != lane.high and lane.gap is None:
                lane.watch_gap(self._env.now)

    def on_configuration(self, source: NodeId, message: Announce | Steps) -> bool:
        """Take news of the configuration service, which are checked; True if something was decided."""
        if isinstance(message, Announce):
            return self.follower.on_announce(source, message)
        return self.follower.on_steps(message)

    def on_timer(self, name: str) -> None:
        """Ask for flushes."""
        if name == DELAY:
            self.solicitor.on_delay_over()
        elif name == RETRY:
            self.solicitor.on_late_answer()

    # What goes

    def advance(self) -> None:
        """Hand over messages and steps whose turn has come, tell of gaps, and ask for flushes."""
        if self.holds:
            return
        merge, owner, boundaries = self.merge, self._owner, self.follower.boundaries
        take, first, ordered = merge.take, merge.first, owner.ordered
        runs = 0
        while True:
            boundary = boundaries[0][0] if boundaries else END
            while (packet := take(boundary)) is not None:
                ordered(packet)
            if self._voids and self._pass_voids():
                continue
            target = first() if boundary is END else min(first(), boundary)
            if target is END:
                self.solicitor.rest()
                break
            if target == boundary and target <= merge.floor():
                owner.changed(boundaries.popleft()[1])
                continue
            lane = merge.gap_before(target)
            if lane is None or not owner.needed(lane):
                self.solicitor.seek(target)
                break
            runs += 1
            if runs == RUNS_MAX:
                self._env.set_timer(PATIENCE, 1)
                break
        if self._eager:
            self._tell_missing()

    def _pass_voids(self) -> bool:
        """Pass numbers that were given up; True if there were some."""
        passed = False
        for sequencer, numbers in list(self._voids.items()):
            lane = self.merge.lanes[sequencer]
            while not lane.queue and lane.front + 1 in numbers and lane.has_gap:
                if (sequencer, lane.front + 1) in self._doubts:
                    break
                numbers.discard(lane.front + 1)
                self.merge.skip(lane, lane.front + 1)
                passed = True
            if not numbers:
                del self._voids[sequencer]
        return passed

    def _tell_missing(self) -> None:
        for lane in list(self.merge.lanes.values()):
            if lane.front < lane.high and lane.state not in NOT_BEGUN:
                self._owner.missing(lane)

    def missing(self, lane: Lane) -> list[int]:
        """The first numbers of a lane that are missing, and not given up."""
        voids = self._voids.get(lane.sequencer, ())
        numbers = (
            number
            for number in range(lane.front + 1, lane.high + 1)
            if number not in lane.early and number not in voids
        )
        return list(islice(numbers, MISSING_MAX))

    # Sequencers that say nothing

    def strike(self) -> list[int]:
        """End a tick; returns the sequencers that have been silent for too long."""
        silent = [
            lane.sequencer
            for lane in list(self.merge.lanes.values())
            if lane.strike() and lane.state in (ACTIVE, FROZEN, BLIND)
        ]
        joining = self.follower.joining_silently()
        if joining is not None and self._env.now - self.follower.planned.since >= self._options.suspect_ns:
            silent.append(joining)
        return silent

    def suspect(self, silent: list[int]) -> None:
        """Tell the service of them, if there are any."""
        if silent:
            self._env.multicast(self._service, Suspect(tuple(silent)))
