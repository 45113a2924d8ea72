"""The hash of a trace: the same for the same content, another for any other content."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.trace import SCHEMA, Event, Kind, build_table, trace_hash, write_run
from ordercast.trace.store import find_runs
from tests.trace.events import RANDOM, description, run_of_three

CHANGES: dict[str, object] = {
    "step": 99,
    "position": 99,
    "time_ns": 99,
    "clock_ns": 99,
    "node": 99,
    "kind": "lose",
    "message": 99,
    "groups": [0, 1],
    "numbers": [99],
    "submitted_ns": 99,
    "stamp_clock": 99,
    "stamp_issuer": 99,
    "config": 99,
    "members": [1, 0],
    "peer": 99,
    "size": 99,
    "digest": 99,
    "label": "other",
}
ZEROS: dict[str, object] = {
    "position": 0,
    "message": 0,
    "groups": [],
    "numbers": [],
    "submitted_ns": 0,
    "stamp_clock": 0,
    "stamp_issuer": 0,
    "config": 0,
    "members": [],
    "peer": 0,
    "size": 0,
    "digest": 0,
    "label": "",
}
TABLE = build_table("run", run_of_three())
HASH = trace_hash(TABLE)


def changed(column: str, row: int, value: object) -> pa.Table:
    rows = TABLE.to_pylist()
    assert rows[row][column] != value
    rows[row][column] = value
    return pa.Table.from_pylist(rows, SCHEMA)


def test_a_table_made_again_has_the_same_hash() -> None:
    assert trace_hash(pa.Table.from_pylist(TABLE.to_pylist(), SCHEMA)) == HASH
    assert trace_hash(build_table("run", run_of_three())) == HASH


def test_the_name_of_the_run_does_not_count() -> None:
    assert trace_hash(build_table("another name", run_of_three())) == HASH


@pytest.mark.parametrize("column", [name for name in SCHEMA.names if name != "run"])
@pytest.mark.parametrize("row", [0, 3, 7])
def test_another_value_in_any_column_is_another_hash(column: str, row: int) -> None:
    assert trace_hash(changed(column, row, CHANGES[column])) != HASH


@pytest.mark.parametrize("column", [field.name for field in SCHEMA if field.nullable])
def test_nothing_is_not_zero_and_not_empty(column: str) -> None:
    rows = TABLE.to_pylist()
    nothing, zero = ([{**rows[0], column: value}, *rows[1:]] for value in (None, ZEROS[column]))
    hashes = {trace_hash(pa.Table.from_pylist(each, SCHEMA)) for each in (nothing, zero)}
    assert len(hashes) == 2


def test_the_order_of_rows_counts() -> None:
    swapped = TABLE.take([1, 0, *range(2, len(TABLE))])
    assert trace_hash(swapped) != HASH


def test_a_row_less_is_another_hash() -> None:
    assert trace_hash(TABLE.slice(0, len(TABLE) - 1)) != HASH


def test_list_boundaries_count() -> None:
    one, other = (
        build_table(
            "run", [Event(1, 1, 0, Kind.SUBMIT, groups=first), Event(1, 1, 0, Kind.SUBMIT, groups=rest)]
        )
        for first, rest in (((1, 2), (3,)), ((1,), (2, 3)))
    )
    assert trace_hash(one) != trace_hash(other)


def test_label_boundaries_count() -> None:
    one, other = (
        build_table("run", [Event(1, 1, 0, Kind.VIEW, label=first), Event(1, 1, 0, Kind.VIEW, label=rest)])
        for first, rest in (("a\0b", ""), ("a", "b\0"))
    )
    assert trace_hash(one) != trace_hash(other)


@given(RANDOM, RANDOM)
def test_hashes_are_equal_just_when_the_events_are(one: list[Event], other: list[Event]) -> None:
    hashes = [trace_hash(build_table("run", events)) for events in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


@given(st.lists(st.integers(0, len(TABLE)), max_size=4))
def test_chunks_do_not_count(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(TABLE)]
    parts = [TABLE.slice(begin, end - begin) for begin, end in pairwise(places)]  # some are empty
    assert trace_hash(pa.concat_tables(parts)) == HASH


def test_the_encoding_of_words_does_not_count() -> None:
    plain = TABLE
    for name in ("run", "kind", "label"):
        words = TABLE.column(name).cast(pa.string())
        plain = plain.set_column(plain.column_names.index(name), name, words)
    assert not any(pa.types.is_dictionary(column.type) for column in plain.columns)
    assert trace_hash(plain) == HASH
    other_codes = pa.array(TABLE.column("kind").to_pylist()).dictionary_encode()
    recoded = TABLE.set_column(TABLE.column_names.index("kind"), "kind", other_codes)
    assert trace_hash(recoded) == HASH


@pytest.mark.parametrize("row_group_size", [1, 3, 100])
def test_parquet_gives_the_hash_back(tmp_path: Path, row_group_size: int) -> None:
    pq.write_table(TABLE, tmp_path / "events.parquet", row_group_size=row_group_size)
    assert trace_hash(pq.ParquetFile(tmp_path / "events.parquet").read()) == HASH


def test_a_stored_run_gives_the_hash_back(tmp_path: Path) -> None:
    write_run(tmp_path / "run", description(), TABLE)
    (stored,) = find_runs(tmp_path)
    assert trace_hash(stored.table()) == HASH


def test_a_run_without_events_has_a_hash() -> None:
    assert trace_hash(build_table("run", [])) != HASH
