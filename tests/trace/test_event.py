"""An event as a line that a person can read."""

from ordercast.core import message_id
from ordercast.trace import Event, Kind
from tests.trace.events import run_of_three


def test_a_delivery_names_message_groups_stamp_and_numbers() -> None:
    line = str(Event(1_250_000, 0, 3, Kind.DELIVER, message_id(4, 17), (0, 2), (5, 6), 0, 8, 1))
    for part in ("1.25 ms", "node 3", "deliver", "4#17", "groups 0,2", "stamp (8, 1)", "numbers 5,6"):
        assert part in line


def test_a_drop_names_the_issuer() -> None:
    assert "issuer 9" in str(Event(1, 1, 0, Kind.DROP, None, (0,), (2,), stamp_issuer=9))


def test_a_view_names_its_members_and_note() -> None:
    line = str(Event(1, 1, 0, Kind.VIEW, None, (0,), config=3, members=(0, 1), label="joined"))
    assert "config 3 members 0,1" in line
    assert line.endswith("joined")


def test_packets_say_from_and_to() -> None:
    assert "to node 7" in str(Event(1, 1, 0, Kind.SEND, peer=7))
    assert "from node 7" in str(Event(1, 1, 0, Kind.RECEIVE, peer=7))


def test_slots_pair_groups_with_numbers() -> None:
    assert Event(1, 1, 0, Kind.DELIVER, groups=(2, 5), numbers=(10, 11)).slots() == ((2, 10), (5, 11))
    assert Event(1, 1, 0, Kind.CRASH).slots() == ()


def test_every_line_is_one_line() -> None:
    assert all("\n" not in str(event) for event in run_of_three())
