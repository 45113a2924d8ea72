"""Bare groups in the simulator: processes that embed view synchrony and remember what it delivered."""

from functools import partial

import msgspec

from ordercast.components.membership import MESSAGES, Seating, ViewOptions, ViewSynchrony
from ordercast.core import (
    MILLISECOND,
    Codec,
    Crashes,
    Delivered,
    Delivery,
    Env,
    Guarantees,
    Node,
    NodeId,
    Plan,
    Stack,
    Unconfirmed,
    View,
)
from ordercast.sim.world import World

GUARANTEES = Guarantees(views=True, crashes=Crashes.MINORITY_OF_ALL)
NODES_MAX = 64
Told = tuple[int, NodeId, bytes]
"""A message as it was delivered: view, sender, payload."""


class GroupNode(Stack):
    """Owns a member; its state is the list of all payloads of the group, sorted."""

    def __init__(self, env: Env, founders: tuple[NodeId, ...], options: ViewOptions) -> None:
        super().__init__(env)
        seating = Seating(dict.fromkeys(founders, (0,)), others=frozenset(range(NODES_MAX)))
        self.state: list[bytes] = []
        self.delivered: list[Told] = []
        self.installed: list[tuple[int, tuple[NodeId, ...], str]] = []
        self.returned: list[bytes] = []
        self.views = self.embed(
            "views",
            lambda inner: ViewSynchrony(inner, 0, seating, options, self._snapshot, self._restore),
            MESSAGES,
        )

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        match delivery:
            case Delivered():
                self.state = sorted([*self.state, delivery.payload])
                self.delivered.append((delivery.config, delivery.sender, delivery.payload))
            case View():
                self.installed.append((delivery.config, delivery.members, delivery.note))
                self.env.deliver(delivery)  # what it had saved before is durable then
            case Unconfirmed():
                self.returned.append(delivery.payload)

    def _snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.state)

    def _restore(self, state: bytes) -> None:
        self.state = msgspec.msgpack.decode(state) if state else []


class GroupWorld:
    """Some nodes, the first of which found a group."""

    def __init__(self, founders: int, others: int = 0, options: ViewOptions | None = None) -> None:
        make = partial(GroupNode, founders=tuple(range(founders)), options=options or ViewOptions())
        nodes = tuple(Node(node, "member", node, make) for node in range(founders + others))
        members = tuple(range(founders + others))
        self.world = World(Plan("group", GUARANTEES, nodes, {0: members}, (), Codec(MESSAGES)), 0)
        self.world.run(0)

    def __getitem__(self, node: NodeId) -> GroupNode:
        process = self.world.envs[node].process
        assert isinstance(process, GroupNode)
        return process

    def run(self, ms: float) -> None:
        """Let so many milliseconds pass."""
        self.world.run(self.world.now + round(ms * MILLISECOND))

    def cut(self, *sides: tuple[NodeId, ...]) -> None:
        """Cut the network between some sides, both ways."""
        pairs = [(a, b) for one in sides for other in sides if one != other for a in one for b in other]
        self.world.cut(pairs)

    def members(self, node: NodeId) -> tuple[NodeId, ...]:
        """The members of the view that a node is in; none if it is in no view."""
        view = self[node].views.view
        return view.members if view is not None else ()
