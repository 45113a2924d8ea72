"""How a receiver gets flushes (section 4.6).

Something waits: the first message, or the boundary of a step. The policy says when to ask: *solicited* after
a fixed delay, *adaptive* at once unless traffic will do, *aggregated* at once and of the aggregator,
*periodic* never, for flushes come by themselves, and *nudged* only where they should have and did not.

A sequencer is asked once until it answers: the answer tells of all that it has sent by then, and a receiver
that lags behind would only make its own queue longer. An answer is a flush above the clock asked for. Nothing
else counts as one, so copies of an old answer never cause a new question, and questions cannot multiply. What
stays unanswered is asked again after `retry_ns`, later and later, and of the sequencers themselves.
"""

from ordercast.core import Env, Nanos, NodeId
from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.lane import Lane, Question
from ordercast.protocols.hydra.lane_life import ACTIVE
from ordercast.protocols.hydra.merge import Merge, Position
from ordercast.protocols.hydra.messages import NOBODY, Flush, Flushes, Solicit
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.pulse import SMOOTHING

BACKOFF_MAX = 4
NOTHING: Position = (0, 0)
"""Before every message."""
SEQUENCERS_END = 1 << 64
"""Above the number of every sequencer: an aggregator asks all of them."""
DELAY, RETRY = "solicit", "retry"
"""Timers of the receiver: to ask, and to ask again."""


class Solicitor:
    """Asks for flushes when something waits, as the policy says."""

    __slots__ = (
        "_aggregator", "_aggregator_asked", "_armed", "_asked", "_attempts", "_blocked", "_env", "_fetch_ns",
        "_follower", "_merge", "_options", "since",
    )  # fmt: skip

    def __init__(
        self, env: Env, merge: Merge, follower: Follower, aggregator: NodeId | None, options: HydraOptions
    ) -> None:
        self._env = env
        self._merge = merge
        self._follower = follower
        self._aggregator = aggregator
        self._options = options
        self._blocked: Position | None = None
        """What waits first."""
        self.since: Nanos = 0
        """Since when it has."""
        self._asked: Position = NOTHING
        """Whatever keeps a message up to this position waiting has been asked for a flush."""
        self._aggregator_asked: Question | None = None
        self._attempts = 0
        self._armed = False
        self._fetch_ns: Nanos = 0
        """The moving mean of the time from a request to its answer, including the wait for the own CPU."""

    def on_flush(self, lane: Lane, flush: Flush) -> None:
        """Take a flush of a sequencer that was asked for one."""
        if lane.asked is None or flush.clock <= lane.asked[0]:
            return
        self._fetch_ns += (self._env.now - lane.asked[1] - self._fetch_ns) // SMOOTHING
        lane.answered()
        if flush.clock <= self._asked[0]:
            self._asked = NOTHING  # more has come since: ask once more

    def on_flushes(self, message: Flushes) -> None:
        """Take the message of an aggregator."""
        lowest = min((flush.clock for flush in message.flushes), default=0)
        if self._aggregator_asked is not None and lowest > self._aggregator_asked[0]:
            self._aggregator_asked = None
            if lowest <= self._asked[0]:
                self._asked = NOTHING

    def on_delay_over(self) -> None:
        """Ask, unless the flushes that messages wait for have come meanwhile."""
        self._armed = False
        if self._blocked is not None and self._blocked > self._asked:
            self._ask_or_wait()

    def on_late_answer(self) -> None:
        """Ask again, if something still waits."""
        if self._blocked is not None:
            self._attempts += 1
            self._solicit()

    def rest(self) -> None:
        """Nothing waits."""
        if self._blocked is not None:
            self._blocked, self._asked, self._attempts = None, NOTHING, 0

    def seek(self, target: Position) -> None:
        """Note that a message or step waits: ask for flushes, unless they have been requested."""
        if target != self._blocked:
            self._blocked, self.since = target, self._env.now
            self._attempts = 0
            if self._follower.boundaries:
                self._asked = NOTHING  # a sequencer that was added has not been asked
        if target <= self._asked or self._options.flush == "periodic":
            return
        delay = self._delay()
        if delay == 0:
            self._solicit()
        elif not self._armed:
            self._armed = True
            self._env.set_timer(DELAY, delay)

    def _delay(self) -> Nanos:
        policy, flush_ns = self._options.flush, self._options.flush_ns
        if policy in ("solicited", "nudged"):
            return flush_ns
        if policy == "adaptive":
            # Where traffic comes sooner than a flush would, the wait ends by itself. A receiver with spare
            # time has its flush within a round trip; for a busy one it waits in the queue like all else.
            lane = self._merge.lanes[self._merge.floor()[1]]
            if 2 * lane.mean_ns <= min(self._fetch_ns, flush_ns):
                return 2 * lane.mean_ns
        return 0

    def _ask_or_wait(self) -> None:
        """Ask, unless flushes come by themselves and the first message has not waited long."""
        waited = self._env.now - self.since
        if self._options.flush == "nudged" and waited < self._options.flush_ns:
            self._armed = True
            self._env.set_timer(DELAY, self._options.flush_ns)
        else:
            self._solicit()

    def _solicit(self) -> None:
        """Ask the sequencers that hold up what waits first for a flush above it.

        An aggregator is asked for flushes above everything here (section 4.6.2). A sequencer is not: if its
        clock is behind, it answers when it gets there, and the first message would wait for the last.
        """
        env, target = self._env, self._blocked or NOTHING
        self._asked = target
        env.set_timer(RETRY, self._options.retry_ns << min(self._attempts, BACKOFF_MAX))
        again = self._attempts > 0
        if self._aggregator is not None and not again:
            clock = max(self._merge.highest(), target[0])
            self._asked = (clock, SEQUENCERS_END)
            if not self._pending(self._aggregator_asked):
                self._aggregator_asked = (clock, env.now)
                env.send(self._aggregator, Solicit(NOBODY, clock))
            return
        self._aggregator_asked = None
        for lane in self._merge.lanes.values():
            if (lane.clock, lane.sequencer) >= target or lane.state is not ACTIVE:
                continue
            if again or not self._pending(lane.asked):
                lane.ask(target[0], env.now)
                env.send(lane.node, Solicit(lane.sequencer, target[0]))

    def _pending(self, question: Question | None) -> bool:
        """Whether an answer may still come."""
        return question is not None and self._env.now - question[1] < self._options.retry_ns
