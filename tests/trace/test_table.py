"""Rows to an Arrow table and back."""

import pyarrow as pa
import pytest
from hypothesis import given

from ordercast.core import RemoteError
from ordercast.trace import SCHEMA, Event, Kind, build_table, events_of
from tests.trace.events import RANDOM, run_of_three


@given(RANDOM)
def test_events_survive_the_round_trip(events: list[Event]) -> None:
    table = build_table("run", events)
    assert table.schema == SCHEMA
    assert list(events_of(table)) == events


@given(RANDOM)
def test_step_counts_the_events_of_a_node(events: list[Event]) -> None:
    seen: dict[int, int] = {}
    expected = []
    for event in events:
        expected.append(seen.get(event.node, 0))
        seen[event.node] = expected[-1] + 1
    assert build_table("run", events).column("step").to_pylist() == expected


@given(RANDOM)
def test_position_counts_the_deliveries_of_a_node(events: list[Event]) -> None:
    seen: dict[int, int] = {}
    expected: list[int | None] = []
    for event in events:
        if event.kind is Kind.DELIVER:
            expected.append(seen.get(event.node, 0))
            seen[event.node] = seen.get(event.node, 0) + 1
        else:
            expected.append(None)
    assert build_table("run", events).column("position").to_pylist() == expected


def test_a_message_out_of_order_has_no_position() -> None:
    events = [Event(1, 1, 0, kind) for kind in (Kind.DELIVER, Kind.OUT_OF_ORDER, Kind.DELIVER)]
    assert build_table("run", events).column("position").to_pylist() == [0, None, 1]


def test_every_row_names_its_run() -> None:
    table = build_table("some run", run_of_three())
    assert set(table.column("run").to_pylist()) == {"some run"}


def test_a_run_without_events_is_a_table_without_rows() -> None:
    table = build_table("run", [])
    assert table.schema == SCHEMA
    assert list(events_of(table)) == []


def test_lists_come_back_as_tuples_and_kinds_as_kinds() -> None:
    event = next(events_of(build_table("run", run_of_three())))
    assert event.groups == (0,)
    assert event.kind is Kind.SUBMIT


def test_events_of_a_sliced_and_chunked_table_keep_their_order() -> None:
    table = build_table("run", run_of_three())
    chunked = pa.concat_tables([table.slice(0, 3), table.slice(3, 2), table.slice(5)])
    assert list(events_of(chunked)) == run_of_three()
    assert list(events_of(table.slice(2, 3))) == run_of_three()[2:5]


def test_an_unknown_kind_is_the_writers_fault() -> None:
    table = build_table("run", run_of_three())
    index = table.column_names.index("kind")
    kinds = ["banana", *table.column("kind").to_pylist()[1:]]
    changed = table.set_column(index, "kind", pa.array(kinds))
    with pytest.raises(RemoteError, match="banana"):
        list(events_of(changed))
