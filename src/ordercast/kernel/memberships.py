"""Requests of applications to join and to leave groups, checked before the protocol sees them."""

from typing import Literal, TypeAlias

from ordercast.core import GroupId, LocalError, Membership, NodeId, Plan, Process, Receiver

Request: TypeAlias = Literal["join", "leave"]


class Memberships:
    """The requests of one node that have not taken effect yet."""

    __slots__ = ("_asked", "_node", "_plan")

    def __init__(self, plan: Plan, node: NodeId) -> None:
        self._plan = plan
        self._node = node
        self._asked: dict[GroupId, Request] = {}

    def ask(self, process: Process, request: Request, group: GroupId) -> Receiver:
        """Take a request; return the process that must carry it out. `LocalError` if it makes no sense."""
        self.screen(group)
        if not isinstance(process, Receiver):
            raise LocalError(f"node {self._node} ({type(process).__name__}) cannot join or leave groups")
        home = self._plan.homes.get(self._node, group)
        if home != group:
            raise LocalError(f"node {self._node} can only be in group {home}, not in group {group}")
        self._check_turn(process, request, group)
        self._asked[group] = request
        return process

    def _check_turn(self, receiver: Receiver, request: Request, group: GroupId) -> None:
        asked = self._asked.get(group)
        if asked is not None:
            raise LocalError(f"node {self._node} has asked to {asked} group {group} already")
        if request == "join" and group in receiver.joined:
            raise LocalError(f"node {self._node} is in group {group} already")
        if request == "leave" and group not in receiver.joined:
            raise LocalError(f"node {self._node} is not in group {group}, so it cannot leave it")

    def screen(self, group: GroupId) -> None:
        """Raise `LocalError` if nobody can ever join or leave a group."""
        plan = self._plan
        if plan.guarantees.membership is Membership.FIXED:
            raise LocalError(f"the groups of {plan.protocol} are fixed: nobody can join or leave them")
        if group not in plan.groups:
            raise LocalError(f"there is no group {group}; there are: {', '.join(map(str, plan.groups))}")

    def on_effect(self, group: GroupId) -> None:
        """A request took effect: the node is told that it has joined or left a group."""
        self._asked.pop(group, None)

    def forget(self) -> None:
        """The host has crashed: what had not taken effect is forgotten."""
        self._asked.clear()
