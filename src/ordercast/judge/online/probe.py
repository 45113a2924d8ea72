"""Probe: what is submitted after all faults are over is delivered by everybody who is up.

At the end of a run that is judged for liveness, when everything has settled on a good network, each sender
that is up submits a message to each group. Nothing is lost any more, so each receiver of the group that is up
delivers it in order, whatever happened before. A notification of its drop does not count. A state of a
service that another replica gave counts, if the probe is in it.
"""

from ordercast.core import Groups, MessageId, NodeId
from ordercast.judge.finding import message_at, nodes_named
from ordercast.judge.online.case import Case, Handler
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.population import Population
from ordercast.judge.online.restored import Restored
from ordercast.trace import ORDERED, PROBE, Event, Kind


class Probes(Oracle):
    """Each probe is delivered by each of its receivers that is up."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._probes: dict[MessageId, Event] = {}
        self._delivered: dict[MessageId, dict[NodeId, Event]] = {}
        self._restored = Restored()
        self._population = Population()
        self._members = case.members

    def handlers(self) -> dict[Kind, Handler]:
        """Submissions, deliveries, crashes and recoveries."""
        delivered: dict[Kind, Handler] = dict.fromkeys(ORDERED, self._on_deliver)
        return {
            **delivered,
            Kind.SUBMIT: self._on_submit,
            Kind.CHECKPOINT: self._restored.on_checkpoint,
            Kind.CRASH: self._population.on_crash,
            Kind.RECOVER: self._population.on_recover,
        }

    def _on_submit(self, event: Event) -> None:
        if event.label == PROBE and event.message is not None:
            self._probes[event.message] = event

    def _on_deliver(self, event: Event) -> None:
        if event.message in self._probes:
            self._delivered.setdefault(event.message, {})[event.node] = event

    def finish(self) -> None:
        """Look for probes that are missing somewhere, or for a run without any."""
        for message, event in self._probes.items():
            came = self._delivered.get(message, {})
            missing = [node for node in self._receivers(event.groups or ()) if not self._has(node, came)]
            if missing:
                self.report(
                    (event.node, *missing),
                    (message,),
                    (event.time_ns,),
                    f"node {event.node} submitted the probe {message_at(message, event.time_ns)} after all"
                    f" faults were over, but {nodes_named(missing)} never delivered it",
                    at_end=True,
                )

    def _has(self, node: NodeId, came: dict[NodeId, Event]) -> bool:
        """Whether a receiver delivered a probe that came to these, or has a state that stands for it."""
        return node in came or any(self._restored.covers(node, delivery) for delivery in came.values())

    def _receivers(self, groups: Groups) -> list[NodeId]:
        return sorted(self._members.addressed(groups) - self._population.down)
