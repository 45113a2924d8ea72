"""The log of a replica, apart from it."""

from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.place import LogEntry


def entry(number: int) -> LogEntry:
    return LogEntry(10 * number, 1, number, 51, b"")


def test_another_log_that_begins_later_does_not_undo_what_is_certain() -> None:
    log = SlotLog(keep=4)
    for number in (1, 3, 5):
        log.append(entry(number))
    log.synced = 2
    log.noops = {(1, 2), (1, 4)}
    gone = log.replace_tail([entry(4), entry(5)], [(1, 6)])
    assert [one.number for one in log.entries] == [1, 3, 4, 5]
    assert log.noops == {(1, 2), (1, 6)}, "slot 2 is certain, and slot 4 is filled"
    assert gone == []
