"""Rows of side branches are void: all promises hold within the branch that survives, and only there."""

import msgspec
import pytest

from ordercast.core import message_id
from ordercast.trace import Kind, Stretch
from tests.check.branch_traces import FIRST, BranchTrace, is_row, meet, split

VOID = message_id(3, 1)


def test_a_void_operation_may_take_effect_on_the_branch_that_survives() -> None:
    trace = meet(split())
    trace.order(VOID, 13, 1, 0, 1, 2, config=1)
    trace.clean()


def test_what_survives_must_be_delivered_by_all() -> None:
    trace = meet(split())
    trace.order(VOID, 13, 1, 0, 1, config=1)
    assert trace.only("agreement").messages == (VOID,)


def test_an_operation_that_was_not_answered_at_all_is_owed() -> None:
    trace = meet(split())
    trace.description = msgspec.structs.replace(trace.description, service="kv")
    lost = trace.call()
    found = trace.judge()
    assert {(one.property, one.messages) for one in found} == {("validity", (lost,)), ("replies", (lost,))}


def test_the_answers_of_the_branch_that_survives_must_be_its_own() -> None:
    trace = meet(split())
    trace.change(is_row(4, Kind.REPLY), stamp_clock=12)
    trace.only("linearizable")


def test_a_replica_may_deliver_an_operation_again_only_if_the_first_time_is_void() -> None:
    trace = meet(split())
    trace.order(message_id(4, 0), 13, 1, 0, 1, 2, config=1)
    assert {found.property for found in trace.judge()} >= {"integrity"}


def test_a_stale_read_is_void_if_it_has_a_clock_of_its_own() -> None:
    for clock, clean in ((4, True), (2, False)):
        trace = split()
        stale = trace.read(3)
        trace.answer(stale, clock, 0)
        meet(trace)
        if clean:
            trace.clean()
        else:
            assert trace.only("linearizable").nodes == (4, 3)


def test_states_are_compared_on_the_branch_that_survives() -> None:
    trace = split()
    trace.checkpoint(0, 3, digest=1)
    trace.checkpoint(1, 2, digest=2)
    meet(trace).clean()
    trace.checkpoint(2, 2, digest=3)
    trace.only("replica-state")


def test_a_node_may_forget_a_void_life() -> None:
    for label, anew, clean in (("lost", True, True), ("saved", True, True), ("saved", False, False)):
        trace = split()
        trace.crash(0)
        trace.recover(0, label)
        trace.undo(3, 2)
        if not anew:
            trace.install((1, 1), FIRST, 2, 0)
        trace.rejoin(0, 11, (1, 1), FIRST, 2)
        if clean:
            trace.clean()
        else:
            assert trace.only("branches").nodes == (0,)


def test_a_client_forgets_answers_when_it_restarts() -> None:
    trace = meet(split())
    trace.remove(is_row(3, Kind.UNDONE))
    trace.only("branches")
    trace.crash(3)
    trace.recover(3)
    trace.clean()


def test_a_state_of_the_place_at_which_a_view_begins_is_on_the_branch() -> None:
    trace = meet(split())
    trace.install((2, 2), (1, 1), 12, 0, 1, 2)
    trace.crash(2)
    trace.recover(2, "lost")
    trace.rejoin(2, 12, (2, 2), (1, 1), 12)
    trace.serve(4, 21, 2, 0, 1, 2, config=2)
    trace.clean()
    trace.order(trace.call(), 12, 2, 0, config=2)
    assert "branches" in {found.property for found in trace.judge()}, "an operation is behind the beginning"


@pytest.mark.parametrize("heard", [True, False])
def test_what_is_heard_on_a_side_branch_is_progress(heard: bool) -> None:
    trace = split()
    begin = trace.time_ns
    message = trace.call()
    if heard:
        trace.order(message, 4, 0, 0)
    trace.answer(message, 4, 0)
    end = trace.time_ns
    trace.time_ns += 100_000
    meet(trace)
    stretch = Stretch(begin, end + 10_000, 5_000, (3,), (0,))
    trace.description = msgspec.structs.replace(trace.description, stretches=(stretch,))
    if heard:
        trace.clean()
    else:
        assert trace.only("progress").nodes == (3, 0)


def test_rows_of_nodes_that_are_down_are_found_on_side_branches_too() -> None:
    trace = split()
    trace.crash(0)
    trace.order(trace.call(), 4, 0, 0)
    trace.undo(3, 2)
    trace.call(4)
    found = {one.property for one in trace.judge()}
    assert "lifecycle" in found and "integrity" not in found


def test_other_protocols_keep_all_their_rows() -> None:
    trace = meet(split())
    promised = msgspec.structs.replace(trace.description.guarantees, partition="majority-continues")
    trace.description = msgspec.structs.replace(trace.description, guarantees=promised)
    found = {one.property for one in trace.judge()}
    assert "branches" not in found and found, "the void delivery breaks other promises"


def test_without_a_view_one_issuer_orders_everything() -> None:
    trace = BranchTrace()
    trace.serve(3, 1, 0, 0, 1, 2)
    trace.serve(3, 2, 5, 0, 1, 2)
    assert trace.judge()[0].property == "branches"
