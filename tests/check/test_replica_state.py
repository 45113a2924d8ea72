"""Replicas have equal states at equal places; clients are told what became of each operation."""

from ordercast.trace import Kind
from tests.check.service_traces import ServiceTrace


def executed(count: int, *nodes: int) -> ServiceTrace:
    """A trace in which some replicas execute some operations."""
    trace = ServiceTrace()
    for place in range(count):
        operation = trace.call()
        trace.execute(operation, place, *nodes)
        trace.reply(operation, place)
    return trace


def test_equal_states_at_equal_places() -> None:
    trace = executed(3)
    for node in range(3):
        trace.checkpoint(node, 2, digest=9)
    trace.checkpoint(0, 1, digest=8)
    trace.clean()


def test_states_that_differ() -> None:
    trace = executed(3)
    trace.checkpoint(0, 2, digest=9)
    trace.checkpoint(2, 2, digest=8)
    found = trace.only("replica-state")
    assert found.nodes == (0, 2) and "group 0" in found.detail


def test_a_state_that_is_taken_over_is_compared_too() -> None:
    trace = executed(3, 0, 1)
    trace.checkpoint(0, 2, digest=9)
    trace.checkpoint(2, 2, digest=8, restored=True)
    assert trace.only("replica-state").nodes == (0, 2)


def test_a_replica_does_not_deliver_what_its_state_stands_for() -> None:
    trace = executed(2, 0, 1)
    late = trace.call()
    trace.execute(late, 2, 0, 1)
    trace.reply(late, 2)
    trace.checkpoint(2, 2, restored=True)
    trace.execute(late, 2, 2)
    found = trace.only("replica-state")
    assert found.nodes == (2,) and found.messages == (late,)


def test_a_state_of_a_later_place_has_its_digest_there() -> None:
    """Its replica delivers the operations between, and the state stands for those before."""
    trace = executed(3, 0, 1)
    trace.checkpoint(0, 1, digest=8)
    trace.checkpoint(0, 2, digest=9)
    trace.checkpoint(2, 1, digest=None, restored=True)
    late = trace.call()
    trace.execute(late, 3, 0, 1, 2)
    trace.reply(late, 3)
    found = trace.only("agreement")
    assert found.nodes == (0, 2) and "2 never delivered it" in found.detail
    trace.checkpoint(2, 2, digest=None, restored=True)
    trace.clean()


def test_a_state_without_a_digest_stands_for_what_is_before_its_place() -> None:
    trace = executed(2, 0, 1)
    late = trace.call()
    trace.execute(late, 2, 0, 1)
    trace.reply(late, 2)
    trace.checkpoint(2, 2, digest=None, restored=True)
    trace.execute(late, 2, 2)
    found = trace.only("replica-state")
    assert found.nodes == (2,) and found.messages == (late,)


def test_a_replica_that_lost_its_state_begins_anew() -> None:
    trace = executed(1, 0, 1)
    late = trace.call()
    trace.execute(late, 1, 0, 1)
    trace.reply(late, 1)
    trace.checkpoint(2, 1, restored=True)
    trace.crash(2)
    trace.recover(2, "lost")
    trace.execute(late, 1, 2)
    trace.clean()


def test_a_client_that_stays_is_answered() -> None:
    trace = ServiceTrace(service="kv")
    one, read = trace.call(3), trace.read(4)
    trace.execute(one, 1)
    found = trace.only("replies", 2)
    assert found.nodes == (3,) and found.messages == (one,)
    trace.reply(read, None)
    trace.reply(one, 1)
    trace.clean()


def test_a_client_is_told_that_an_outcome_is_unknown() -> None:
    trace = ServiceTrace(service="kv")
    one = trace.call(3)
    trace.execute(one, 1)
    trace.row(3, Kind.UNCONFIRMED, message=one, groups=(0,))
    trace.clean()


def test_nobody_owes_an_answer_to_a_client_that_crashed() -> None:
    trace = ServiceTrace(service="kv")
    one = trace.call(3)
    trace.execute(one, 1)
    trace.crash(3)
    trace.recover(3)
    trace.clean()
    two = trace.call(3)
    trace.execute(two, 2)
    assert trace.only("replies").messages == (two,)


def test_only_the_end_of_a_complete_run_shows_that_an_answer_is_missing() -> None:
    trace = ServiceTrace(service="kv", complete=False)
    trace.execute(trace.call(3), 1)
    trace.clean()
