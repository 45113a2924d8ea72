"""The applications of a simulated world, where the protocol brings their states to newcomers.

The state of each is a tally of what it has delivered of each group. An application that is asked for its
state copies it at once, and gives it a little later. A crash ends an application, with all that it has.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ordercast.core import MILLISECOND, GroupId, Groups, MessageId, NodeId, Notice, State, StateWanted
from ordercast.trace.tally import Tally, unpack_tally

if TYPE_CHECKING:
    from ordercast.sim.node_env import NodeEnv
    from ordercast.sim.world import World

THINKING_NS_MAX = 5 * MILLISECOND


class Applications:
    """The tallies of all nodes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(f"{world.seed}/applications")
        self._tallies: dict[tuple[NodeId, GroupId], Tally] = {}
        if world.plan.guarantees.state_transfer:
            world.observers.append(self.on_message)

    def on_message(self, node: NodeId, message: MessageId, groups: Groups) -> None:
        """A node delivered a message."""
        for group in groups:
            self._tallies.setdefault((node, group), Tally()).add(message)

    def on_notice(self, env: NodeEnv, notice: Notice) -> None:
        """A node is asked for its state, or gets one."""
        if isinstance(notice, StateWanted):
            data = self.state_of(env.me, notice.group)
            after = self._rng.randrange(THINKING_NS_MAX)
            self._world.scheduler.after(after, self._give, env, env.host.lives, notice, data)
        elif isinstance(notice, State):
            self._tallies[env.me, notice.group] = unpack_tally(notice.data)

    def state_of(self, node: NodeId, group: GroupId) -> bytes:
        """The state of a group at a node."""
        return self._tallies.get((node, group), Tally()).pack()

    def _give(self, env: NodeEnv, life: int, wanted: StateWanted, data: bytes) -> None:
        if env.host.lives == life:
            env.host.work(0, env.give_state, wanted, data)

    def forget(self, node: NodeId) -> None:
        """The host of a node has crashed."""
        self._tallies = {key: tally for key, tally in self._tallies.items() if key[0] != node}
