"""Configurations: what is delivered in a configuration comes after the view that begins it.

If a delivery or a drop notification names a configuration, its node installed the view of that number before,
for one of the groups concerned. The first configuration has no view: its number is 0. A node that recovers
without its state begins with the first configuration again; one that recovers with it goes on. A node that
began the run with state from an earlier run may name any configuration until it installs a view.
"""

from ordercast.core import GroupId, NodeId, format_ns, message_name
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.trace import CARRYING, CONFIGURING, LOST, SETTLING, Event, Kind


class Configurations(Oracle):
    """The configuration of each delivery was installed before."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._installed: dict[NodeId, set[tuple[GroupId, int | None]]] = {
            node.id: set() for node in case.description.nodes
        }
        self._resumed = set(case.description.resumed)
        """Nodes whose configuration is not known yet."""

    def handlers(self) -> dict[Kind, Handler]:
        """Deliveries, notifications, views, and recoveries without state."""
        return {
            **dict.fromkeys((*CARRYING, *SETTLING), self._on_delivery),
            **dict.fromkeys(CONFIGURING, self._on_view),
            Kind.RECOVER: self._on_recover,
        }

    def _on_delivery(self, event: Event) -> None:
        config = event.config
        if not config:
            return
        installed = self._installed[event.node]
        if event.node not in self._resumed and all(
            (group, config) not in installed for group in event.groups or ()
        ):
            self._tell(event)

    def _on_view(self, event: Event) -> None:
        self._resumed.discard(event.node)
        self._installed[event.node].update((group, event.config) for group in event.groups or ())

    def _on_recover(self, event: Event) -> None:
        if event.label == LOST:
            self._resumed.discard(event.node)
            self._installed[event.node].clear()

    def _tell(self, event: Event) -> None:
        messages = () if event.message is None else (event.message,)
        what = " ".join([event.kind, *map(message_name, messages)])
        self.report(
            (event.node,),
            messages,
            (event.time_ns,),
            f"node {event.node} has a row {what} in configuration {event.config} at"
            f" {format_ns(event.time_ns)}, but had not installed that configuration",
        )
