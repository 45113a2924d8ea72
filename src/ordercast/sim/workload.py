"""Who submits what, when: open-loop sources and closed-loop clients.

An open-loop source submits at times of its own, however slow the system is, and latency counts from
there. A closed-loop client waits for the answers of all receivers before it goes on, as the clients of
Hydra section 7.1 do; answers travel over the same hosts and network.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from ordercast.core import Groups, MessageId, Nanos, NodeId
from ordercast.scenario.arrivals import Arrivals
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.seeds import workload_stream
from ordercast.scenario.submission import Submission, check_submission, numbered_payload
from ordercast.sim.world import World


class Workload(ABC):
    """Drives the applications of a world."""

    def __init__(self, world: World, destinations: Destinations, messages: int, payload_bytes: int) -> None:
        self.world = world
        self.remaining = messages
        self._destinations = destinations
        self._filler = bytes(max(0, payload_bytes - 8))
        self._head_bytes = min(8, payload_bytes)
        self._count = 0
        self.timed_out = 0
        """Messages whose answers a client stopped waiting for."""

    @abstractmethod
    def start(self) -> None:
        """Begin at the world's present time."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True when nothing more will be submitted."""

    def _submit(self, sender: NodeId, rng: Random) -> tuple[MessageId, Groups] | None:
        """Submit one message, if any is left; at a sender that is down it is lost, and counts."""
        if self.remaining <= 0:
            return None
        self.remaining -= 1
        groups = self._destinations.choose(rng)
        self._count += 1
        payload = self._count.to_bytes(8, "little")[: self._head_bytes] + self._filler
        message = self.world.submit(sender, groups, payload)
        return None if message is None else (message, groups)


class OpenLoop(Workload):
    """Each sender submits at the times of its own arrivals, until so many were submitted by all."""

    def __init__(
        self,
        world: World,
        destinations: Destinations,
        messages: int,
        payload_bytes: int,
        arrivals: Sequence[Arrivals],
        until: Nanos | None = None,
    ) -> None:
        super().__init__(world, destinations, messages, payload_bytes)
        self._arrivals = dict(zip(world.plan.senders, arrivals, strict=True))
        self._open = len(self._arrivals)
        self._until = until

    def start(self) -> None:
        """Let every sender wait for its first arrival."""
        for sender in self._arrivals:
            self._next(sender, workload_stream(self.world.seed, sender))

    @property
    def finished(self) -> bool:
        """True when the messages or the arrivals of all senders are used up."""
        return self.remaining <= 0 or self._open == 0

    def _next(self, sender: NodeId, rng: Random) -> None:
        gap = self._arrivals[sender].gap(rng)
        over = gap is None or (self._until is not None and self.world.now + gap > self._until)
        if gap is None or over:
            self._open -= 1
        else:
            self.world.scheduler.after(gap, self._arrive, sender, rng)

    def _arrive(self, sender: NodeId, rng: Random) -> None:
        self._submit(sender, rng)
        if self.remaining > 0:
            self._next(sender, rng)


class ClosedLoop(Workload):
    """Each sender keeps so many messages under way, the next when all receivers have answered one."""

    def __init__(
        self,
        world: World,
        destinations: Destinations,
        messages: int,
        payload_bytes: int,
        outstanding: int = 1,
        timeout_ns: Nanos = 1_000_000_000,
    ) -> None:
        super().__init__(world, destinations, messages, payload_bytes)
        self._outstanding = outstanding
        self._timeout_ns = timeout_ns
        self._awaited: dict[MessageId, tuple[NodeId, Nanos, set[NodeId]]] = {}
        self._rngs = {sender: workload_stream(world.seed, sender) for sender in world.plan.senders}
        world.observers.append(self._on_delivery)

    def start(self) -> None:
        """Fill every sender's window, in turn and a little apart, as real clients are."""
        for sender, rng in self._rngs.items():
            for _ in range(self._outstanding):
                self.world.scheduler.after(int(rng.random() * 10_000), self._issue, sender)

    @property
    def finished(self) -> bool:
        """True when all was submitted and answered, or given up."""
        return self.remaining <= 0 and not self._awaited

    def _issue(self, sender: NodeId) -> None:
        submitted = self._submit(sender, self._rngs[sender])
        if submitted is None:
            if self.remaining > 0:  # the sender is down: its client comes back with it
                self.world.scheduler.after(self._timeout_ns, self._issue, sender)
            return
        message, groups = submitted
        receivers = {node for group in groups for node in self.world.plan.groups[group]}
        self._awaited[message] = (sender, self.world.now, receivers)
        self.world.scheduler.after(self._timeout_ns, self._give_up, message)

    def _on_delivery(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        awaited = self._awaited.get(message)
        if awaited:
            self.world.application_send(node, awaited[0], self._on_answer, node, message)

    def _on_answer(self, node: NodeId, message: MessageId) -> None:
        awaited = self._awaited.get(message)
        if awaited is None:
            return
        sender, submitted, receivers = awaited
        receivers.discard(node)
        if not receivers:
            del self._awaited[message]
            self.world.complete(sender, message, submitted)
            self._issue(sender)

    def _give_up(self, message: MessageId) -> None:
        awaited = self._awaited.pop(message, None)
        if awaited:
            self.timed_out += 1
            self._issue(awaited[0])


class Replayed(Workload):
    """Submits what was submitted before: the same senders, times, groups and sizes."""

    def __init__(self, world: World, submissions: list[Submission]) -> None:
        super().__init__(world, Destinations(sorted(world.plan.groups)), len(submissions), 0)
        for submission in submissions:
            check_submission(submission, world.plan.senders, world.plan.groups)
        self._submissions = submissions
        self._next = 0

    def start(self) -> None:
        """Wait for the first."""
        self._wait()

    @property
    def finished(self) -> bool:
        """True when all were submitted."""
        return self.remaining <= 0

    def _wait(self) -> None:
        if self._next < len(self._submissions):
            submission = self._submissions[self._next]
            self.world.scheduler.at(max(self.world.now, submission.at_ns), self._arrive, submission)

    def _arrive(self, submission: Submission) -> None:
        self._next += 1
        self.remaining -= 1
        payload = numbered_payload(self._next, submission.size)
        self.world.submit(submission.sender, submission.groups, payload)
        self._wait()
