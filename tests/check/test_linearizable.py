"""Linearizable: the places of operations explain the times of all answers."""

import msgspec
import pytest

from ordercast.core import Consistency, message_id
from ordercast.trace import READ, Kind
from tests.check.service_traces import REPLICATED, ServiceTrace


def test_operations_that_overlap_may_have_any_order() -> None:
    trace = ServiceTrace()
    one, other = trace.call(3), trace.call(4)
    trace.execute(other, 1)
    trace.execute(one, 2)
    trace.reply(one, 2)
    trace.reply(other, 1)
    trace.clean()


def test_an_operation_does_not_go_before_one_that_was_answered_before_it_began() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.reply(one, 2)
    other = trace.call(4)
    trace.execute(other, 1)
    trace.execute(one, 2)
    trace.reply(other, 1)
    found = trace.only("linearizable")
    assert found.nodes == (3, 4) and found.messages == (one, other)
    assert found.times_ns == (2000, 3000)


def test_an_operation_without_an_answer_counts_from_its_invocation() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.reply(one, 2)
    other = trace.call(4)
    trace.execute(other, 1)
    trace.execute(one, 2)
    trace.only("linearizable")


def test_an_answer_at_the_instant_of_an_invocation_overlaps_it() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.reply(one, 2)
    trace.time_ns -= 1000
    other = trace.call(4)
    trace.execute(other, 1)
    trace.execute(one, 2)
    trace.reply(other, 1)
    trace.clean()


def test_a_read_may_stand_behind_any_place_that_it_overlaps() -> None:
    trace = ServiceTrace()
    read = trace.read(4)
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.reply(read, None)
    trace.clean()


def test_a_stale_read() -> None:
    trace = ServiceTrace()
    one, two = trace.call(3), trace.call(3)
    trace.execute(one, 1)
    trace.execute(two, 2)
    trace.reply(one, 1)
    trace.reply(two, 2)
    read = trace.read(4)
    trace.reply(read, 1)
    found = trace.only("linearizable")
    assert found.nodes == (3, 4) and found.messages == (two, read)


def test_a_read_from_before_everything_is_stale_too() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.reply(trace.read(4), None)
    trace.only("linearizable")


def test_a_read_of_what_is_called_later() -> None:
    trace = ServiceTrace()
    read = trace.read(4)
    trace.reply(read, 1)
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    found = trace.only("linearizable")
    assert found.messages == (read, one)


def test_reads_of_one_place_may_stand_in_any_order() -> None:
    trace = ServiceTrace()
    for _ in range(3):
        trace.reply(trace.read(4), None)
    trace.clean()


def test_two_reads_do_not_go_back() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    first = trace.read(4)
    trace.reply(first, 1)
    second = trace.read(4)
    trace.reply(second, None)
    trace.reply(one, 1)
    found = trace.only("linearizable")
    assert found.messages == (first, second)


def test_operations_of_one_bundle_follow_each_other_by_their_names() -> None:
    trace = ServiceTrace()
    one, two = trace.call(3), trace.call(3)
    trace.execute(one, 1)
    trace.execute(two, 1)
    trace.reply(one, 1)
    trace.reply(two, 1)
    trace.clean()


def test_an_answer_names_the_place_of_the_delivery() -> None:
    trace = ServiceTrace()
    one = trace.call()
    trace.execute(one, 1)
    trace.reply(one, 2, replica=1)
    found = trace.only("linearizable")
    assert found.nodes == (3, 1, 0) and found.messages == (one,)


def test_an_answer_without_a_place() -> None:
    trace = ServiceTrace(complete=False)
    trace.reply(trace.call(), None)
    trace.only("linearizable")


def test_what_was_answered_is_delivered_at_the_end() -> None:
    for complete in (True, False):
        trace = ServiceTrace(complete=complete)
        one = trace.call()
        trace.reply(one, 1, replica=2)
        if complete:
            found = next(found for found in trace.judge() if found.property == "linearizable")
            assert found.nodes == (3, 2) and found.messages == (one,)
        else:
            trace.clean()


def test_an_answer_that_nobody_asked_for() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.row(4, Kind.REPLY, message=one, groups=(0,), peer=0, stamp_clock=1, stamp_issuer=0)
    trace.row(4, Kind.REPLY, message=message_id(4, 77), groups=(0,), peer=0, stamp_clock=1, stamp_issuer=0)
    found = trace.only("linearizable", 2)
    assert found.nodes == (4, 0) and found.messages == (one,)


@pytest.mark.parametrize("fields", [{"label": READ}, {"groups": (1,)}, {"groups": None}])
def test_an_answer_to_another_question(fields: dict[str, object]) -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.events[-1] = trace.events[-1]._replace(**fields)  # type: ignore[arg-type]
    trace.only("linearizable")


def test_an_answer_before_its_question() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.events[-1] = trace.events[-1]._replace(time_ns=500, clock_ns=500)
    assert {found.property for found in trace.judge()} == {"clock", "linearizable"}


def test_an_answer_that_comes_again_is_the_same() -> None:
    trace = ServiceTrace()
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 1)
    trace.reply(one, 1)
    trace.clean()
    trace.reply(one, 1, digest=77, replica=2)
    found = trace.only("linearizable")
    assert found.nodes == (3, 2) and found.messages == (one,)


def test_groups_are_services_of_their_own() -> None:
    trace = ServiceTrace(complete=False)
    trace.description = msgspec.structs.replace(trace.description, groups={0: (0,), 1: (1,)})
    one = trace.submit(3, (0,))
    trace.deliver(0, one, stamp_clock=2, stamp_issuer=0)
    trace.reply(one, 2)
    other = trace.submit(4, (1,))
    trace.deliver(1, other, stamp_clock=1, stamp_issuer=1)
    trace.reply(other, 1, groups=(1,), stamp_issuer=1)
    trace.clean()


def test_times_of_different_clocks_are_not_compared() -> None:
    def made(*one_clock: tuple[int, ...]) -> ServiceTrace:
        trace = ServiceTrace(source="live")
        trace.description = msgspec.structs.replace(trace.description, one_clock=one_clock)
        one = trace.call(3)
        trace.reply(one, 2)
        other = trace.call(4)
        trace.execute(other, 1)
        trace.execute(one, 2)
        trace.reply(other, 1)
        return trace

    made().clean()
    made((0, 1, 2, 3)).clean()
    made((0, 1), (3, 4)).only("linearizable")


def test_one_client_keeps_its_own_time_in_a_live_run() -> None:
    trace = ServiceTrace(source="live")
    one = trace.call(3)
    trace.reply(one, 2)
    other = trace.call(3)
    trace.execute(other, 1)
    trace.execute(one, 2)
    trace.reply(other, 1)
    trace.only("linearizable")


def test_nothing_is_judged_that_is_not_promised() -> None:
    trace = ServiceTrace(msgspec.structs.replace(REPLICATED, consistency=Consistency.NONE))
    one = trace.call(3)
    trace.execute(one, 1)
    trace.reply(one, 2)
    trace.clean()
