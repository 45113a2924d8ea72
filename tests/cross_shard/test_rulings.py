"""What the coordinator has decided: found or gone, never both, alike for all groups of a message."""

import msgspec
import pytest

from ordercast.components.cross_shard.marks import Lost
from ordercast.components.cross_shard.rulings import Command, Drop, Forget, Rulings, Show, decode, encode
from ordercast.components.network_ordered import LogEntry
from ordercast.core import RemoteError

ENTRY = LogEntry(50, 1, 4, 9, b"both", (0, 2), (4, 7))
FIRST, SECOND = (1, 0, 4), (1, 2, 7)
OTHER = LogEntry(80, 1, 5, 9, b"other", (0,), (5,))


def rulings(*commands: Command) -> Rulings:
    made = Rulings()
    for command in commands:
        made.apply(command)
    return made


def test_nothing_is_decided_at_first() -> None:
    made = rulings()
    assert made.find(FIRST) is None
    assert not made.is_settled(ENTRY)
    assert made.gone(ENTRY) == []


def test_a_message_that_is_shown_is_found_under_all_its_marks() -> None:
    made = rulings(Show(ENTRY))
    assert made.find(FIRST) == made.find(SECOND) == ENTRY
    assert made.is_settled(ENTRY)
    assert made.gone(ENTRY) == []


def test_what_was_found_is_not_dropped() -> None:
    made = rulings(Show(ENTRY), Drop(Lost(SECOND, 60)))
    assert made.find(FIRST) == made.find(SECOND) == ENTRY


def test_what_was_dropped_is_gone_under_all_its_marks_as_soon_as_they_are_known() -> None:
    made = rulings(Drop(Lost(SECOND, 60)))
    assert made.find(SECOND) == Lost(SECOND, 60)
    assert made.find(FIRST) is None, "nobody knows yet that it is the same message"
    assert not made.is_settled(ENTRY)
    made.apply(Show(ENTRY))
    assert made.find(FIRST) == Lost(FIRST, ENTRY.clock)
    assert made.gone(ENTRY) == [Lost(FIRST, ENTRY.clock), Lost(SECOND, ENTRY.clock)]
    assert made.is_settled(ENTRY)


def test_a_drop_keeps_its_bound() -> None:
    made = rulings(Drop(Lost(SECOND, 60)), Drop(Lost(SECOND, 70)))
    assert made.find(SECOND) == Lost(SECOND, 60)


def test_what_is_certain_everywhere_is_forgotten() -> None:
    made = rulings(Show(ENTRY), Show(OTHER), Drop(Lost((2, 1, 1), 50)), Drop(Lost((2, 1, 2), 51)))
    made.apply(Forget(50))
    assert made.forgotten == 50
    assert made.find(FIRST) is None
    assert made.find((2, 1, 1)) is None
    assert made.find((1, 0, 5)) == OTHER
    assert made.find((2, 1, 2)) == Lost((2, 1, 2), 51)
    assert len(made) == 2


@pytest.mark.parametrize("late", [Show(ENTRY), Drop(Lost(FIRST, 50))], ids=["show", "drop"])
def test_what_was_forgotten_is_not_decided_anew(late: Command) -> None:
    made = rulings(Forget(50), late)
    assert made.find(FIRST) is None
    assert len(made) == 0


def test_nothing_is_remembered_again_by_an_older_command() -> None:
    made = rulings(Forget(50), Forget(40))
    assert made.forgotten == 50


def test_a_snapshot_has_everything() -> None:
    made = rulings(Forget(10), Show(ENTRY), Show(OTHER), Drop(Lost((2, 1, 1), 50)))
    copy = rulings(Show(LogEntry(99, 3, 1, 9, b"", (0,), (1,))))
    copy.restore(made.snapshot())
    assert copy.snapshot() == made.snapshot()
    assert copy.find(SECOND) == ENTRY
    assert copy.find((2, 1, 1)) == Lost((2, 1, 1), 50)
    assert copy.find((3, 0, 1)) is None
    assert copy.forgotten == 10
    assert len(copy) == len(made) == 4


def test_snapshots_do_not_depend_on_the_order_of_commands() -> None:
    drop = Drop(Lost((2, 1, 1), 50))
    assert (
        rulings(Show(ENTRY), drop, Show(OTHER)).snapshot()
        == rulings(Show(OTHER), Show(ENTRY), drop).snapshot()
    )


@pytest.mark.parametrize("command", [Show(ENTRY), Drop(Lost(FIRST, 50)), Forget(7)])
def test_commands_survive_the_log(command: Command) -> None:
    assert decode(encode(command)) == command


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode([9, 1]), encode(Forget(1))[:-1]])
def test_what_is_no_command_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteError, match="no such command for the coordinator"):
        decode(data)
