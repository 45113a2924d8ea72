"""The processes of a plan, one step at a time, each step of the real code run once.

A process is deterministic: its state, an event and its clock determine what it does. So states of single
processes are kept and numbered, and `World.step` remembers for each of them and each event the state that
follows and the packets that are sent. The explorer then combines numbers; of a million interleavings only the
thousands of different steps are ever executed.

Time stands still at a node, except that a timer which goes off moves the node's clock to the time it was set
for, and that the explorer may make a clock jump.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias

from ordercast.core import (
    Delivery,
    Env,
    Groups,
    Member,
    Message,
    Nanos,
    NodeId,
    Plan,
    Process,
    exception_text,
)
from ordercast.lab.model.explorer_copy import clone, fingerprint


class Packet(NamedTuple):
    """A message on its way."""

    source: NodeId
    to: NodeId
    message: Message


class Timer(NamedTuple):
    """A timer goes off."""

    node: NodeId
    name: str


class Jump(NamedTuple):
    """A clock runs ahead."""

    node: NodeId
    by: Nanos


class Boot(NamedTuple):
    """A node starts."""

    node: NodeId


class Submission(NamedTuple):
    """An application gives a message to a sender."""

    node: NodeId
    groups: Groups
    payload: bytes


Event: TypeAlias = Packet | Timer | Jump | Boot | Submission
History: TypeAlias = tuple[Delivery, ...]


def node_of(event: Event) -> NodeId:
    """Where an event happens."""
    return event.to if isinstance(event, Packet) else event.node


class RecordingEnv(Env):
    """Takes note of what a process does."""

    __slots__ = ("delivered", "sent", "timers")

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.now = 0
        self.rng = Random(me)
        self.timers: dict[str, Nanos] = {}
        self.sent: list[Packet] = []
        self.delivered: list[Delivery] = []

    def send(self, to: NodeId, message: Message) -> None:
        """Send one packet."""
        self.sent.append(Packet(self.me, to, message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Send a packet to each node."""
        self.sent.extend(Packet(self.me, node, message) for node in to)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Arm a timer, on the node's clock."""
        self.timers[name] = self.now + after

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer."""
        self.timers.pop(name, None)

    def deliver(self, delivery: Delivery) -> None:
        """Add a delivery to the history."""
        self.delivered.append(delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Nodes do not restart here."""


@dataclass(frozen=True, slots=True)
class Local:
    """A state of one node: its process, clock and armed timers, and all that it has delivered."""

    process: Process
    now: Nanos
    timers: Mapping[str, Nanos]
    history: int


@dataclass(frozen=True, slots=True)
class Step:
    """What an event does to a node: its next state, and the packets it sends."""

    local: int
    sent: tuple[int, ...]
    fault: str | None = None


class World:
    """The nodes of a plan, and all the states in which they have been seen."""

    def __init__(self, plan: Plan, clocks: Mapping[NodeId, Nanos]) -> None:
        self.plan = plan
        self.locals: list[Local] = []
        self.events: list[Event] = []
        self.histories: list[History] = [()]
        self.executed = 0
        """Steps that the real code took."""
        self._envs = [RecordingEnv(node.id) for node in plan.nodes]
        self._local_ids: dict[bytes, int] = {}
        self._event_ids: dict[Event, int] = {}
        self._history_ids: dict[History, int] = {(): 0}
        self._steps: dict[tuple[int, int], Step] = {}
        self.initial = [self._first(node, clocks.get(node, 0)) for node in range(len(plan.nodes))]

    def event(self, event: Event) -> int:
        """The number of an event."""
        known = self._event_ids.get(event)
        if known is None:
            known = self._event_ids[event] = len(self.events)
            self.events.append(event)
        return known

    def step(self, local: int, event: int) -> Step:
        """What an event does to a node in a state."""
        known = self._steps.get((local, event))
        if known is None:
            known = self._steps[local, event] = self._execute(local, self.events[event])
        return known

    def history(self, local: int) -> History:
        """All that a node in a state has delivered."""
        return self.histories[self.locals[local].history]

    def revive(self, local: int, node: NodeId) -> tuple[RecordingEnv, Process]:
        """A process that goes on from a state without its steps being kept, until the next `step`."""
        state, env = self.locals[local], self._envs[node]
        env.now, env.timers = state.now, dict(state.timers)
        env.sent.clear()
        env.delivered.clear()
        return env, clone(state.process, {})

    def _first(self, node: NodeId, now: Nanos) -> int:
        env = self._envs[node]
        env.now = now
        return self._keep(node, Local(self.plan.nodes[node].factory(env), now, {}, 0))

    def _execute(self, local: int, event: Event) -> Step:
        self.executed += 1
        before, node = self.locals[local], node_of(event)
        process = clone(before.process, {})
        fault = perform(self._envs[node], process, before, event)
        env = self._envs[node]
        history = self._history(before.history, tuple(env.delivered))
        after = self._keep(node, Local(process, env.now, dict(env.timers), history))
        return Step(after, tuple(self.event(packet) for packet in env.sent), fault)

    def _history(self, before: int, news: History) -> int:
        history = self.histories[before] + news
        known = self._history_ids.get(history)
        if known is None:
            known = self._history_ids[history] = len(self.histories)
            self.histories.append(history)
        return known

    def _keep(self, node: NodeId, local: Local) -> int:
        key = fingerprint(node, local.process, local.now, sorted(local.timers.items()), local.history)
        known = self._local_ids.get(key)
        if known is None:
            known = self._local_ids[key] = len(self.locals)
            self.locals.append(local)
        return known


def perform(env: RecordingEnv, process: Process, before: Local, event: Event) -> str | None:
    """Let a process in a state handle an event; `env` holds what it did. Returns what it raised, if so."""
    env.now = before.now
    env.timers = dict(before.timers)
    env.rng.seed(env.me)  # the same at each step, or steps were not repeatable
    env.sent.clear()
    env.delivered.clear()
    try:
        match event:
            case Packet():
                process.on_message(event.source, event.message)
            case Timer():
                env.now = max(env.now, env.timers.pop(event.name))
                process.on_timer(event.name)
            case Jump():
                env.now += event.by
            case Boot():
                process.on_start({})
            case Submission():
                assert isinstance(process, Member), f"node {event.node} does not send"
                assert process.submit(event.groups, event.payload), f"node {event.node} takes no messages"
    except Exception as error:
        return exception_text(error)
    return None
