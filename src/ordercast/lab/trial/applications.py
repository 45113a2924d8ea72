"""The applications of a live host in a trial, where the protocol brings their states to newcomers.

The state of each is a tally of what it was handed of each group, as in the simulator. A host that is killed
loses it.
"""

import asyncio
from functools import partial

from ordercast.core import GroupId, NodeId, State, StateWanted
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.trace import TALLY
from ordercast.trace.tally import Tally, unpack_tally


class LiveApplications:
    """The tallies of the nodes of one host."""

    def __init__(self, live: LiveHost) -> None:
        self._live = live
        self._tallies: dict[tuple[NodeId, GroupId], Tally] = {}
        if live.plan.guarantees.state_transfer:
            for node in live.nodes:
                live.add_listener(node, partial(self._on_delivery, node))

    def _on_delivery(self, node: NodeId, delivered: BundleOrNotice) -> None:
        if isinstance(delivered, DeliveredBundle):
            self._add(node, delivered)
        elif isinstance(delivered, StateWanted):
            data = self._of(node, delivered.group).pack()
            give = partial(self._live.give_state, node, delivered, data, TALLY)
            asyncio.get_running_loop().call_soon(give)
        elif isinstance(delivered, State):
            self._tallies[node, delivered.group] = unpack_tally(delivered.data)

    def _add(self, node: NodeId, delivered: DeliveredBundle) -> None:
        first, _, payloads = delivered.bundle
        for group in delivered.delivery.groups:
            for message in range(first, first + len(payloads)):
                self._of(node, group).add(message)

    def _of(self, node: NodeId, group: GroupId) -> Tally:
        return self._tallies.setdefault((node, group), Tally())
