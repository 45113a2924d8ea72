"""The search through all interleavings of a case, breadth first, each state once.

A state of the whole is the states of all nodes, the packets in flight, and what is left of the budgets of
timers, clocks and copies. Interleavings that lead to the same state, as those do that differ in the order of
events at different nodes, are one from there on. Being breadth first, the first fault found is one of the
shortest way.
"""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ordercast.core import LocalError, NodeId
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_closing import close
from ordercast.lab.model.explorer_text import describe, name
from ordercast.lab.model.explorer_world import Boot, History, Jump, Packet, Timer, World, node_of

PROLOGUE_MAX = 1000
_ARRIVAL, _UNLIMITED = 0, -1
"""In the place of a budget: the packet that arrives is used up, or nothing is."""
_KEPT = 1 << 32
"""Added to a packet's number in the record of a way: it arrived, and a copy is still under way."""

Move: TypeAlias = tuple[int, NodeId, int, int]
"""The record of an event, its node, its number, and the place of its budget."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a search."""

    states: int
    transitions: int
    executed: int
    """Number of steps of the real code; all other transitions were combined from them."""
    endings: int
    """Number of ends that were checked, from different states."""
    fault: str | None
    """The first fault."""
    steps: tuple[str, ...] = ()
    """The steps that lead to the fault."""
    complete: bool = True


