"""Who joins or leaves on a side branch: the one has not joined, and the other has left, where its branch left
the one that survives."""

import msgspec

from ordercast.core import Membership, NodeId
from ordercast.trace import Kind
from tests.check.branch_traces import FIRST, BranchTrace, is_row

MOVER: NodeId = 2
"""The replica that joins or leaves."""


class MovingTrace(BranchTrace):
    """Node 2 is in the group at the start, or joins it."""

    def __init__(self, *founders: NodeId) -> None:
        super().__init__()
        promised = msgspec.structs.replace(self.description.guarantees, membership=Membership.VIEWS)
        self.description = msgspec.structs.replace(
            self.description, guarantees=promised, groups={0: founders}, probed=True
        )

    def join(self, clock: int, issuer: int) -> None:
        """Node 2 is told that it has joined."""
        self.row(MOVER, Kind.JOINED, groups=(0,), stamp_clock=clock, stamp_issuer=issuer)

    def leave(self, clock: int, issuer: int) -> None:
        """Node 2 is told that it has left."""
        self.row(MOVER, Kind.LEFT, groups=(0,), stamp_clock=clock, stamp_issuer=issuer)

    def ask(self, kind: Kind) -> None:
        """Node 2 asks to join or to leave."""
        self.row(MOVER, kind, groups=(0,))

    def other_side(self, begin: int) -> None:
        """Node 1 goes on in view 1, which survives."""
        self.install((1, 1), FIRST, begin, 1)
        self.serve(4, 11, 1, 1, config=1)

    def meet(self, begin: int, *nodes: NodeId) -> None:
        """Node 0, client 3 and others are told that what is behind a place is undone; replicas go on."""
        for node in (0, 3, *nodes):
            self.undo(node, begin)
        self.rejoin(0, 11, (1, 1), FIRST, begin)


def joins_twice() -> MovingTrace:
    """Node 2 joins on the side of node 0, and then again on the branch that survives."""
    trace = MovingTrace(0, 1)
    trace.serve(3, 1, 0, 0, 1)
    trace.ask(Kind.JOIN)
    trace.join(2, 0)
    trace.install(FIRST, FIRST, 0, MOVER, anew=True)
    trace.change(is_row(MOVER, Kind.VIEW), stamp_clock=None, numbers=None)
    trace.serve(3, 3, 0, 0, MOVER)
    trace.other_side(1)
    trace.meet(1, MOVER)
    trace.join(12, 1)
    trace.install((1, 1), FIRST, 1, MOVER, anew=True)
    trace.serve(3, 13, 1, 0, 1, MOVER, config=1)
    return trace


def leaves_aside(*sees: NodeId) -> MovingTrace:
    """Node 2 leaves on the side of node 0. Some see the operation before the split."""
    trace = MovingTrace(0, 1, MOVER)
    trace.serve(3, 1, 0, *sees)
    trace.serve(3, 2, 0, 0, MOVER)
    trace.ask(Kind.LEAVE)
    trace.leave(3, 0)
    trace.other_side(1)
    trace.meet(1)
    trace.serve(3, 12, 1, 0, 1, config=1)
    return trace


def test_who_joined_on_a_side_branch_joins_again() -> None:
    joins_twice().clean()


def test_who_joined_on_a_side_branch_has_not_joined() -> None:
    """It is told that its deliveries are undone, and then it must be told again that it has joined."""
    trace = joins_twice()
    trace.events = trace.events[: trace.events.index(next(filter(is_row(0, Kind.VIEW), trace.events))) + 1]
    assert "joining" in {found.property for found in trace.judge()}
    trace = joins_twice()
    trace.remove(is_row(MOVER, Kind.UNDONE))
    assert trace.only("branches").nodes == (MOVER,)


def test_a_newcomer_delivers_from_its_second_place_on() -> None:
    trace = joins_twice()
    trace.remove(lambda event: event.node == MOVER and event.kind is Kind.JOINED and event.stamp_clock == 12)
    assert {found.property for found in trace.judge()} >= {"integrity"}


def test_who_left_on_a_side_branch_has_left_where_that_branch_began() -> None:
    """It is told nothing any more, and owes nothing of the branch that survives behind that place."""
    leaves_aside(0, 1, MOVER).clean()


def test_who_left_on_a_side_branch_owes_what_was_before_it() -> None:
    found = leaves_aside(0, 1).only("agreement")
    assert MOVER in found.nodes


def test_who_was_never_in_the_branch_that_survives_has_not_left_it() -> None:
    """It joined and left on the same side branch."""
    trace = MovingTrace(0, 1)
    trace.serve(3, 1, 0, 0, 1)
    trace.ask(Kind.JOIN)
    trace.join(2, 0)
    trace.serve(3, 3, 0, 0, MOVER)
    trace.ask(Kind.LEAVE)
    trace.leave(4, 0)
    trace.other_side(1)
    trace.meet(1)
    trace.serve(3, 12, 1, 0, 1, config=1)
    trace.clean()
    trace.remove(is_row(MOVER, Kind.LEFT))
    assert "joining" in {found.property for found in trace.judge()}


def test_who_has_left_is_not_missed_in_the_last_view() -> None:
    trace = leaves_aside(0, 1, MOVER)
    trace.remove(is_row(MOVER, Kind.LEFT))
    assert "branches" in {found.property for found in trace.judge()}


def test_who_joined_one_of_two_groups_delivers_for_it() -> None:
    trace = MovingTrace(0)
    trace.description = msgspec.structs.replace(trace.description, groups={0: (0,), 1: (1,)})
    trace.ask(Kind.JOIN)
    trace.join(0, 0)
    trace.install(FIRST, FIRST, 0, MOVER, anew=True)
    trace.serve(3, 1, 0, MOVER)
    assert "linearizable" not in {found.property for found in trace.judge()}
