"""Hydra's order for replicas (section 6): what a replica of a group needs of the network.

A replica is a receiver whose gaps are decided with its peers. Its tag is the number of steps that are applied
to its lanes, and not the configuration of a delivery: below the boundary of a step, two replicas may have
different messages of a removed sequencer, if another group has seen more of it (section 4.4).

Lanes of removed sequencers are kept until the log is certain beyond the boundary, because a replica may go
back across it, and while the log has entries of them, because others may fetch these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.components.network_ordered import LogEntry, LogPlace, NetworkOrdering, OrderingOwner
from ordercast.components.network_ordered.place import Slot
from ordercast.core import Env, GroupId, Message, NodeId, RemoteError, Wait, named
from ordercast.protocols.hydra import snapshot
from ordercast.protocols.hydra.explain import explain_waits
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE, ENDING, FROZEN, NOT_BEGUN
from ordercast.protocols.hydra.messages import (
    Announce,
    Flush,
    Flushes,
    Groupcast,
    Rebirth,
    Revived,
    Step,
    Steps,
)
from ordercast.protocols.hydra.new_lane import started
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.pulse import STRIKES
from ordercast.protocols.hydra.reception import Reception
from ordercast.protocols.hydra.replica_setting import (
    KeptOrdering,
    LaneTold,
    Setting,
    decode_kept,
    decode_setting,
    decode_steps,
    encode,
)

TICK, REBIRTH = "tick", "rebirth"
_HANDLED = frozenset({Groupcast, Flush, Flushes, Announce, Steps, Revived})
HISTORY = 4096
"""So many steps a replica keeps for others."""


class HydraOrdering(NetworkOrdering):
    """The reception of one replica."""

    def __init__(
        self,
        env: Env,
        owner: OrderingOwner,
        group: GroupId,
        groups: int,
        initial: Mapping[int, NodeId],
        service: tuple[NodeId, ...],
        aggregator: NodeId | None,
        options: HydraOptions,
    ) -> None:
        self._env = env
        self._owner = owner
        self._group = group
        self._groups = groups
        self._initial = initial
        self._service = service
        self._aggregator = aggregator
        self._options = options
        self._life = 0
        self._oldest = 0
        """A setting with fewer steps is too old for this life."""
        self._takes_part = True
        self._revived = True
        self._ended: dict[int, int] = {}
        """By removed sequencer: the clock of its boundary."""
        self._history: list[Step] = []
        """The last steps."""
        self.reception = self._new_reception()

    def _new_reception(self) -> Reception:
        return Reception(
            self._env, self, self._group, self._groups, self._service, self._aggregator, self._options,
            self._owner.save_ordering, eager=True,
        )  # fmt: skip

    # Its life

    @property
    def tag(self) -> int:
        """The number of steps applied."""
        return self.reception.follower.steps

    def begin(self) -> None:
        """Begin with the first configuration."""
        self.reception.begin(self._initial)
        self._owner.save_ordering()  # before anything is sent: a later life must find all or nothing
        self.reception.fetch()
        self._env.set_timer(TICK, self._tick_ns())

    def lose_memory(self) -> None:
        """Ask the service to take note: no report of an earlier life counts after that."""
        self._life = self._env.now
        self._takes_part = self._revived = False
        self._ask_for_rebirth()

    def _ask_for_rebirth(self) -> None:
        if not self._revived:
            self._env.multicast(self._service, Rebirth(self._life))
            self._env.set_timer(REBIRTH, 4 * self._options.retry_ns)

    def _on_revived(self, source: NodeId, message: Revived) -> None:
        self.reception.limits.check_revived(source, message)
        if message.life == self._life and not self._revived:
            self._revived = True
            self._oldest = message.steps
            self._owner.revived()

    def describe(self) -> bytes:
        """The lanes and the steps."""
        follower = self.reception.follower
        lanes = [
            LaneTold(lane.sequencer, lane.node, lane.begun, lane.final, self._ended.get(lane.sequencer, 0))
            for lane in self._begun_lanes()
        ]
        return encode(Setting(follower.steps, follower.newest, follower.latest, lanes))

    def begin_at(self, setting: bytes) -> bool:
        """Begin as another replica describes, with lanes at their start."""
        told = decode_setting(setting)
        self._check_setting(told)
        if not self._revived or told.steps < self._oldest:
            return False
        self.reception = self._new_reception()
        self.reception.holds = self.holds
        follower, merge = self.reception.follower, self.reception.merge
        follower.steps, follower.newest, follower.latest = told.steps, told.newest, told.latest
        self._history, self._ended = [], {}
        for one in told.lanes:
            numbers = [0] * self._groups
            numbers[self._group] = one.begun
            lane = started(one.sequencer, one.node, 0, numbers, self._group)
            merge.add(lane)
            if one.final is not None:
                self._ended[one.sequencer] = one.ended
                merge.finish(lane, one.final)
        return True

    def _check_setting(self, told: Setting) -> None:
        """Refuse lanes that there cannot be."""
        limits = self.reception.limits
        for one in told.lanes:
            numbers = (one.begun,) if one.final is None else (one.begun, *one.final)
            limits.check_lane(one.sequencer, one.node, numbers)
            if one.final is not None and len(one.final) != self._groups:
                raise RemoteError(f"a lane ends at {len(one.final)} numbers for {self._groups} groups")
        if len({one.sequencer for one in told.lanes}) != len(told.lanes):
            raise RemoteError("a replica describes the same lane twice")

    def come_back(self) -> None:
        """Follow the service from here on."""
        self._takes_part = True
        self.reception.fetch()
        self._env.set_timer(TICK, self._tick_ns())

    def state(self) -> bytes:
        """Lanes, steps and reports."""
        taken = snapshot.take(self.reception.merge, self.reception.follower, 0)
        return encode(KeptOrdering(taken, self._ended, self._history))

    def restore(self, state: bytes) -> None:
        """Go on with them."""
        kept = decode_kept(state)
        self._ended, self._history = kept.ended, kept.history
        reception = self.reception
        snapshot.restore(kept.snapshot, reception.merge, reception.follower, self._env.now)
        reception.fetch()
        self._env.set_timer(TICK, self._tick_ns())

    # What comes

    def handles(self, message: Message) -> bool:
        """Whether it is a message of Hydra."""
        return type(message) in _HANDLED

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take a packet, a flush, or news of the configuration."""
        reception = self.reception
        if isinstance(message, Groupcast | Flush):
            reception.merge.check_stamper(source, message.sequencer)
        if type(message) is Groupcast:
            reception.on_groupcast(message)
        elif type(message) is Flush or (type(message) is Flushes and source == self._aggregator):
            reception.on_flushes(message)
        elif isinstance(message, Announce):
            reception.limits.check_announce(source, message)
            if not self._revived:
                self._env.send(source, Rebirth(self._life))
            if self._takes_part:
                reception.on_configuration(source, message)
        elif isinstance(message, Steps):
            reception.limits.check_steps(source, message)
            if self._takes_part:
                reception.on_configuration(source, message)
        elif isinstance(message, Revived):
            self._on_revived(source, message)
        else:
            raise RemoteError(f"node {source} sent {named(message)}, but is no aggregator")

    def on_timer(self, name: str) -> bool:
        """Suspect silent sequencers, or ask for flushes."""
        if name == TICK:
            self._env.set_timer(TICK, self._tick_ns())
            self.suspect(self.reception.strike())
        elif name == REBIRTH:
            self._ask_for_rebirth()
        else:
            self.reception.on_timer(name)
        return True

    def suspect(self, silent: list[int]) -> None:
        """Tell of sequencers that have been silent for too long."""
        self.reception.suspect(silent)

    def _tick_ns(self) -> int:
        return max(1, self._options.suspect_ns // STRIKES)

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Know sequencers that came later."""
        self.reception.limits.know(roles)

    def advance(self) -> None:
        """Hand over what is next."""
        self.reception.holds = self.holds
        self.reception.advance()

    # What the replica decides

    def find(self, slot: Slot) -> LogEntry | None:
        """An entry that waits."""
        packet = self.reception.find(*slot)
        return None if packet is None else self._entry(packet)

    def offer(self, entry: LogEntry) -> None:
        """Take an entry that was missing."""
        self.reception.offer(self._packet(entry), 1)

    def check(self, entry: LogEntry) -> None:
        """Its groups and numbers must fit."""
        if self.reception.limits.own_number(self._packet(entry), self._group) != entry.number:
            raise RemoteError(f"an entry in slot {entry.slot} has numbers {entry.numbers}")

    def doubt(self, slot: Slot) -> None:
        """Take its packet no more."""
        self.reception.doubt(*slot)

    def settle(self, slot: Slot) -> None:
        """Pass it."""
        self.reception.settle(*slot)

    def exists(self, slot: Slot) -> bool:
        """Note that it exists."""
        lane = self.reception.merge.lanes.get(slot[0])
        if lane is None or lane.state not in (ACTIVE, ENDING):
            return False
        self.reception.exists(*slot)
        return lane.front < slot[1] <= lane.high and slot[1] not in lane.early

    def reset(self, place: LogPlace, entries: Iterable[LogEntry], voids: Iterable[Slot]) -> None:
        """Go to a place."""
        self.reception.reset(place, [self._packet(entry) for entry in entries], voids)

    def may_take(self, place: LogPlace) -> bool:
        """Not beyond a report on a step that is not decided yet."""
        planned = self.reception.follower.planned
        plan, report = planned.plan, planned.report
        if plan is None or report is None:
            return True
        if plan.change == "removed":
            return dict(place.numbers).get(plan.sequencer, 0) <= report.numbers[self._group]
        return place.rank <= (report.clock, plan.sequencer)

    def may_have(self, entries: Iterable[LogEntry]) -> bool:
        """No number beyond a report, in no group."""
        planned = self.reception.follower.planned
        plan, report = planned.plan, planned.report
        if plan is None or report is None or plan.change != "removed":
            return True
        return all(entry.is_within(report.numbers) for entry in entries if entry.sequencer == plan.sequencer)

    def begun(self, sequencer: int) -> int | None:
        """The start of a lane."""
        lane = self._lane(sequencer)
        return None if lane is None else lane.begun

    def highest(self, sequencer: int) -> int | None:
        """The last number of a lane, as far as it is known."""
        lane = self._lane(sequencer)
        return None if lane is None else lane.high

    def _lane(self, sequencer: int) -> Lane | None:
        """A lane that has begun."""
        lane = self.reception.merge.lanes.get(sequencer)
        return None if lane is None or lane.state in NOT_BEGUN else lane

    def forget(self, synced: LogPlace, kept: Iterable[LogEntry]) -> None:
        """Discard lanes of removed sequencers whose boundary is certain, and of which no entry is kept.

        A replica without memory needs to know where a lane began to fetch its entries.
        """
        if not self._ended:
            return
        needed = {entry.sequencer for entry in kept}
        for sequencer, clock in list(self._ended.items()):
            lane = self.reception.merge.lanes.get(sequencer)
            is_past = synced.rank >= (clock, sequencer) and sequencer not in needed
            if lane is None or (is_past and not lane.has_gap and not lane.queue):
                self.reception.discard(sequencer)
                del self._ended[sequencer]

    def steps_since(self, tag: int) -> bytes | None:
        """The steps after a tag, if they are kept."""
        behind = self.tag - tag
        return encode(self._history[-behind:]) if 0 < behind <= len(self._history) else None

    def take_steps(self, start: int, steps: bytes) -> None:
        """Apply steps of which another replica tells: it has them of the service."""
        told = decode_steps(steps)
        if self._takes_part:
            message = Steps(start, told)
            self.reception.limits.check_steps(self._service[0], message)
            self.reception.follower.on_steps(message)

    def waits(self) -> list[Wait]:
        """What waits for which sequencer."""
        reception = self.reception
        waits = list(explain_waits(reception.merge, reception.solicitor.since))
        return waits + reception.follower.waits()

    # What the reception tells

    def ordered(self, packet: Groupcast) -> None:
        """The next packet."""
        self._owner.ordered(self._entry(packet))

    def needed(self, lane: Lane) -> bool:
        """The replica knows already."""
        return False

    def missing(self, lane: Lane) -> None:
        """Tell the replica, unless nothing of the lane counts before its removal is decided."""
        if lane.state is not FROZEN:
            self._owner.missing([(lane.sequencer, number) for number in self.reception.missing(lane)])

    def changed(self, step: Step) -> None:
        """Boundaries are not told: the tag has changed when the step was decided."""

    def decided(self, step: Step) -> None:
        """Tell the replica what does not count any more."""
        self.note_step(step)
        removed = step.sequencer
        last = step.numbers[self._group] if step.change == "removed" else 0
        self._owner.reconfigured(
            lambda entry: (
                step.change == "removed"
                and entry.sequencer == removed
                and (entry.number > last or not entry.is_within(step.numbers))
            ),
            (step.clock, step.sequencer) if step.change == "added" else None,
        )

    def note_step(self, step: Step) -> None:
        """Keep a step, before anything is sent that depends on it."""
        self._history.append(step)
        del self._history[:-HISTORY]
        if step.change == "removed":
            self._ended[step.sequencer] = self.boundary(step)
        self._owner.save_ordering()

    def boundary(self, step: Step) -> int:
        """The clock after which nothing of a removed sequencer comes."""
        return step.clock

    def _begun_lanes(self) -> list[Lane]:
        lanes = self.reception.merge.lanes
        return [lanes[one] for one in sorted(lanes) if lanes[one].state not in NOT_BEGUN]

    def _entry(self, packet: Groupcast) -> LogEntry:
        number = self.reception.limits.own_number(packet, self._group)
        stamps = (packet.groups, packet.numbers) if len(packet.groups) > 1 else ((), ())
        return LogEntry(packet.clock, packet.sequencer, number, packet.sender, packet.payload, *stamps)

    def _packet(self, entry: LogEntry) -> Groupcast:
        groups, numbers = entry.groups or (self._group,), entry.numbers or (entry.number,)
        return Groupcast(entry.sequencer, entry.clock, groups, numbers, entry.client, entry.payload)
