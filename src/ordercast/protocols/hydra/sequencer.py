"""A sequencer (Algorithm 1): stamps messages with its clock and with a number for each of their groups.

Its state is minimal (section 5): a number of its own, the last number of each group, and a clock that only
runs forward. Nothing is kept over a restart: a new life asks the configuration service for a new number, and
counts from the beginning. Until it has one it stamps nothing, so no two lives ever share a number.
"""

from collections import deque
from collections.abc import Mapping

from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Message,
    Nanos,
    NodeId,
    RemoteError,
    Seen,
    Wait,
    named,
)
from ordercast.protocols.hydra.acks import ACK, Acks
from ordercast.protocols.hydra.kept import Kept
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX, KnowsSequencers, Limits, first_after
from ordercast.protocols.hydra.messages import (
    NOBODY,
    Announce,
    Ask,
    Echo,
    Flush,
    Groupcast,
    Join,
    Nudge,
    Nudged,
    Probe,
    Receipt,
    Refresh,
    Refreshed,
    Request,
    Solicit,
    Welcome,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.repair import answer
from ordercast.protocols.hydra.sequencer_life import (
    ASKING,
    RETIRED,
    SEQUENCER_LIFE,
    SERVING,
    SequencerEvent,
)
from ordercast.protocols.hydra.stamping_clock import StampingClock

BACKOFF_MAX = 6
TARGETS_MAX = 65_536
"""Destinations that are remembered; beyond, all are forgotten and looked up again."""


class Sequencer(KnowsSequencers):
    """Stamps and forwards."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        service: tuple[NodeId, ...],
        aggregators: tuple[NodeId, ...],
        options: HydraOptions,
    ) -> None:
        super().__init__(env)
        self.state = ASKING
        self.number = NOBODY
        """Its own number, while it serves."""
        self._members = members
        self._service = service
        self._limits = Limits(service, len(members), first_after(members.values()))
        self._aggregators = aggregators
        self._options = options
        self._everyone = tuple(sorted({node for nodes in members.values() for node in nodes}))
        self._no_senders = frozenset((*self._everyone, *service))
        self._targets: dict[tuple[GroupId, ...], tuple[NodeId, ...]] = {}
        self._numbers = [0] * len(members)
        self._clock = StampingClock(env)
        self._life = 0
        """A reading of the clock that no other life of this node has: at its boot, or after a removal."""
        self._since = 0
        """How many steps the configuration service had taken when it gave out the number."""
        self._removals = 0
        self._seen: dict[NodeId, Seen] = {}
        self._early: deque[tuple[NodeId, Request]] = deque(maxlen=options.strangers)
        self._nudges = options.flush == "nudged"
        self._others: tuple[NodeId, ...] = ()
        """The nodes of the other sequencers."""
        self._told = [0] * len(members)
        """For each group the last clock that its receivers were told with a message or for a nudge."""
        self._told_by: dict[NodeId, list[int]] = {}
        """The same for the other sequencers, as far as they have told."""
        self._stamped_at: Nanos = 0
        self._stamped: set[GroupId] = set()
        """Groups of stamped messages for which the others have not been nudged yet."""
        self._nudged_at: Nanos = 0
        self._nudge_due = False
        self._kept = Kept(options.keep_bytes, options.keep_ns) if options.repair else None
        """What it has stamped of late, in all lives of this process."""
        self._acks = Acks(env, members, options.ack_ns) if options.resend else None
        self._held: dict[NodeId, int] = {}
        """Receivers that asked for a flush above a clock that this sequencer has not reached."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Ask for a number."""
        self._life = self.env.now
        self._join()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Stamp a message, answer a request, or take news from the configuration service."""
        match message:
            case Request() if source not in self._no_senders:
                self._on_request(source, message)
            case Solicit() if source in self._no_senders and source not in self._service:
                self._on_solicit(source, message)
            case Nudge():
                self._on_nudge(source, message)
            case Nudged():
                self._on_nudged(source, message)
            case Ask() if self._kept is not None:
                answer(self.env, self._kept, source, message, len(self._members))
            case Receipt() if self._acks is not None:
                if message.sequencer == self.number:
                    self._acks.on_receipt(source, message.front)
                    if self._acks.is_full:
                        self._acks.send(self.number)
            case Refresh() if self.state is SERVING and message.sequencer == self.number:
                self.env.send(source, Refreshed(message.life, self._flush_message()))
            case Probe():
                self.env.send(source, Echo(message.sent))
            case Welcome():
                self._limits.check_service(source)
                self._on_welcome(message)
            case Announce():
                self._limits.check_announce(source, message)
                self._on_announce(message)
            case Ask() | Receipt() | Refresh():
                pass  # this sequencer keeps nothing, or has lost its number
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a sequencer")

    def on_timer(self, name: str) -> None:
        """Flush, answer delayed requests, or ask again for a number."""
        if name == "flush":
            self._flush(self._aggregators or self._everyone)
            self.env.set_timer("flush", self._options.flush_ns)
        elif name == "heartbeat":
            self._flush((*self._everyone, *self._aggregators))
            if self._kept is not None:
                self._kept.age(self.env.now)
            self.env.set_timer("heartbeat", self._options.heartbeat_ns)
        elif name == "held":
            self._answer_held()
        elif name == "nudge":
            self._nudge()
        elif name == ACK and self._acks is not None:
            self._acks.send(self.number)
        elif name == "join" and self.state is not SERVING:
            self._join()

    def explain(self) -> Explanation:
        """What waits: flushes for receivers whose clock is ahead, and all stamping without a number."""
        waits = [
            Wait(
                f"flush for node {node}",
                f"its own clock, which is at {self._clock.last} and must pass {clock}",
                self.env.now,
            )
            for node, clock in sorted(self._held.items())
        ]
        if self.state is not SERVING:
            waits.append(
                Wait("all stamping", "a number from the configuration service", self._life, on=self._service)
            )
        state: dict[str, str | int] = {
            "role": "sequencer",
            "sequencer": self.number,
            "clock": self._clock.last,
            "messages stamped": sum(self._numbers),
        }
        return Explanation(state, tuple(waits), "" if self.state is SERVING else "a number")

    def _on_request(self, source: NodeId, message: Request) -> None:
        groups = message.groups
        targets = self._targets.get(groups)
        if targets is None:
            if len(self._targets) >= TARGETS_MAX:
                self._targets.clear()
            targets = self._targets[groups] = self._receivers(groups)
        if self.state is not SERVING:
            self._early.append((source, message))  # its sender may know the number before this one does
            return
        if message.sequencer != self.number:
            return  # meant for an earlier life
        if message.number > self.env.now + CLOCK_AHEAD_MAX:  # all later ones would look old
            raise RemoteError(f"node {source} cannot have reached number {message.number}")
        seen = self._seen.get(source)
        if seen is None:
            seen = self._seen[source] = Seen(self._options.window)
        acks = self._acks
        if not seen.admit(message.number):
            if acks is not None:
                acks.repeat(source, message.number)
            return
        numbers = self._numbers
        for group in groups:
            numbers[group] += 1
        stamp = tuple(numbers[group] for group in groups)
        request = 0
        if acks is not None:
            request = message.number
            acks.stamp(source, request, groups, stamp, len(message.payload))
        stamped = Groupcast(self.number, self._clock.tick(), groups, stamp, source, message.payload, request)
        if self._nudges:
            self._note_stamp(groups)
        if self._kept is not None:
            self._kept.add(stamped)
        self.env.multicast(targets, stamped)

    # Nudges

    def _note_stamp(self, groups: tuple[GroupId, ...]) -> None:
        """Nudge sequencers whose clock may delay this message: now, or when the last nudge is old enough."""
        self._stamped_at = self.env.now
        for group in groups:
            self._told[group] = self._clock.last
        if not any(self._known(node, groups) <= self._clock.last for node in self._others):
            return
        self._stamped.update(groups)
        after = self._nudged_at + self._options.nudge_ns - self.env.now
        if after <= 0:
            self._nudge()
        elif not self._nudge_due:
            self._nudge_due = True
            self.env.set_timer("nudge", after)

    def _known(self, node: NodeId, groups: tuple[GroupId, ...]) -> int:
        """The clock of another sequencer that the receivers of these groups know, as far as is known here."""
        told = self._told_by.get(node)
        return 0 if told is None else min(told[group] for group in groups)

    def _nudge(self) -> None:
        self._nudge_due = False
        groups = tuple(sorted(self._stamped))
        self._stamped.clear()
        if groups and self.state is SERVING:
            self._nudged_at = self.env.now
            behind = tuple(node for node in self._others if self._known(node, groups) <= self._clock.last)
            self.env.multicast(behind, Nudge(self._clock.last, groups))

    def _on_nudge(self, source: NodeId, message: Nudge) -> None:
        """Tell a clock above another's to the receivers that know none.

        The own clock is put forward where it is behind, so that nobody waits for the difference.
        """
        self._clock.check(source, message.clock)
        self._on_nudged(source, message)
        now = self._clock.now
        if self.state is not SERVING:
            return
        behind = tuple(group for group in message.groups if self._told[group] <= message.clock)
        if behind:
            if message.clock - now > self._options.addition_ns:
                self._clock.put_forward(message.clock)
            self._clock.reach(message.clock)
            if self.env.now - self._stamped_at >= self._options.lead_ns:
                # Ahead of the time, not of other clocks: promises on promises would drive all of them away.
                self._clock.reach(now + self._options.lead_ns)
            flush = self._flush_message()
            for group in behind:
                self._told[group] = flush.clock
            self.env.multicast(self._targets.get(behind) or self._receivers(behind), flush)
        told = min(self._told[group] for group in message.groups)
        self.env.send(source, Nudged(told, message.groups))

    def _on_nudged(self, source: NodeId, message: Nudge | Nudged) -> None:
        """Another sequencer has told the receivers of these groups a clock."""
        if any(group not in self._members for group in message.groups):
            raise RemoteError(f"node {source} names an unknown group in {message.groups}")
        if source in self._others:  # one that was just added may not be known here yet
            told = self._told_by.setdefault(source, [0] * len(self._members))
            for group in message.groups:
                told[group] = max(told[group], message.clock)

    def _receivers(self, groups: tuple[GroupId, ...]) -> tuple[NodeId, ...]:
        if list(groups) != sorted(set(groups)) or any(group not in self._members for group in groups):
            raise RemoteError(f"a request must name known groups in ascending order, not {groups}")
        return tuple(node for group in groups for node in self._members[group])

    def _flush(self, to: tuple[NodeId, ...]) -> None:
        if self.state is SERVING:
            self.env.multicast(to, self._flush_message())

    def _flush_message(self) -> Flush:
        return Flush(self.number, self._clock.tick(), tuple(self._numbers))

    def _on_solicit(self, source: NodeId, message: Solicit) -> None:
        if self.state is not SERVING or message.sequencer != self.number:
            return
        self._clock.check(source, message.clock)
        ahead = message.clock - max(self._clock.now, self._clock.last)
        if ahead >= self._options.addition_ns:
            self._clock.put_forward(message.clock)
        if ahead < 0 or ahead >= self._options.addition_ns:
            self.env.send(source, self._flush_message())
        else:
            # A flush below the receiver's messages would not help it: answer when the clock is there.
            self._held[source] = max(message.clock, self._held.get(source, 0))
            self._await_clock()

    def _answer_held(self) -> None:
        flush = self._flush_message()
        first = min(self._held.values(), default=0)
        if flush.clock <= first:  # the time is over, but the clock was set back and stands still
            self._clock.put_forward(first)
            flush = self._flush_message()
        ready = [node for node, asked in self._held.items() if asked < flush.clock]
        self.env.multicast(tuple(ready), flush)
        for node in ready:
            del self._held[node]
        if self._held:
            self._await_clock()

    def _await_clock(self) -> None:
        due = min(self._held.values()) - self._clock.now + 1
        self.env.set_timer("held", max(due, 1))

    # Lives

    def _join(self) -> None:
        if self.state is RETIRED:
            self._renew()
        if self.state is ASKING:
            self.env.multicast(self._service, Join(self._life))
        self.env.set_timer("join", self._options.join_ns)

    def _renew(self) -> None:
        """Begin another life, named by a reading of the clock that has passed.

        A boot reads the clock as it is now or later, so it is never the same. A clock that was set back
        stands still, and this waits with it.
        """
        passed = self.env.now - 1
        if passed > self._life:
            self.state = SEQUENCER_LIFE.after(self.state, SequencerEvent.RENEW)
            self._life = passed

    def _on_welcome(self, message: Welcome) -> None:
        if message.life != self._life or self.state is not ASKING:
            return
        if message.sequencer == NOBODY:
            raise RemoteError(f"a welcome gives number {NOBODY}, which means no sequencer")
        self.state = SEQUENCER_LIFE.after(self.state, SequencerEvent.WELCOME)
        self.number, self._since = message.sequencer, message.since
        self._numbers = [0] * len(self._members)
        self._seen.clear()
        self.env.cancel_timer("join")
        self.on_timer("heartbeat")
        while self._early:
            self._on_request(*self._early.popleft())
        if self._options.flush in ("periodic", "aggregated"):
            self.env.set_timer("flush", self._options.flush_ns)

    def _on_announce(self, message: Announce) -> None:
        """Retire if the new configuration does not have this sequencer."""
        self._others = tuple(sorted({node for _, node in message.active} - {self.env.me}))
        for node in [node for node in self._told_by if node not in self._others]:
            del self._told_by[node]
        if self.state is ASKING:
            self._join()  # there is a leader now; the last question may have been lost
        if self.state is not SERVING or message.steps < self._since:
            return
        if self.number in message.silent:
            self.env.multicast(self._service, Join(self._life))
        planned = message.planned is not None and message.planned.sequencer == self.number
        if not planned and all(number != self.number for number, _ in message.active):
            self._retire()

    def _retire(self) -> None:
        """Fall silent, and offer itself again later."""
        self.state = SEQUENCER_LIFE.after(self.state, SequencerEvent.RETIRE)
        self.number = NOBODY
        self._held.clear()
        self._stamped.clear()
        if self._acks is not None:
            self._acks.clear()
        self._nudge_due = False
        for timer in ("flush", "heartbeat", "held", "nudge", ACK):
            self.env.cancel_timer(timer)
        self.env.set_timer("join", self._options.join_ns << min(self._removals, BACKOFF_MAX))
        self._removals += 1
