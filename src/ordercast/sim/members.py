"""The members of a simulated world: who is in which group, and who asks to join or to leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core import GroupId, NodeId, Plan
from ordercast.kernel.memberships import Request
from ordercast.trace import ENTERING, Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ordercast.sim.node_env import NodeEnv


class GroupMembers:
    """The receivers of each group, as they have been told; the target of the changes of a scenario."""

    def __init__(self, plan: Plan, envs: Sequence[NodeEnv]) -> None:
        self.now = {group: set(nodes) for group, nodes in plan.groups.items()}
        self.changed = False
        """Whether a receiver has asked to join or to leave a group."""
        self._plan = plan
        self._envs = envs

    def join(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to join a group; nothing happens if its host is down, or it is in the group."""
        self._request(node, "join", group)

    def leave(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to leave a group; nothing happens if its host is down, or it is not in it."""
        self._request(node, "leave", group)

    def _request(self, node: NodeId, request: Request, group: GroupId) -> None:
        env = self._envs[node]
        if env.host.up:
            env.memberships.screen(group)
            self.changed = True
            env.host.work(0, env.request, request, group)

    def on_notice(self, env: NodeEnv, event: Event) -> None:
        """A node was told that it joined or left a group."""
        for group in event.groups or ():
            env.memberships.on_effect(group)
            if event.kind in ENTERING:
                self.now[group].add(env.me)
            else:
                self.now[group].discard(env.me)

    def begin_again(self, node: NodeId) -> None:
        """A node that lost its state is in the groups that it was in at the start."""
        for group, members in self.now.items():
            members.discard(node)
            members.update({node} & set(self._plan.groups[group]))
