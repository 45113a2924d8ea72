"""The ledger of a shard keeps messages to several groups until all of these are certain beyond them."""

import pytest

from ordercast.components.cross_shard.ledger import ShardLedger, end_of, end_payload
from ordercast.components.execution import Executor, pack_call
from ordercast.components.network_ordered import LogEntry, LogPlace
from ordercast.components.network_ordered.log import SlotLog
from ordercast.core import LocalError, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.testing import RecordingEnv

CLIENT = 5


def entry(number: int, groups: tuple[int, ...] = (), numbers: tuple[int, ...] = ()) -> LogEntry:
    """The message with this number in group 0, at clock 10 times the number."""
    first = message_id(CLIENT, number)
    payload = pack_call(0, pack_bundle(first, [0], [b"x"]))
    return LogEntry(10 * number, 1, number, CLIENT, payload, groups, numbers)


BOTH, ALONE, LATER = entry(1, (0, 1), (1, 1)), entry(2), entry(3, (0, 2), (3, 1))
END = LogPlace(30, 1, ((1, 3),))


def ledger() -> ShardLedger:
    """A ledger that has executed two messages to several groups, and one to its own."""
    log = SlotLog(keep=0)
    made = ShardLedger(log, Executor(RecordingEnv(), None), 256, 0, (41,))
    for one in (BOTH, ALONE, LATER):
        log.append(one)
    made.execute(3)
    log.synced = 3
    return made


def rebased() -> ShardLedger:
    """The same, with a log that begins behind them."""
    made = ledger()
    made.rebase(END, made.pack(made.executor.snapshot()))
    return made


def test_a_log_that_begins_later_leaves_messages_to_several_groups() -> None:
    assert rebased().kept == [BOTH, LATER]


@pytest.mark.parametrize(
    ("floors", "kept"),
    [
        ((9, 9, 9), [BOTH, LATER]),
        ((10, 9, 10), [BOTH, LATER]),
        ((10, 10, 0), [LATER]),
        ((0, 10, 30), [BOTH, LATER]),
        ((30, 10, 29), [LATER]),
        ((30, 10, 30), []),
        ((30,), [BOTH, LATER]),
    ],
)
def test_they_are_kept_until_all_of_their_groups_are_beyond(
    floors: tuple[int, ...], kept: list[LogEntry]
) -> None:
    made = rebased()
    made.prune(floors)
    assert made.kept == kept


def test_what_nobody_needs_is_not_kept_when_the_log_begins_later() -> None:
    made = ledger()
    made.prune((10, 10, 10))
    made.rebase(END, made.pack(made.executor.snapshot()))
    assert made.kept == [LATER]


def test_a_state_takes_them_along() -> None:
    donor = ledger()
    state = donor.pack(donor.executor.snapshot())
    taker = ShardLedger(SlotLog(keep=0), Executor(RecordingEnv(), None), 256, 0, (41,))
    taker.restore(END, state)
    assert taker.kept == [BOTH, LATER]
    assert taker.executor.snapshot() == donor.executor.snapshot()
    again = ShardLedger(SlotLog(keep=0), Executor(RecordingEnv(), None), 256, 0, (41,))
    again.restore(END, rebased().pack(donor.executor.snapshot()))
    assert again.kept == [BOTH, LATER], "also those that were before the base of the donor's log"


def test_a_state_brings_nothing_that_is_needed_no_more() -> None:
    donor = ledger()
    taker = ShardLedger(SlotLog(keep=0), Executor(RecordingEnv(), None), 256, 0, (41,))
    taker.prune((20, 20, 20))
    taker.restore(END, donor.pack(donor.executor.snapshot()))
    assert taker.kept == [LATER]


def test_a_state_that_cannot_be_read_changes_nothing() -> None:
    made = rebased()
    with pytest.raises(LocalError, match="the state of a replica cannot be read"):
        made.restore(END, b"\xc1")
    assert made.kept == [BOTH, LATER]


def test_going_back_keeps_the_messages_before_the_base() -> None:
    made = rebased()
    made.roll_back(0)
    assert made.kept == [BOTH, LATER]


def test_the_end_of_a_transaction_has_a_payload_of_its_own() -> None:
    transaction = message_id(CLIENT, 7)
    assert end_of(end_payload(transaction)) == transaction
    assert end_of(BOTH.payload) is None
    assert end_of(b"") is None
    assert end_of(b"x" * len(end_payload(transaction))) is None
