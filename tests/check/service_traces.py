"""Tiny traces of a replicated service: three replicas, and two clients."""

import msgspec

from ordercast.core import Agreement, Consistency, Gaps, Guarantees, MessageId, NodeId, Order
from ordercast.trace import READ, RESTORED, Kind
from tests.check.traces import Trace

REPLICATED = Guarantees(
    order=Order.GROUP,
    agreement=Agreement.ALL,
    uniform=True,
    validity=True,
    gaps=Gaps.NEVER,
    groups_max=1,
    consistency=Consistency.LINEARIZABLE,
)
"""What replicated services promise."""

Place = int | None
"""The number of an operation in the order; None is the place before all."""


class ServiceTrace(Trace):
    """Replicas are nodes 0 to 2, clients are nodes 3 and 4."""

    def __init__(
        self,
        guarantees: Guarantees = REPLICATED,
        *,
        complete: bool = True,
        source: str = "simulator",
        service: str = "",
    ) -> None:
        super().__init__(guarantees, complete=complete, source=source)
        self.description = msgspec.structs.replace(self.description, service=service)

    def call(self, client: NodeId = 3) -> MessageId:
        """A client invokes an operation."""
        return self.submit(client)

    def read(self, client: NodeId = 3) -> MessageId:
        """A client invokes a read."""
        message = self.submit(client)
        self.events[-1] = self.events[-1]._replace(label=READ)
        return message

    def execute(self, message: MessageId, place: int, *nodes: NodeId) -> None:
        """Some replicas, or all, deliver an operation at a place."""
        for node in nodes or range(3):
            self.deliver(node, message, stamp_clock=place, stamp_issuer=0)

    def reply(self, message: MessageId, place: Place, *, replica: NodeId = 0, **fields: object) -> None:
        """The client gets an answer."""
        submitted = next(event for event in self.events if event.message == message)
        usual: dict[str, object] = {
            "message": message,
            "groups": (0,),
            "submitted_ns": submitted.submitted_ns,
            "peer": replica,
            "size": 1,
            "digest": message % 89,
            "label": submitted.label,
        }
        if place is not None:
            usual |= {"stamp_clock": place, "stamp_issuer": 0}
        self.row(submitted.node, Kind.REPLY, **(usual | fields))

    def checkpoint(self, node: NodeId, place: int, digest: int | None = 5, *, restored: bool = False) -> None:
        """A replica notes the digest of its state, or takes over one, perhaps of a later place."""
        self.row(
            node,
            Kind.CHECKPOINT,
            groups=(0,),
            size=10 if digest is not None else None,
            digest=digest,
            stamp_clock=place,
            stamp_issuer=0,
            label=RESTORED if restored else None,
        )
