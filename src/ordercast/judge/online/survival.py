"""Survival: deliveries in a view that the node does not survive bind nobody, unless agreement is uniform.

A member that crashes or is excluded may have delivered, in its last view, what the others deliver later, in
another order, or not at all. It comes back anew and may then deliver such a message again. So, where views
and an order are promised and agreement is not uniform, the deliveries of a node wait before the gate until
the node installs its next view. They are passed on if it goes on to that view, and dropped if the view leaves
it out or begins anew for it. A node that is told that it left with a view which it does not install was left
out too, whatever view it joins later, and so was one that lost its state. At the end of the run, deliveries
in the newest view of a group are passed on.

A node installs the views of all its groups together.
"""

import sys
from collections.abc import Callable

from ordercast.core import ANEW, Agreement, GroupId, Groups, NodeId, Order
from ordercast.trace import ENTERING, LOST, Event, RunDescription

Held = tuple[int, Event]
"""A row and its place in the stream."""


def is_provisional(description: RunDescription) -> bool:
    """Whether deliveries of a run count only if their node survives the view."""
    promised = description.guarantees
    surviving = promised.views and not promised.uniform and promised.agreement is Agreement.ALL
    return surviving and promised.order is not Order.NONE


class Survival:
    """Keeps the deliveries of each node until it is known whether they count."""

    def __init__(self, pass_on: Callable[[int, Event], None]) -> None:
        self._pass_on = pass_on
        self._held: dict[NodeId, list[Held]] = {}
        self._configs: dict[NodeId, int] = {}
        """The view that each node is in, if it is in one."""
        self._groups: dict[NodeId, Groups] = {}
        """The groups of that view."""
        self._newest: dict[GroupId, int] = {}

    def on_row(self, step: int, event: Event) -> None:
        """Keep a delivery, or a notice that the node joined, which comes before its view and after deliveries
        of the view before. What comes outside of views is passed on, to be judged as it is."""
        if event.node in self._configs:
            self._held.setdefault(event.node, []).append((step, event))
        else:
            self._pass_on(step, event)

    def on_view(self, event: Event) -> None:
        """A node installed a view: decide on what it delivered before."""
        node, config = event.node, event.config or 0
        if self._configs.get(node) == config:
            return
        inside = node in (event.members or ())
        self._settle(node, counts=inside and event.label != ANEW)
        for group in event.groups or ():
            self._newest[group] = max(config, self._newest.get(group, config))
        self._configs.pop(node, None)
        if inside:
            self._configs[node], self._groups[node] = config, event.groups or ()

    def on_left(self, event: Event) -> None:
        """A node left: with the view that it is in, or with a later one that it does not install."""
        if (event.config or 0) > self._configs.get(event.node, sys.maxsize):
            self._end(event.node)

    def on_recover(self, event: Event) -> None:
        """A node came back. Without its state it is a new one, and its earlier life did not survive."""
        if event.label == LOST and event.node in self._configs:
            self._end(event.node)

    def finish(self) -> None:
        """No more rows will come."""
        for node in list(self._held):
            newest = max((self._newest[group] for group in self._groups[node]), default=0)
            self._settle(node, counts=self._configs.get(node) == newest)

    def _end(self, node: NodeId) -> None:
        """A node is in its view no longer."""
        self._settle(node, counts=False)
        del self._configs[node]

    def _settle(self, node: NodeId, *, counts: bool) -> None:
        for step, event in self._held.pop(node, ()):
            if counts or event.kind in ENTERING:
                self._pass_on(step, event)
