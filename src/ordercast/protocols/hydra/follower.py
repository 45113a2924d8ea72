"""A receiver's part in reconfiguration (section 4.4).

The configuration service plans one step at a time. A receiver answers a planned step with a report, and takes
what is decided in order:

- *Removal*: it reports the highest clock and numbers that it has seen of the sequencer, and from then on
  accepts nothing of it. Once decided, the lane gets its last numbers and the final flush at infinity.
- *Addition*: it asks the new sequencer for a flush above everything that it has delivered, reports that
  flush, and delivers nothing above it. Once decided, the lane begins at the highest flush reported, t_k.

A step also has a place in the order of messages, its *boundary*: t_k of an addition, the highest clock
reported of a removed sequencer. What lies before belongs to the old configuration, what lies after to the new
one, at every receiver alike. Boundaries never go back: that of a step is at least that of the step before.
"""

from collections import deque
from collections.abc import Callable

from ordercast.core import MILLISECOND, Env, Nanos, NodeId, Wait
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import BLIND
from ordercast.protocols.hydra.merge import Merge, Position
from ordercast.protocols.hydra.messages import (
    Announce,
    BlindReport,
    Fetch,
    Flush,
    Groupcast,
    Plans,
    Report,
    Revived,
    Solicit,
    Step,
    Steps,
)
from ordercast.protocols.hydra.new_lane import blind, started
from ordercast.protocols.hydra.planned import PlannedStep, Stage

FETCH_NS = 1 * MILLISECOND
"""The same steps are not requested again sooner: the answer holds an announcement, which may be duplicated,
and each copy would cause another request."""


