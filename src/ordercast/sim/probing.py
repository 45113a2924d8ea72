"""Probes at the end of a run: does the protocol still deliver what is submitted after all faults?

The network loses, duplicates, delays and reorders nothing any more, and the protocol gets the time in which
it promises to recover. Then each sender that is up submits a message to each group.
"""

from ordercast.core import MILLISECOND, Groups, MessageId, Nanos, NodeId
from ordercast.scenario.conditions import Conditions
from ordercast.sim.world import World
from ordercast.trace import PROBE

STEP: Nanos = 10 * MILLISECOND
"""How often a run looks whether everything has come."""
LINGER: Nanos = 50 * MILLISECOND
"""How long a run goes on after everything is delivered, so that a stray duplicate shows."""


class Probing:
    """Submits the probes, and waits until all receivers that are up have delivered them.

    A probe of a service must be answered, too.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._missing: set[tuple[MessageId, NodeId]] = set()
        world.observers.append(self._on_delivery)
        world.calls.observers.append(self._on_answer)

    def run(self, recovery: Nanos, patience: Nanos) -> None:
        """Probe after the time of recovery; wait for the deliveries no longer than the patience."""
        world = self._world
        world.set_conditions(Conditions())
        world.network.slowed.clear()
        world.network.steady()
        world.run(world.now + recovery)
        self._submit()
        end = world.now + patience
        while self._missing and world.now < end and world.scheduler.pending:
            world.run(world.now + STEP)
        world.run(world.now + LINGER)

    def _submit(self) -> None:
        plan, envs = self._world.plan, self._world.envs
        for sender in plan.senders:
            for group, members in self._world.members.now.items():
                if not members:
                    continue
                message = self._world.submit(sender, (group,), b"probe", PROBE)
                if message is not None:
                    self._missing |= {(message, node) for node in members if envs[node].host.up}
                    if plan.service is not None:
                        self._missing.add((message, sender))

    def _on_answer(self, client: NodeId, message: MessageId) -> None:
        self._missing.discard((message, client))

    def _on_delivery(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        self._missing.discard((message, node))
