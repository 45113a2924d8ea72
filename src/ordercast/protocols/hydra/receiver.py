"""A receiver (Algorithm 2): delivers in order of (clock, sequencer), and notifies of missing messages.

The rules of section 4.3.2 and where they are: (i) order and (iii) nothing above c_min, in `Merge`; (ii) each
number settled once, and (iv) gaps notified, in `Lane`. All of that but the gaps is its `Reception`. Drop
notifications are held back until a message needs them, or for `hold_ns` if none does, and then until it is
clear that nobody has the packets (`Repairer`, which the paper does not have).
"""

from collections.abc import Callable, Mapping

from ordercast.core import (
    Delivered,
    Delivery,
    Dropped,
    Env,
    Explanation,
    GroupId,
    Message,
    Nanos,
    NodeId,
    Stamp,
    View,
)
from ordercast.protocols.hydra import snapshot
from ordercast.protocols.hydra.explain import explain_behind, explain_waits
from ordercast.protocols.hydra.kept import Kept
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.limits import KnowsSequencers
from ordercast.protocols.hydra.messages import (
    Announce,
    Ask,
    Flush,
    Flushes,
    Found,
    Gone,
    Groupcast,
    Inquiry,
    Refreshed,
    Revived,
    Step,
    Steps,
)
from ordercast.protocols.hydra.new_life import REBIRTH, WHOLE, NewLife
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.origins import Origins
from ordercast.protocols.hydra.pulse import STRIKES
from ordercast.protocols.hydra.receipts import RECEIPTS, Receipts
from ordercast.protocols.hydra.reception import PATIENCE, RUNS_MAX, Reception
from ordercast.protocols.hydra.repair import NUMBERS_MAX, REPAIR, Repairer, answer

STATE, BEGUN = "receiver", "begun"
TICK = "tick"


