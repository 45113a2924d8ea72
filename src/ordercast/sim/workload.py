"""Workloads of a simulated world: open-loop senders, closed-loop clients and replayed submissions.

An open-loop sender submits at fixed times, however slow the system is, and latency counts from these times. A
closed-loop client waits for the answers of all receivers before it goes on. Answers use the same hosts and
network.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random

from ordercast.core import Groups, MessageId, Nanos, NodeId
from ordercast.scenario.arrivals import Arrivals
from ordercast.scenario.clients import ClientCalls, Clients
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.seeds import workload_stream
from ordercast.scenario.spec import WorkloadSpec
from ordercast.scenario.submission import Submission, check_submission, numbered_payload
from ordercast.scenario.window import Budget
from ordercast.services import Operations
from ordercast.sim.world import World
from ordercast.trace import READ


class Workload(ABC):
    """Submits the messages of a world."""

    def __init__(self, world: World, messages: int) -> None:
        self.world = world
        self.budget = Budget(messages)

    @abstractmethod
    def start(self) -> None:
        """Begin at the world's present time."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """True when nothing more will be submitted."""

    @property
    def timed_out(self) -> int:
        """Messages whose answers a client stopped waiting for."""
        return 0


def proceed_with(world: World, operations: Operations) -> None:
    """Let clients go on with general transactions when they have read."""

    def on_answer(client: NodeId, message: MessageId) -> None:
        if message in ended:
            return
        ended.add(message)
        calls = world.calls
        drawn = operations.proceed(message, calls.operations[message], calls.results[message])
        if drawn is not None and drawn.groups is not None:
            world.submit(client, drawn.groups, drawn.payload)

    ended: set[MessageId] = set()
    world.calls.observers.append(on_answer)


class OpenLoop(Workload):
    """Each sender submits at the times of its arrivals, until all senders together reach the total."""

    def __init__(
        self,
        world: World,
        destinations: Destinations,
        messages: int,
        payload_bytes: int,
        arrivals: Sequence[Arrivals],
        until: Nanos | None = None,
        operations: Operations | None = None,
    ) -> None:
        """`operations` draws what is submitted, if it goes to a service."""
        super().__init__(world, messages)
        self._destinations = destinations
        self._filler = bytes(max(0, payload_bytes - 8))
        self._head_bytes = min(8, payload_bytes)
        self._arrivals = dict(zip(world.plan.senders, arrivals, strict=True))
        self._open = len(self._arrivals)
        self._until = until
        self._operations = operations
        if operations is not None:
            proceed_with(world, operations)

    def start(self) -> None:
        """Schedule the first arrival of every sender."""
        for sender in self._arrivals:
            self._next(sender, workload_stream(self.world.seed, sender))

    @property
    def finished(self) -> bool:
        """True when the messages or the arrivals of all senders are used up."""
        return not self.budget.remaining or self._open == 0

    def _next(self, sender: NodeId, rng: Random) -> None:
        gap = self._arrivals[sender].gap(rng)
        over = gap is None or (self._until is not None and self.world.now + gap > self._until)
        if gap is None or over:
            self._open -= 1
        else:
            self.world.scheduler.after(gap, self._arrive, sender, rng)

    def _arrive(self, sender: NodeId, rng: Random) -> None:
        """Submit one message if one is left. If the sender is down, the message is lost, but it counts."""
        budget = self.budget
        number = budget.take()
        if number is None:
            return
        groups = self._destinations.choose(rng)
        if self._operations is None:
            self.world.submit(sender, groups, number.to_bytes(8, "little")[: self._head_bytes] + self._filler)
        else:
            drawn = self._operations.draw(rng, number)
            self.world.submit(sender, drawn.groups or groups, drawn.payload, READ if drawn.read else None)
        if number < budget.messages:
            self._next(sender, rng)


class ClosedLoop(Workload):
    """Closed-loop clients; answers are packets of the simulated network."""

    def __init__(self, world: World, spec: WorkloadSpec, operations: Operations | None = None) -> None:
        super().__init__(world, spec.messages)
        scheduler = world.scheduler
        complete = world.complete if operations is None else _unrecorded
        calls = ClientCalls(lambda: scheduler.now, world.submit, scheduler.after, complete)
        budgets = dict.fromkeys(world.plan.senders, self.budget)
        self._clients = Clients(spec, world.plan, world.seed, budgets, calls, operations)
        self._awaited = self._clients.awaited
        if operations is None:
            world.observers.append(self._on_delivery)
        else:
            world.calls.observers.append(self._clients.answer)
            proceed_with(world, operations)

    def start(self) -> None:
        """Start all clients."""
        self._clients.start()

    @property
    def finished(self) -> bool:
        """True when all messages were submitted, and each was answered or given up."""
        return self._clients.finished

    @property
    def timed_out(self) -> int:
        """Messages whose answers a client stopped waiting for."""
        return self._clients.timed_out

    def _on_delivery(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        awaited = self._awaited.get(message)
        if awaited:
            self.world.application_send(node, awaited[0], self._clients.answer, node, message)


def _unrecorded(sender: NodeId, message: MessageId, submitted: Nanos) -> None:
    """The trace has the answer of a service already."""


class Replayed(Workload):
    """Repeats the submissions of a recorded run: the same senders, times, groups and sizes."""

    def __init__(self, world: World, submissions: list[Submission]) -> None:
        super().__init__(world, len(submissions))
        for submission in submissions:
            check_submission(submission, world.plan.senders, world.plan.groups)
        self._submissions = submissions

    def start(self) -> None:
        """Schedule the first submission."""
        self._wait()

    @property
    def finished(self) -> bool:
        """True when all submissions were made."""
        return not self.budget.remaining

    def _wait(self) -> None:
        if self.budget.remaining:
            submission = self._submissions[self.budget.taken]
            self.world.scheduler.at(max(self.world.now, submission.at_ns), self._arrive, submission)

    def _arrive(self, submission: Submission) -> None:
        number = self.budget.take()
        assert number is not None
        payload = numbered_payload(number, submission.size)
        self.world.submit(submission.sender, submission.groups, payload)
        self._wait()
