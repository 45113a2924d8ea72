"""Requests of the applications on a live host to join and to leave groups, and the states that they give."""

from functools import partial

from ordercast.core import GroupId, LocalError, NodeId, Plan, Stateful, StateWanted
from ordercast.kernel.memberships import Memberships, Request
from ordercast.net.host.clock import HostClock
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.nodes import Nodes
from ordercast.net.host.outlet import Outlet
from ordercast.net.host.recording.contract import Recorder
from ordercast.trace import CHANGING, KIND_OF


class MembershipRequests:
    """What the nodes of one host have asked for, until it takes effect."""

    def __init__(
        self, plan: Plan, nodes: Nodes, outlet: Outlet, clock: HostClock, recorder: Recorder | None
    ) -> None:
        self._nodes = nodes
        self._clock = clock
        self._recorder = recorder
        self._of = {node: Memberships(plan, node) for node in nodes.envs}
        for node, own in self._of.items():
            outlet.add_listener(node, partial(_note, own))

    def ask(self, node: NodeId, request: Request, group: GroupId) -> None:
        """Pass a request to the process of a node; `LocalError` if it makes no sense."""
        if node not in self._of:
            raise LocalError(f"node {node} is not on this host")
        receiver = self._of[node].ask(self._nodes.envs[node].process, request, group)
        if self._recorder is not None:
            self._recorder.requested(self._clock.read(), node, request, group)
        self._nodes.call(node, f"a request to {request} group {group}", getattr(receiver, request), group)

    def give_state(self, node: NodeId, wanted: StateWanted, data: bytes, label: str) -> None:
        """Pass a state to the process of a node; `LocalError` if it did not ask for it."""
        process = self._nodes.envs[node].process
        if not isinstance(process, Stateful):
            raise LocalError(
                f"node {node} does not bring states to newcomers: the option application_state is off, or"
                " the protocol has none"
            )
        process.give_state(wanted.group, wanted.config, data)
        if self._recorder is not None:
            self._recorder.gave_state(self._clock.read(), node, wanted, data, label)


def _note(own: Memberships, delivered: BundleOrNotice) -> None:
    if not isinstance(delivered, DeliveredBundle) and KIND_OF[type(delivered)] in CHANGING:
        own.on_effect(delivered.group)