class Receiver(KnowsSequencers):
    """One receiver of one group."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        initial: Mapping[int, NodeId],
        service: tuple[NodeId, ...],
        aggregator: NodeId | None,
        options: HydraOptions,
    ) -> None:
        super().__init__(env)
        self.group = group
        self.config = 0
        """The configuration that deliveries belong to."""
        self._members = members[group]
        self._groups = len(members)
        self._initial = initial
        self._options = options
        self.reception = Reception(env, self, group, len(members), service, aggregator, options, self._save)
        self._limits = self.reception.limits
        self._merge = self.reception.merge
        self._follower = self.reception.follower
        self._outbox: list[Delivery] | None = [] if options.durable else None
        self._deliver: Callable[[Delivery], None] = env.deliver
        if self._outbox is not None:
            self._deliver = self._outbox.append
        self._new_life = NewLife(env, self._merge, self._follower, service, options.retry_ns)
        everyone = tuple(sorted({node for nodes in members.values() for node in nodes}))
        self._repairer = Repairer(env, group, self._members, everyone, options)
        self._repairs = options.repair
        self._kept = Kept(options.keep_bytes, options.keep_ns)
        self._origins = Origins(options.window) if options.resend else None
        self._receipts = Receipts(env, self._merge, options.ack_ns) if options.resend else None
        self._began: dict[int, int] = {}
        """The clock of each lane at the start of this life."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the first configuration, where an earlier life stood, or as a new member."""
        if not self._options.durable and BEGUN not in saved and (self._repairs or self._origins is not None):
            self.env.save(BEGUN, b"")
        self.env.set_timer(TICK, self._tick_ns())
        if self._options.durable and STATE in saved:
            self.config = snapshot.restore(saved[STATE], self._merge, self._follower, self.env.now)
            self._begin_late()
        elif self.env.forgot or saved:
            self._new_life.begin()
            return
        else:
            self.reception.begin(self._initial)
        self._began = {sequencer: lane.clock for sequencer, lane in self._merge.lanes.items()}
        self.reception.fetch()

    def _begin_late(self) -> None:
        """An earlier life has delivered messages of the sequencers; this one does not know which."""
        if self._origins is not None:
            self._origins.begin_late(list(self._merge.lanes))

    def on_message(self, source: NodeId, message: Message) -> None:
        """Handle a stamped message, a flush, or news of the configuration."""
        reception = self.reception
        if type(message) is Groupcast:
            if reception.on_groupcast(message):
                if self._repairs:
                    self._kept.add(message)
                if self._receipts is not None:
                    self._receipts.note(len(message.payload))
        elif type(message) is Flush or type(message) is Flushes:
            reception.on_flushes(message)
        elif type(message) is Found:
            if reception.offer(message.packet, NUMBERS_MAX):
                self._note(message.packet)
        elif type(message) is Gone:
            self._on_gone(source, message)
        elif type(message) is Ask:
            answer(self.env, self._kept, source, message, self._groups)
            return
        elif type(message) is Inquiry:
            self._on_inquiry(source, message)
            return
        elif not self._on_configuration(source, message):
            return
        reception.advance()
        if self._outbox:
            self._send_outbox()

    def _on_configuration(self, source: NodeId, message: Message) -> bool:
        """Take news of the configuration; True if something may have changed."""
        if isinstance(message, Announce):
            self._limits.check_announce(source, message)
            self._new_life.on_leader(source)
            changed = self._new_life.is_placed and self.reception.on_configuration(source, message)
        elif isinstance(message, Steps):
            self._limits.check_steps(source, message)
            changed = self._new_life.is_placed and self.reception.on_configuration(source, message)
        elif isinstance(message, Revived):
            self._limits.check_revived(source, message)
            if changed := self._new_life.on_revived(message):
                self.config = message.config
                self._begin_late()
        elif isinstance(message, Refreshed):
            self._limits.check_refreshed(source, message.flush, self.env.now)
            changed = self._new_life.on_refreshed(message)
        else:
            return False
        if self._new_life.is_due():
            self._deliver(View(self.group, self.config, self._members))
        return changed

    def on_timer(self, name: str) -> None:
        """Check gaps and silent sequencers, or ask for flushes."""
        if name == TICK:
            self._on_tick()
        elif name == RECEIPTS and self._receipts is not None:
            self._receipts.send()
            return
        elif name == REBIRTH:
            self._new_life.ask()
            return
        elif name == REPAIR:
            for lane in list(self._merge.lanes.values()):
                self._give_up_overdue(lane)
        else:
            self.reception.on_timer(name)
        self.reception.advance()  # all that is left for the end of patience
        if self._outbox:
            self._send_outbox()

    def explain(self) -> Explanation:
        """For every buffered message which sequencer it waits for, and which numbers are missing."""
        lanes = self._merge.lanes
        state: dict[str, str | int] = {
            "role": "receiver",
            "group": self.group,
            "configuration": self.config,
            "sequencers": ", ".join(map(str, sorted(lanes))) or "none",
            "packets held": self._merge.held,
        }
        waits = [*explain_waits(self._merge, self.reception.solicitor.since), *self._follower.waits()]
        waits += self._new_life.waits()
        behind = self._new_life.lacks or explain_behind(self._merge, self._began)
        return Explanation(state, tuple(sorted(waits, key=lambda wait: wait.since)), behind)

    # What comes

    def _note(self, packet: Groupcast) -> None:
        """A packet is new."""
        if self._repairs:
            self._kept.add(packet)
        if self._receipts is not None:
            self._receipts.note(len(packet.payload))

    def _on_gone(self, source: NodeId, message: Gone) -> None:
        lane = self._merge.lanes.get(message.sequencer)
        if lane is not None and message.group == self.group:
            self._repairer.on_gone(lane, source, message)

    def _on_inquiry(self, source: NodeId, message: Inquiry) -> None:
        """Tell a sender what a removed sequencer had stamped, once all of that is settled here."""
        known = message.sequencer <= self._follower.newest and message.sequencer not in self._merge.lanes
        if self._origins is not None and known:
            self.env.send(source, self._origins.outcome(source, message))

    # What goes

    def ordered(self, packet: Groupcast) -> None:
        """Deliver the next message."""
        if self._origins is not None:
            self._origins.add(packet)
        stamp = Stamp(packet.clock, packet.sequencer, packet.numbers)
        self._deliver(Delivered(packet.payload, packet.groups, packet.sender, stamp, self.config))

    def missing(self, lane: Lane) -> None:
        """Nothing is done about numbers that no message needs yet, but for `hold_ns`."""

    def decided(self, step: Step) -> None:
        """A step matters when delivery reaches its boundary."""

    def needed(self, lane: Lane) -> bool:
        """Notify of the first missing numbers of a lane, if they have been missing for long enough."""
        patience = self._repairer.patience(lane) if self._repairs else self._options.patience_ns
        if patience:
            left = patience - lane.needed_for(self.env.now)
            if left > 0:
                self.env.set_timer(PATIENCE, left)
                return False
        return self._notify(lane)

    def _notify(self, lane: Lane) -> bool:
        """Notify of the first missing numbers of a lane, unless there is hope that somebody has them."""
        last = lane.hopeless() or self._repairer.hopeless(lane) if self._repairs else lane.high
        if last <= lane.front:
            return False
        gone = self._merge.skip(lane, last)
        if self._origins is not None:
            self._origins.miss(lane.sequencer)
        self._deliver(Dropped(self.group, lane.sequencer, gone.start, self.config, len(gone)))
        lane.watch_gap(self.env.now)
        return True

    def changed(self, step: Step) -> None:
        """Begin the next configuration: everything before it has been delivered."""
        self.config = step.config
        if step.change == "removed":
            if self._origins is not None:
                lane = self._merge.lanes.get(step.sequencer)
                beyond = lane is not None and lane.beyond(step.numbers, self.group)
                self._origins.end(step.sequencer, beyond=beyond)
            self.reception.discard(step.sequencer)
        stamp = Stamp(step.clock, step.sequencer, (step.numbers[self.group],))
        if step.change != "void" and step.change != "reborn":  # those have no boundary
            self._deliver(View(self.group, step.config, self._members, change=step.change, stamp=stamp))

    def _send_outbox(self) -> None:
        outbox = self._outbox or []
        self._save()
        for delivery in outbox:
            self.env.deliver(delivery)
        outbox.clear()

    def _save(self) -> None:
        if self._options.durable and self._new_life.state is WHOLE:
            self.env.save(STATE, snapshot.take(self._merge, self._follower, self.config))

    # Gaps that nothing needs, and sequencers that say nothing

    def _tick_ns(self) -> Nanos:
        return max(1, self._options.suspect_ns // STRIKES)

    def _on_tick(self) -> None:
        self._kept.age(self.env.now)
        if self._receipts is not None:
            self._receipts.repeat()
        silent = self.reception.strike()
        for lane in list(self._merge.lanes.values()):
            self._give_up_overdue(lane)
        self.reception.suspect(silent)
        self.env.set_timer(TICK, self._tick_ns())

    def _give_up_overdue(self, lane: Lane) -> None:
        """Notify of a gap that no message has needed for long."""
        known = lane.overdue(self.env.now, self._options.hold_ns)
        for _ in range(RUNS_MAX):
            if (
                lane.front >= min(known, lane.high)
                or lane.queue
                or not self._follower.has_installed(lane.sequencer)
            ):
                break
            if not self._notify(lane):
                break
