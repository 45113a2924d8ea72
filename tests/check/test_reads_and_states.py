"""Reads are answered and never delivered; who takes over a state does not owe what it stands for."""

import msgspec

from ordercast.scenario.receipts import Receipts, receipts_wanted
from ordercast.trace import PROBE, READ, Stretch
from tests.check.service_traces import ServiceTrace


def test_a_read_is_not_owed() -> None:
    trace = ServiceTrace()
    operation = trace.call()
    trace.execute(operation, 1)
    trace.reply(operation, 1)
    read = trace.read()
    trace.reply(read, 1)
    trace.clean()


def test_the_delivery_of_a_read_breaks_integrity() -> None:
    trace = ServiceTrace()
    read = trace.read()
    trace.execute(read, 1, 1)
    trace.reply(read, None)
    found = trace.only("integrity")
    assert found.nodes == (1,) and found.messages == (read,)


def test_a_read_that_is_submitted_again_breaks_integrity() -> None:
    trace = ServiceTrace()
    read = trace.read()
    trace.reply(read, None)
    trace.events.append(trace.events[0]._replace(time_ns=9000, clock_ns=9000))
    trace.only("integrity")


def test_silence_after_a_read_is_no_lack_of_progress() -> None:
    trace = ServiceTrace()
    stretch = Stretch(0, 10**9, 1000, (3, 4), (0, 1, 2))
    trace.description = msgspec.structs.replace(trace.description, stretches=(stretch,))
    trace.reply(trace.read(), None)
    trace.clean()
    operation = trace.call()
    trace.time_ns += 10_000
    trace.execute(operation, 1)
    trace.reply(operation, 1)
    trace.only("progress", 3)


def test_a_state_is_progress() -> None:
    trace = ServiceTrace()
    stretch = Stretch(0, 10**9, 10_000, (3, 4), (0, 1, 2))
    trace.description = msgspec.structs.replace(trace.description, stretches=(stretch,))
    operation = trace.call()
    trace.execute(operation, 1, 0, 1)
    trace.checkpoint(2, 1, restored=True)
    trace.reply(operation, 1)
    trace.clean()


def test_a_replica_owes_only_what_its_state_does_not_stand_for() -> None:
    trace = ServiceTrace()
    operations = [trace.call() for _ in range(3)]
    for place, operation in enumerate(operations):
        trace.execute(operation, place, 0, 1)
        trace.reply(operation, place)
    trace.checkpoint(2, 1, restored=True)
    found = trace.only("agreement")
    assert found.nodes == (0, 2) and found.messages == (operations[2],)
    trace.execute(operations[2], 2, 2)
    trace.clean()


def test_a_checkpoint_of_its_own_excuses_nothing() -> None:
    trace = ServiceTrace()
    operation = trace.call()
    trace.execute(operation, 1, 0, 1)
    trace.reply(operation, 1)
    trace.checkpoint(2, 1)
    trace.only("agreement")


def test_an_operation_that_nobody_delivered_is_owed_in_spite_of_a_state() -> None:
    trace = ServiceTrace()
    operation = trace.call()
    trace.checkpoint(2, 9, restored=True)
    found = trace.only("validity")
    assert found.messages == (operation,)


def test_a_state_may_stand_for_a_probe() -> None:
    trace = ServiceTrace()
    trace.description = msgspec.structs.replace(trace.description, probed=True)
    probe = trace.call()
    trace.events[-1] = trace.events[-1]._replace(label=PROBE)
    trace.execute(probe, 4, 0, 1)
    trace.reply(probe, 4, label=None)
    assert {found.property for found in trace.judge()} == {"probe", "agreement"}
    trace.checkpoint(2, 4, restored=True)
    trace.clean()


def test_receipts_count_what_a_state_stands_for() -> None:
    trace = ServiceTrace()
    first, second = trace.call(), trace.call()
    trace.execute(first, 1, 0, 1)
    trace.checkpoint(2, 2, restored=True)
    trace.execute(second, 2, 0, 1)
    receipts = Receipts(replicated=True)
    for event in trace.events:
        receipts.note(event)
    assert len(receipts) == 6


def test_a_read_has_one_receipt_and_an_operation_one_more_than_replicas() -> None:
    assert receipts_wanted(3, READ, serves=True) == 1
    assert receipts_wanted(3, None, serves=True) == 4
    assert receipts_wanted(3, None, serves=False) == 3