class Search:
    """One case, explored."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.world = World(case.plan, case.clocks)
        self._nodes = len(case.plan.nodes)
        self._free: list[tuple[int, NodeId, str | None, int]] = []
        """Events that no packet brings: the place of their budget in a state, node, timer, and number."""
        budgets = [*case.timers.values(), *(1 for _ in case.jumps), case.copies]
        limited: list[Timer | Jump] = [*case.timers, *case.jumps]
        for place, event in enumerate(limited, self._nodes):
            self._free.append((place, event.node, getattr(event, "name", None), self.world.event(event)))
        for timer in case.always:
            self._free.append((_UNLIMITED, timer.node, timer.name, self.world.event(timer)))
        self._copies = self._nodes + len(budgets) - 1
        self._base = self._nodes + len(budgets)
        """Where the packets begin in a state."""
        self._budgets = budgets
        self._fades: dict[int, bool] = {}
        self._judged: dict[tuple[int, int, int, int], str | None] = {}
        self._closed: set[bytes] = set()
        self._states: list[bytes] = []
        self._ways = array("q")
        """Of each state: the one before, and what happened then."""
        self._known: dict[bytes, int] = {}
        self._transitions = 0

    def run(self) -> Outcome:
        """Explore everything, or up to the first fault."""
        start = self._prologue()
        self._visit(start, -1, -1)
        index = 0
        while index < len(self._states):
            if len(self._states) > self.case.states_max:
                return self._outcome(
                    f"more than {self.case.states_max} states: the exploration is not complete", None
                )
            state = array("I", self._states[index]).tolist()
            fault = self._end(state)
            if fault is not None:
                return self._outcome(fault, index, "all packets in flight are lost, and time goes on")
            for move in self._enabled(state):
                self._transitions += 1
                fault = self._take(state, index, move)
                if fault is not None:
                    return self._outcome(fault, index, self._describe(move[0]))
            index += 1
        return self._outcome(None, None)

    def reached(self) -> frozenset[tuple[History, ...]]:
        """The histories of all nodes, in each state that was found."""
        locals_, histories = self.world.locals, self.world.histories
        heads = {tuple(array("I", state)[: self._nodes]) for state in self._states}
        ids = {tuple(locals_[local].history for local in head) for head in heads}
        return frozenset(tuple(histories[history] for history in head) for head in ids)

    def _enabled(self, state: list[int]) -> list[Move]:
        """What can happen next."""
        moves = [*self._arrivals(state), *self._free_moves(state)]
        for node in self.case.leading:
            own = [move for move in moves if move[1] == node]
            if own:
                return own
        return moves

    def _arrivals(self, state: list[int]) -> Iterator[Move]:
        last = -1
        for packet in state[self._base :]:
            if packet != last:  # copies of a packet are alike
                last = packet
                to = self._to(packet)
                yield packet, to, packet, _ARRIVAL
                if state[self._copies]:
                    yield packet + _KEPT, to, packet, self._copies

    def _free_moves(self, state: list[int]) -> Iterator[Move]:
        locals_ = self.world.locals
        for place, node, timer, event in self._free:
            left = place == _UNLIMITED or state[place] > 0
            if left and (timer is None or timer in locals_[state[node]].timers):
                yield event, node, event, place

    def _take(self, state: list[int], index: int, move: Move) -> str | None:
        action, node, event, budget = move
        head, packets = state[: self._base], state[self._base :]
        if budget == _ARRIVAL:
            packets.remove(event)
        elif budget != _UNLIMITED:
            head[budget] -= 1
        before = self.world.locals[head[node]].history
        fault = self._apply(head, packets, node, event)
        if fault is not None:
            return fault
        packets.sort()
        new = self._visit(array("I", head + packets).tobytes(), index, action)
        if new and self.world.locals[head[node]].history != before:
            return self._judge(head, node)
        return None

    def _apply(self, head: list[int], packets: list[int], node: int, event: int) -> str | None:
        """Let an event happen, and at once what follows from it at prompt nodes."""
        step = self.world.step(head[node], event)
        if step.fault is not None:
            return f"node {node}: {step.fault}"
        if step.local != head[node]:
            head[node] = step.local
            packets[:] = [
                packet for packet in packets if self._to(packet) != node or self._matters(head, packet)
            ]
        for packet in step.sent:
            to = self._to(packet)
            if to in self.case.prompt:
                fault = self._apply(head, packets, to, packet)
                if fault is not None:
                    return fault
            elif to not in self.case.deaf and self._matters(head, packet):
                packets.append(packet)
        return None

    def _to(self, event: int) -> NodeId:
        return node_of(self.world.events[event])

    def _matters(self, head: list[int], packet: int) -> bool:
        """False if a packet changes nothing now and will never change anything."""
        fades = self._fades.get(packet)
        if fades is None:
            arriving = self.world.events[packet]
            assert isinstance(arriving, Packet)
            fades = self._fades[packet] = self.case.properties.fades(arriving)
        if not fades:
            return True
        local = head[self._to(packet)]
        step = self.world.step(local, packet)
        return step.local != local or bool(step.sent)

    def _visit(self, state: bytes, before: int, action: int) -> bool:
        if state in self._known:
            return False
        self._known[state] = len(self._states)
        self._states.append(state)
        self._ways.append(before)
        self._ways.append(action)
        return True

    def _judge(self, head: list[int], node: int) -> str | None:
        """Hold the history of a node, which has grown, to the properties, alone and with all others."""
        world, properties = self.world, self.case.properties
        own = world.locals[head[node]].history
        for other in range(self._nodes):
            history = world.locals[head[other]].history
            if history == 0:
                continue
            key = (node, own, other, history)
            if key not in self._judged:
                if other == node:
                    fault = properties.alone(node, world.histories[own])
                else:
                    fault = properties.together(node, world.histories[own], other, world.histories[history])
                self._judged[key] = fault
            if self._judged[key] is not None:
                return self._judged[key]
        return None

    def _end(self, state: list[int]) -> str | None:
        if len(state) - self._base > self.case.losses:
            return None
        key = array("I", state[: self._nodes]).tobytes()
        if key in self._closed:
            return None
        self._closed.add(key)
        return close(self.world, state[: self._nodes], self.case.properties)

    def _prologue(self) -> bytes:
        """Start the nodes and let them settle; then the packets of the case are under way."""
        late = self.case.late
        head = list(self.world.initial)
        self._start(head, [node for node in range(self._nodes) if node not in late])
        packets: list[int] = []
        for submission in self.case.submissions:
            packets += self._prepare(head, self.world.event(submission))
        for packet in self.case.packets:
            number = self.world.event(packet)
            packets += self._prepare(head, number) if packet.to in self.case.prompt else [number]
        for node in late:
            packets += self._start_late(head, node)
        return array("I", head + self._budgets + sorted(packets)).tobytes()

    def _start(self, head: list[int], nodes: Sequence[NodeId]) -> None:
        """Start all, and then let all packets arrive, in the order in which they were sent."""
        flying = deque(self.world.event(Boot(node)) for node in nodes)
        for _ in range(PROLOGUE_MAX):
            if not flying:
                return
            event = flying.popleft()
            node = self._to(event)
            if node not in nodes:
                continue  # it is not there yet
            step = self.world.step(head[node], event)
            if step.fault is not None:
                raise LocalError(f"{self.case.name}: node {node} failed when it started: {step.fault}")
            head[node] = step.local
            flying += step.sent
        raise LocalError(f"{self.case.name}: the nodes do not settle after they have started")

    def _start_late(self, head: list[int], node: NodeId) -> list[int]:
        """Start a node, up to where it has its answers; what others are told of it is under way."""
        packets: list[int] = []
        for packet in self._prepare(head, self.world.event(Boot(node))):
            if self._to(packet) != node:
                packets.append(packet)
                continue
            for said in self._prepare(head, packet):
                packets += [said] if self.case.greeting else self._prepare(head, said)
        return packets

    def _prepare(self, head: list[int], event: int) -> list[int]:
        """Let an event happen before the exploration begins; returns the packets that it sets under way."""
        packets: list[int] = []
        fault = self._apply(head, packets, self._to(event), event)
        if fault is not None:
            raise LocalError(f"{self.case.name}: before the exploration, {fault}")
        return packets

    def _outcome(self, fault: str | None, index: int | None, last: str = "") -> Outcome:
        steps = (*self._way(index), last) if index is not None else ()
        complete = fault is None or index is not None
        return Outcome(
            len(self._states),
            self._transitions,
            self.world.executed,
            len(self._closed),
            fault,
            steps,
            complete,
        )

    def _way(self, index: int) -> list[str]:
        """The steps from the start to a state, in words."""
        indices = []
        while index >= 0:
            indices.append(index)
            index = self._ways[2 * index]
        return [self._step_words(at) for at in reversed(indices[:-1])]

    def _step_words(self, index: int) -> str:
        """What led to a state, and what was delivered then."""
        before, action = self._ways[2 * index], self._ways[2 * index + 1]
        node = node_of(self.world.events[action % _KEPT])
        old, new = (self.world.history(array("I", self._states[at])[node]) for at in (before, index))
        return self._describe(action) + "".join(f"; delivers {name(item)}" for item in new[len(old) :])

    def _describe(self, action: int) -> str:
        event = self.world.events[action % _KEPT]
        return describe(event, self.case.plan) + (" (and a copy is under way)" if action >= _KEPT else "")
