"""Tiny traces of a service that goes on without a majority: three replicas, two clients, and a split."""

from collections.abc import Callable

import msgspec

from ordercast.core import ANEW, MessageId, NodeId, Partition
from ordercast.trace import Event, Kind
from tests.check.service_traces import REPLICATED, ServiceTrace

BRANCHING = msgspec.structs.replace(REPLICATED, partition=Partition.SIDE_BRANCHES_DISCARDED)

Name = tuple[int, int]
"""The number and the precedence of a view."""
FIRST: Name = (0, 0)
"""The view in which the group begins: node 0 is its primary."""


class BranchTrace(ServiceTrace):
    """Replicas are nodes 0 to 2; the primary of a precedence is the rest of its division by 3."""

    def __init__(self, *, complete: bool = True) -> None:
        super().__init__(BRANCHING, complete=complete)

    def order(self, message: MessageId, clock: int, issuer: int, *nodes: NodeId, config: int = 0) -> None:
        """Some replicas deliver an operation that a primary ordered."""
        for node in nodes:
            self.deliver(node, message, stamp_clock=clock, stamp_issuer=issuer, config=config)

    def answer(self, message: MessageId, clock: int, issuer: int) -> None:
        """The client gets an answer of the primary."""
        self.reply(message, clock, replica=issuer % 3, stamp_issuer=issuer)

    def serve(self, client: NodeId, clock: int, issuer: int, *nodes: NodeId, config: int = 0) -> MessageId:
        """A client calls, some replicas deliver the operation, and the primary answers."""
        message = self.call(client)
        self.order(message, clock, issuer, *nodes, config=config)
        self.answer(message, clock, issuer)
        return message

    def install(self, name: Name, before: Name, clock: int, *nodes: NodeId, anew: bool = False) -> None:
        """Some replicas install a view."""
        for node in nodes:
            self.row(
                node,
                Kind.VIEW,
                groups=(0,),
                config=name[0],
                stamp_issuer=name[1],
                stamp_clock=clock,
                numbers=before,
                members=(0, 1, 2),
                label=ANEW if anew else None,
            )

    def undo(self, node: NodeId, clock: int, issuer: int = 0, follows: Name | None = None) -> None:
        """A node is told that all behind a place is undone."""
        self.row(node, Kind.UNDONE, groups=(0,), stamp_clock=clock, stamp_issuer=issuer, numbers=follows)

    def take_state(self, node: NodeId, clock: int, issuer: int) -> None:
        """A replica takes over the state of another one."""
        self.checkpoint(node, clock, restored=True)
        self.events[-1] = self.events[-1]._replace(stamp_issuer=issuer)

    def rejoin(self, node: NodeId, clock: int, name: Name, before: Name, begin: int) -> None:
        """A replica takes over the state at a place of a view, and goes on in the view."""
        self.take_state(node, clock, name[1])
        self.install(name, before, begin, node, anew=True)

    def change(self, wanted: Callable[[Event], bool], **fields: object) -> None:
        """Change the last of the rows that are wanted."""
        row = max(row for row, event in enumerate(self.events) if wanted(event))
        self.events[row] = self.events[row]._replace(**fields)  # type: ignore[arg-type]

    def remove(self, wanted: Callable[[Event], bool]) -> None:
        """Take out the rows that are wanted."""
        kept = [event for event in self.events if not wanted(event)]
        assert len(kept) < len(self.events)
        self.events = kept


def is_row(node: NodeId, kind: Kind) -> Callable[[Event], bool]:
    """Whether an event is of a node and a kind."""
    return lambda event: (event.node, event.kind) == (node, kind)


def split(*, complete: bool = True) -> BranchTrace:
    """Node 0 is cut off behind place 2, and goes on alone; the others go on in view 1, which survives."""
    trace = BranchTrace(complete=complete)
    trace.serve(3, 1, 0, 0, 1, 2)
    trace.serve(4, 2, 0, 0, 1, 2)
    trace.serve(3, 3, 0, 0)
    trace.install((1, 1), FIRST, 2, 1, 2)
    trace.serve(4, 11, 1, 1, 2, config=1)
    return trace


def meet(trace: BranchTrace) -> BranchTrace:
    """Both sides of the split meet again: node 0 and client 3 are told, and all go on."""
    trace.undo(0, 2)
    trace.undo(3, 2)
    trace.rejoin(0, 11, (1, 1), FIRST, 2)
    trace.serve(3, 12, 1, 0, 1, 2, config=1)
    return trace
