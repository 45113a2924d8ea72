"""A sender: sends each message to one of the sequencers that the configuration service says are alive.

Delivery is best effort in the paper (section 4.1): if a message is lost before it is stamped, nobody notices
the loss. With the option `resend` a sender keeps what it has sent, and sends it again (`Keeper`).
"""

from collections.abc import Mapping
from zlib import crc32

from ordercast.core import Env, Explanation, GroupId, Groups, LocalError, Member, Message, Nanos, NodeId, Wait
from ordercast.protocols.hydra.keeper import KEEP, Keeper
from ordercast.protocols.hydra.limits import KnowsSequencers, Limits, first_after
from ordercast.protocols.hydra.messages import (
    NOBODY,
    Announce,
    Echo,
    Fetch,
    Outcome,
    Probe,
    Request,
    Stamped,
    Step,
    Steps,
)
from ordercast.protocols.hydra.options import HydraOptions

CONGESTED = 2
"""A sequencer with this many times the shortest round trip is avoided."""
FLOWS_MAX = 65_536
"""Destinations that are remembered; beyond, all are forgotten and looked up again."""
STALE = 4
"""After this many unanswered probes in a row a sequencer counts as congested."""


class Sender(KnowsSequencers, Member):
    """Sends each message to one sequencer."""

    def __init__(
        self,
        env: Env,
        groups: Mapping[GroupId, tuple[NodeId, ...]],
        service: tuple[NodeId, ...],
        options: HydraOptions,
        near: NodeId | None = None,
    ) -> None:
        """`near` is the node of a sequencer on the same host, if there is one."""
        super().__init__(env)
        self._groups = groups
        self._near = near
        self._service = service
        self._limits = Limits(service, len(groups), first_after(groups.values()))
        self._options = options
        self._flows: dict[Groups, int] = {}
        """A hash for every destination used so far: the flow that a router would see."""
        self._steps = -1
        self._read = 0
        """How many steps it knows; of those before, it needs none."""
        self._keeper = Keeper(env, groups, service, options) if options.resend else None
        self._active: tuple[tuple[int, NodeId], ...] = ()
        self._choices: tuple[tuple[int, NodeId], ...] = ()
        """The active sequencers that the route allows."""
        self._trips: dict[NodeId, Nanos] = {}
        self._unanswered: dict[NodeId, int] = {}
        self._number = self._probed = 0
        self._idle = options.route == "congestion"
        """Whether measuring has paused because nothing is sent."""
        self._stuck, self._stuck_at = NOBODY, 0
        self._started: Nanos = 0

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Ask which sequencers are alive; number messages above all that an earlier life can have used."""
        self._number = self._started = self.env.now
        if self._keeper is not None:
            self._keeper.begin(self._started)
        self._ask()

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send to a sequencer; False while none is known."""
        self._flow_of(groups)  # refuses groups that there are not
        if not self._choices:
            return False
        sequencer, node = self._route(groups, self._choices)
        self._number += 1
        number = self._number
        if self._keeper is not None:
            taken = self._keeper.take(sequencer, groups, payload)
            if taken is None:
                return False
            number = taken
        self._wake()
        self.env.send(node, Request(sequencer, number, groups, payload))
        return True

    @property
    def in_doubt(self) -> int:
        """How many bundles may still have to be sent again."""
        return 0 if self._keeper is None else self._keeper.in_doubt

    @property
    def is_ready(self) -> bool:
        """Whether a sequencer is known."""
        return bool(self._choices)

    def submit_elsewhere(self, groups: Groups, payload: bytes, avoid: int) -> int:
        """Send to another sequencer than this one, if there is another; returns its number, 0 if none is
        known. The same bytes may have come to the one to avoid, which would take them for a copy."""
        others = tuple(one for one in self._choices if one[0] != avoid) or self._choices
        if not others:
            return NOBODY
        sequencer, node = self._route(groups, others)
        self._number += 1
        self._wake()
        self.env.send(node, Request(sequencer, self._number, groups, payload))
        return sequencer

    def _route(self, groups: Groups, choices: tuple[tuple[int, NodeId], ...]) -> tuple[int, NodeId]:
        """One of several sequencers, as the option `route` says."""
        route = self._options.route
        if route == "hash":
            return choices[self._flow_of(groups) % len(choices)]
        if route != "sticky":
            return choices[int(self.env.rng.random() * len(choices))]
        for choice in choices:
            if choice[0] == self._stuck and self.env.now - self._stuck_at < self._options.stick_ns:
                return choice
        choice = choices[int(self.env.rng.random() * len(choices))]
        self._stuck, self._stuck_at = choice[0], self.env.now
        return choice

    def _flow_of(self, groups: Groups) -> int:
        flow = self._flows.get(groups)
        if flow is None:
            if len(self._flows) >= FLOWS_MAX:
                self._flows.clear()
            flow = self._flows[groups] = self._flow(groups)
        return flow

    def _send_again(self) -> None:
        """Send what its sequencer had not stamped when it was removed."""
        again = self._keeper.again if self._keeper is not None else ()
        while again and self.submit(*again[0]):
            again.popleft()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Learn which sequencers are alive, and how far away they are."""
        if isinstance(message, Announce):
            self._limits.check_announce(source, message)
            if message.steps >= self._steps:
                self._steps = message.steps
                self._active = tuple(entry for entry in message.active if entry[0] not in message.silent)
                self._choose()
                if self._keeper is not None:
                    self._follow(source, message, self._keeper)
        elif isinstance(message, Stamped | Outcome | Steps):
            self._on_news(source, message)
        elif isinstance(message, Echo):
            trip = max(1, self.env.now - message.sent)
            known = self._trips.get(source, trip)
            self._trips[source] = known + (trip - known) // 2
            self._unanswered[source] = 0
            self._choose()

    def _follow(self, source: NodeId, message: Announce, keeper: Keeper) -> None:
        """Learn how sequencers were removed to which kept messages were sent."""
        if message.latest is not None and message.steps == self._read + 1:
            self._learn(message.latest, keeper)
            self._read = message.steps
        orphaned = keeper.orphaned({sequencer for sequencer, _ in message.active})
        if not orphaned:
            self._read = max(self._read, message.steps)
        elif message.steps > self._read:
            self.env.send(source, Fetch(self._read))
        else:
            keeper.on_forgotten(orphaned)  # their removal was not among the steps that the service keeps

    def _learn(self, step: Step, keeper: Keeper) -> None:
        if step.change == "removed":
            keeper.on_removed(step)

    def _on_news(self, source: NodeId, message: Stamped | Outcome | Steps) -> None:
        """Learn what has become of kept messages."""
        keeper = self._keeper
        if keeper is None:
            return
        if isinstance(message, Stamped):
            keeper.on_stamped(message)
        elif isinstance(message, Outcome):
            keeper.on_outcome(source, message)
        else:
            self._limits.check_steps(source, message)
            for step in message.steps:
                self._learn(step, keeper)
            self._read = max(self._read, message.start + len(message.steps))
        self._choose()
        self._send_again()

    def on_timer(self, name: str) -> None:
        """Ask again, repeat, or measure again."""
        if name == "ask" and not self._active:
            self._ask()
        elif name == KEEP and self._keeper is not None:
            self._keeper.tick(dict(self._active))
            self._choose()
            self._send_again()
        elif name == "probe":
            self._idle = self._number == self._probed
            if not self._idle:
                self._probe()

    def explain(self) -> Explanation:
        """What is kept, and that all messages wait if no sequencer is known."""
        state: dict[str, str | int] = {
            "role": "sender",
            "sequencers": ", ".join(str(sequencer) for sequencer, _ in self._choices) or "none",
        }
        waits = [] if self._keeper is None else self._keeper.waits()
        if not self._choices:
            blocker = "a sequencer; none is known to be alive"
            waits.append(Wait("all messages", blocker, self._started, on=self._service))
        waits.sort(key=lambda wait: wait.since)
        return Explanation(state, tuple(waits), "" if self._choices else "a sequencer")

    def _flow(self, groups: Groups) -> int:
        unknown = [group for group in groups if group not in self._groups]
        if unknown or not groups:
            raise LocalError(
                f"cannot send to groups {groups}: "
                + (f"there is no group {unknown[0]}" if unknown else "none is named")
            )
        if list(groups) != sorted(set(groups)):
            raise LocalError(f"groups must be named once each and in ascending order, not as {groups}")
        return crc32(repr((self.env.me, groups)).encode())

    def _ask(self) -> None:
        self.env.multicast(self._service, Fetch(0))
        self.env.set_timer("ask", self._options.announce_ns)

    def _wake(self) -> None:
        """Measure again if measuring has paused."""
        if self._idle:
            self._idle = False
            self._probe()

    def _probe(self) -> None:
        """Measure the ways to all sequencers, and go on with it for as long as messages are sent."""
        self._probed = self._number
        for _, node in self._active:
            self._unanswered[node] = self._unanswered.get(node, 0) + 1
            self.env.send(node, Probe(self.env.now))
        self._choose()
        self.env.set_timer("probe", self._options.probe_ns)

    def _choose(self) -> None:
        self._choices = self._active
        if self._keeper is not None and self._keeper.doubtful:
            doubtful = self._keeper.doubtful
            self._choices = tuple(one for one in self._active if one[0] not in doubtful) or self._active
        if self._options.route == "congestion" and len(self._active) > 1:
            trips = {node: self._trip(node) for _, node in self._choices}
            limit = CONGESTED * min(trips.values())
            self._choices = tuple(entry for entry in self._choices if trips[entry[1]] <= limit)
        if self._near is not None:
            self._choices = tuple(one for one in self._choices if one[1] == self._near) or self._choices

    def _trip(self, node: NodeId) -> Nanos:
        """The round trip to a sequencer; for one that does not answer, the time of its silence."""
        silent = self._unanswered.get(node, 0)
        trip = self._trips.get(node, 1)
        return trip if silent < STALE else max(trip, silent * self._options.probe_ns)
