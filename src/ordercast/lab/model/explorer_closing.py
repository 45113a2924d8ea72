"""The end of a run: no more faults, time goes on, and everything must come to rest.

In each round the clocks that are behind catch up, every armed timer goes off once, and then all packets
arrive, in the order in which they were sent.
This is one schedule of many, but whether a run can end is a question about its state, not about the schedule.
"""

from collections import deque
from collections.abc import Sequence

from ordercast.core import NodeId, exception_text
from ordercast.lab.model.explorer_case import Properties
from ordercast.lab.model.explorer_world import History, Packet, World

ROUNDS_MAX = 60
PACKETS_MAX = 10_000
"""Packets in one round; more would be an endless exchange."""


class Closing:
    """A run from a state of all nodes to its end, step by step."""

    def __init__(self, world: World, locals_: Sequence[int]) -> None:
        self._nodes = [world.revive(local, node) for node, local in enumerate(locals_)]
        self._before = [world.history(local) for local in locals_]
        self._flying: deque[Packet] = deque()
        self.traffic: list[Packet] = []

    def histories(self) -> dict[NodeId, History]:
        """What each node has delivered, from the beginning."""
        return {
            node: before + tuple(env.delivered)
            for node, ((env, _), before) in enumerate(zip(self._nodes, self._before, strict=True))
        }

    def round(self) -> None:
        """Clocks, then timers, then packets."""
        latest = max(env.now for env, _ in self._nodes)
        for env, process in self._nodes:
            env.now = latest
            for name, due in sorted(env.timers.items(), key=lambda timer: (timer[1], timer[0])):
                if env.timers.get(name) == due:
                    env.now = max(env.now, env.timers.pop(name))
                    process.on_timer(name)
        self._collect()
        arrived = 0
        while self._flying:
            packet = self._flying.popleft()
            self._nodes[packet.to][1].on_message(packet.source, packet.message)
            self._collect()
            arrived += 1
            if arrived > PACKETS_MAX:
                raise RuntimeError(f"a round has more than {PACKETS_MAX} packets")

    def _collect(self) -> None:
        for env, _ in self._nodes:
            if env.sent:
                self.traffic += env.sent
                self._flying += env.sent
                env.sent.clear()


def close(world: World, locals_: Sequence[int], properties: Properties) -> str | None:
    """The fault when a run ends from here; None if it settles and all properties hold."""
    closing = Closing(world, locals_)
    lacking: str | None = None
    for _ in range(ROUNDS_MAX):
        try:
            closing.round()
        except Exception as error:
            return exception_text(error)
        histories = closing.histories()
        fault = _judge(histories, properties)
        if fault is not None:
            return fault
        lacking = properties.unsettled(histories, closing.traffic)
        if lacking is None:
            return None
    return f"does not settle in {ROUNDS_MAX} rounds: {lacking}"


def _judge(histories: dict[NodeId, History], properties: Properties) -> str | None:
    spoken = [(node, history) for node, history in histories.items() if history]
    for index, (node, history) in enumerate(spoken):
        fault = properties.alone(node, history)
        for other, second in spoken[:index]:
            fault = fault or properties.together(other, second, node, history)
        if fault is not None:
            return fault
    return None