class Follower:
    """Applies the decided steps, and takes part in the planned one."""

    def __init__(
        self,
        env: Env,
        merge: Merge,
        groups: int,
        strangers: int,
        save: Callable[[], None],
        decided: Callable[[Step], None],
    ) -> None:
        self._env = env
        self._merge = merge
        self._groups = groups
        self._save = save
        self._decided = decided
        self.steps = 0
        """Steps known to be decided, all of them applied to the lanes."""
        self.newest = 0
        """The highest number that any sequencer has had."""
        self.boundaries: deque[tuple[Position, Step]] = deque()
        """The boundaries of known steps that this receiver has not passed yet."""
        self.latest: Position = (0, 0)
        """The last boundary, passed or not."""
        self.since = 0
        """If earlier lives of this receiver are lost, they have delivered nothing above this clock."""
        self.planned = PlannedStep()
        self.stranded_at: Nanos | None = None
        """When this receiver found that it missed more steps than the service keeps."""
        self._leader: NodeId | None = None
        self._fetched: tuple[int, Nanos] = (-1, 0)
        """The last request for steps: the first step, and the time."""
        self._strangers: deque[Groupcast] = deque(maxlen=strangers)

    def begin_blind(self, beginning: Revived) -> None:
        """Begin in a configuration without knowing what earlier lives had of its sequencers."""
        self.steps, self.newest = beginning.steps, beginning.newest
        self.latest = (beginning.clock, beginning.sequencer)
        for sequencer, node in beginning.active:
            self._merge.add(blind(sequencer, node, self._groups))

    @property
    def blind(self) -> list[Lane]:
        """The lanes that wait for a fresh flush."""
        return [lane for lane in self._merge.lanes.values() if lane.state is BLIND]

    def refresh(self, flush: Flush) -> None:
        """Begin a blind lane at a fresh flush, above all that earlier lives can have had of the sequencer."""
        lane = self._merge.lanes[flush.sequencer]
        lane.start(flush.clock, flush.numbers, self._merge.group)
        self.since = max(self.since, flush.clock)
        plan = self.planned.plan
        if plan is not None and plan.change == "removed" and plan.sequencer == flush.sequencer:
            self.take_part(plan)
        self._replay(lane)

    def has_installed(self, sequencer: int) -> bool:
        """Whether the configuration with this sequencer has begun here."""
        return all(step.change != "added" or step.sequencer != sequencer for _, step in self.boundaries)

    def on_announce(self, source: NodeId, message: Announce) -> bool:
        """Take an announcement of the service; True if something was decided."""
        before = self.steps
        if message.latest is not None and message.steps == self.steps + 1:
            self._apply(message.latest)
        if message.steps > self.steps:
            self._fetch(source)
        elif message.steps == self.steps and message.planned is not None:
            self._leader = source
            self.take_part(message.planned)
        return self.steps > before

    def on_steps(self, message: Steps) -> bool:
        """Take decided steps that this receiver had missed; True if some were new."""
        before = self.steps
        if message.start <= self.steps:
            self.stranded_at = None
        elif self.stranded_at is None:
            self.stranded_at = self._env.now
        for index, step in enumerate(message.steps, message.start):
            if index == self.steps:
                self._apply(step)
        return self.steps > before

    def on_stranger(self, packet: Groupcast) -> None:
        """Keep a packet of a sequencer until that sequencer is added, or its lane is not blind any more."""
        if packet.sequencer > self.newest or packet.sequencer in self._merge.lanes:
            self._strangers.append(packet)

    def on_flush(self, flush: Flush) -> None:
        """Take a flush of a sequencer that is being added, and report the first that is high enough."""
        plan, merge = self.planned.plan, self._merge
        if plan is None or plan.sequencer != flush.sequencer or self.planned.stage is not Stage.ASKED:
            return
        if plan.change != "added" or self.blind:
            return
        lane = merge.lanes.get(flush.sequencer)
        if lane is None:
            # From here on nothing is delivered, so that a flush above it must come.
            lane = Lane(flush.sequencer, plan.node, self._groups, merge.last[0])
            merge.add(lane)
        if flush.clock > self._passed():
            lane.hold(flush.clock)
            self._send_report(Report(self.steps, flush.sequencer, flush.clock, flush.numbers))
        else:
            self._solicit(plan)

    def waits(self) -> list[Wait]:
        """What reconfiguration waits for."""
        waits = []
        plan = self.planned.plan
        if plan is not None:
            what = f"step {self.steps + 1} (sequencer {plan.sequencer} {plan.change})"
            asked = self.planned.stage is Stage.ASKED
            lacks = "a flush from this sequencer" if asked else "reports from a quorum of every group"
            leader = () if self._leader is None or asked else (self._leader,)
            waits.append(Wait(what, lacks, self.planned.since, on=leader))
        if self.stranded_at is not None:
            waits.append(Wait("all steps", "steps that the service has forgotten", self.stranded_at))
        return waits

    def joining_silently(self) -> int | None:
        """The sequencer that is being added and has sent nothing yet.

        A sequencer whose flushes are still too low does not count: its clock is behind and will catch up.
        """
        plan = self.planned.plan
        if plan is None or plan.change != "added" or plan.sequencer in self._merge.lanes or self.blind:
            return None
        return plan.sequencer

    def _fetch(self, leader: NodeId) -> None:
        start, asked_at = self._fetched
        if start != self.steps or self._env.now - asked_at >= FETCH_NS:
            self._fetched = (self.steps, self._env.now)
            self._env.send(leader, Fetch(self.steps))

    def take_part(self, plan: Plans) -> None:
        """Report on a step that is planned, or do what a report needs."""
        self.planned.propose(plan, self._env.now)
        if self.planned.report is not None:
            self._send_report(self.planned.report)
        elif plan.change == "added":
            if not self.blind:  # it cannot say yet above which clock it has delivered nothing
                self._solicit(plan)
        else:
            lane = self._merge.lanes.get(plan.sequencer)
            if lane is not None:
                self._report_removal(lane)

    def _report_removal(self, lane: Lane) -> None:
        """Report what was seen of a sequencer, and accept nothing more of it.

        If that is lost and the sequencer tells nothing either, say so. Such a report binds nobody, and
        another one may follow.
        """
        if lane.state is not BLIND:
            lane.freeze()
            numbers = lane.report(self._merge.group)
            self._send_report(Report(self.steps, lane.sequencer, lane.clock, numbers))
        elif lane.silent and self._leader is not None:
            self._env.send(self._leader, BlindReport(self.steps, lane.sequencer))

    def _solicit(self, plan: Plans) -> None:
        self._env.send(plan.node, Solicit(plan.sequencer, self._passed()))

    def _passed(self) -> int:
        """A new sequencer begins above everything delivered, and above the boundary of the last step."""
        return max(self._merge.last[0], self.latest[0], self.since)

    def _send_report(self, report: Report) -> None:
        if self.planned.stage is Stage.ASKED:
            self.planned.answer(report)
            self._save()
        if self._leader is not None:
            self._env.send(self._leader, report)

    def _apply(self, step: Step) -> None:
        if step.change == "reborn":
            self.steps += 1
            self.planned.renumber(self.steps)
            self._decided(step)
            self._save()
            return
        self._change_lanes(step)
        self.steps += 1
        self.planned.decide()
        self.newest = max(self.newest, step.sequencer)
        if step.change != "void":
            self._bound(step)
        if step.change == "added":
            self._replay(self._merge.lanes[step.sequencer])
        self._decided(step)
        self._save()

    def _change_lanes(self, step: Step) -> None:
        """Do this first: if a lane refuses a step that does not fit, nothing has changed."""
        merge = self._merge
        lane = merge.lanes.get(step.sequencer)
        if step.change == "void" or (lane is not None and lane.state is BLIND):
            merge.discard(step.sequencer)
        elif step.change == "added":
            merge.add(started(step.sequencer, step.node, step.clock, step.numbers, merge.group))
        elif lane is not None:
            merge.finish(lane, step.numbers)

    def _bound(self, step: Step) -> None:
        self.latest = max(self.latest, (step.clock, step.sequencer))
        self.boundaries.append((self.latest, step))

    def _replay(self, lane: Lane) -> None:
        for packet in self._strangers:
            if packet.sequencer == lane.sequencer:
                number = packet.numbers[packet.groups.index(self._merge.group)]
                self._merge.offer(lane, packet, number)
        waiting = {one.sequencer for one in self.blind}
        kept = [
            packet
            for packet in self._strangers
            if packet.sequencer > self.newest or packet.sequencer in waiting
        ]
        self._strangers = deque(kept, self._strangers.maxlen)
