"""Calls to several groups have records of their own: all groups of a call must find the same floor."""

from ordercast.components.execution import Call
from ordercast.components.execution.client_table import ClientTable, Executed
from ordercast.core import Groups, MessageId, Stamp, message_id

CLIENT = 5


def name(number: int) -> MessageId:
    return message_id(CLIENT, number)


def call(number: int, floor: int = 1) -> Call:
    return Call(name(number), name(floor), False, b"")


def note(table: ClientTable, number: int, groups: Groups = (), floor: int = 1) -> None:
    record = table.admit(call(number, floor), groups)
    assert record is not None
    table.note(record, name(number), Executed(Stamp(number, 1), b"%d" % number))


def test_a_floor_of_calls_to_one_group_binds_no_calls_to_several() -> None:
    """One group sees a later call before the retry of an earlier one; the other group never sees it. Both
    must take the retry, or none."""
    here, there = ClientTable(), ClientTable()
    note(here, 9, floor=8)
    for table in (here, there):
        assert table.admit(call(3), (0, 1)) is not None
    assert here.admit(call(3)) is None


def test_a_floor_of_calls_to_several_groups_binds_calls_to_the_same() -> None:
    table = ClientTable()
    note(table, 9, (0, 1), floor=8)
    assert table.admit(call(3), (0, 1)) is None
    assert table.admit(call(3), (0, 2)) is not None
    assert table.admit(call(3)) is not None


def test_results_are_found_again_where_they_were_kept() -> None:
    table = ClientTable()
    note(table, 3, (0, 1))
    record = table.admit(call(3), (0, 1))
    assert record is not None
    assert record.results[name(3)].results == b"3"
    other = table.admit(call(3), (0, 2))
    assert other is not None
    assert other.results == {}


def test_what_took_long_is_kept_in_its_record() -> None:
    table = ClientTable()
    assert table.admit(call(3), (0, 1)) is not None
    table.keep(name(3), Executed(Stamp(7, 1), b"late"), (0, 1))
    record = table.admit(call(3), (0, 1))
    assert record is not None
    assert record.results[name(3)] == Executed(Stamp(7, 1), b"late")
    table.admit(call(9, floor=8), (0, 1))
    table.keep(name(3), Executed(Stamp(7, 1), b"late"), (0, 1))
    assert name(3) not in record.results, "its client waits for it no more"


def test_shared_records_are_part_of_the_table() -> None:
    table = ClientTable()
    note(table, 4)
    note(table, 3, (0, 1))
    note(table, 9, (1, 2), floor=8)
    copy = ClientTable.unpack(table.pack(), table.pack_shared())
    assert (copy.pack(), copy.pack_shared()) == (table.pack(), table.pack_shared())
    assert copy.admit(call(3), (1, 2)) is None
    assert copy.admit(call(3), (0, 1)) is not None


def test_tables_pack_alike_whatever_came_first() -> None:
    one, two = ClientTable(), ClientTable()
    for number, groups in ((3, (0, 1)), (4, (1, 2))):
        note(one, number, groups)
    for number, groups in ((4, (1, 2)), (3, (0, 1))):
        note(two, number, groups)
    assert one.pack_shared() == two.pack_shared()
