"""Closed-loop clients, one at each sender, without input or output.

A client keeps a fixed number of messages under way. It submits the next message when all receivers of one
have answered, as the clients of Hydra section 7.1 do, or when it has waited too long for their answers. The
driver brings the answers, tells the time and wakes the client.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from ordercast.core import MILLISECOND, Groups, MessageId, Nanos, NodeId, Plan
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.seeds import workload_stream
from ordercast.scenario.spec import WorkloadSpec
from ordercast.scenario.window import Budget, Window
from ordercast.services import Operations
from ordercast.trace import READ

APART: Nanos = 10_000
"""Clients start at random times within this span, not all at once."""


class ClientCalls(NamedTuple):
    """The functions of the driver that clients call."""

    now: Callable[[], Nanos]
    submit: Callable[[NodeId, Groups, bytes, str | None], MessageId | None]
    """Submit a message now, with a label; returns None if the sender is down or its backlog is full."""
    after: Callable[..., object]
    """Call an action with its arguments after a delay."""
    complete: Callable[[NodeId, MessageId, Nanos], None]
    """Record that all receivers have answered a message, which was submitted at the given time."""


class Clients:
    """All clients that one driver runs."""

    def __init__(
        self,
        spec: WorkloadSpec,
        plan: Plan,
        seed: int,
        budgets: Mapping[NodeId, Budget],
        calls: ClientCalls,
        operations: Operations | None = None,
    ) -> None:
        """`operations` draws what clients of a service call; then one answer to each is enough."""
        self.awaited: dict[MessageId, tuple[NodeId, Nanos, set[NodeId]]] = {}
        """For each message: which sender waits for answers, since when, and from which receivers."""
        self.timed_out = 0
        """Messages whose answers a client stopped waiting for."""
        self._head_bytes = min(8, spec.bytes)
        self._filler = bytes(spec.bytes - self._head_bytes)
        self._timeout_ns = round(spec.timeout_ms * MILLISECOND)
        self._members = plan.groups
        self._destinations = Destinations.of(spec, plan)
        self._budgets = budgets
        self._windows = {sender: Window(spec.outstanding) for sender in budgets}
        self._streams: dict[NodeId, Random] = {sender: workload_stream(seed, sender) for sender in budgets}
        self._calls = calls
        self._operations = operations

    def start(self) -> None:
        """Fill the window of every client, one after the other with small gaps, as real clients do."""
        for sender, window in self._windows.items():
            rng = self._streams[sender]
            for _ in range(window.room):
                window.take(1)
                self._calls.after(int(rng.random() * APART), self._issue, sender)

    @property
    def finished(self) -> bool:
        """Whether all messages were submitted, and each was answered or given up."""
        return not self.awaited and not any(budget.remaining for budget in self._budgets.values())

    def answer(self, node: NodeId, message: MessageId) -> None:
        """Note that a receiver has answered a message. Perhaps no client waits for the answer any more."""
        awaited = self.awaited.get(message)
        if awaited is None:
            return
        sender, submitted, receivers = awaited
        receivers.discard(node)
        if not receivers:
            del self.awaited[message]
            self._calls.complete(sender, message, submitted)
            self._go_on(sender)

    def _go_on(self, sender: NodeId) -> None:
        """Submit more: a place in a client's window has become free."""
        window = self._windows[sender]
        free = window.done(1)
        window.take(free)
        for _ in range(free):
            self._issue(sender)

    def _issue(self, sender: NodeId) -> None:
        """Submit a message if one is left. If the sender is down, the message is lost, but it counts."""
        budget, calls = self._budgets[sender], self._calls
        number = budget.take()
        if number is None:
            return
        groups = self._destinations.choose(self._streams[sender])
        payload, label, placed = self._content(sender, number)
        groups = placed or groups
        now = calls.now()
        message = calls.submit(sender, groups, payload, label)
        if message is not None:
            self.awaited[message] = (sender, now, self._answering(sender, groups))
            calls.after(self._timeout_ns, self._give_up, message)
        elif budget.remaining:  # try again later: the client comes back with its sender
            calls.after(self._timeout_ns, self._go_on, sender)

    def _content(self, sender: NodeId, number: int) -> tuple[bytes, str | None, Groups | None]:
        """The bytes and the label of a message, and the groups that it must go to."""
        if self._operations is None:
            return number.to_bytes(8, "little")[: self._head_bytes] + self._filler, None, None
        drawn = self._operations.draw(self._streams[sender], number)
        return drawn.payload, READ if drawn.read else None, drawn.groups

    def _answering(self, sender: NodeId, groups: Groups) -> set[NodeId]:
        """Whose answers a client waits for. A client of a service is told by its own process."""
        if self._operations is not None:
            return {sender}
        return {node for group in groups for node in self._members[group]}

    def _give_up(self, message: MessageId) -> None:
        awaited = self.awaited.pop(message, None)
        if awaited is not None:
            self.timed_out += 1
            self._go_on(awaited[0])
