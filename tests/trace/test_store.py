"""Traces on disk: whole or refused, in one line that names the file."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ordercast.core import LocalError, RemoteError
from ordercast.trace import Event, Kind, StoredRun, build_table, events_of, find_runs, trace_hash, write_run
from tests.trace.events import description, run_of_three

TABLE = build_table("hand-1", run_of_three())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one whole run."""
    write_run(tmp_path / "traces" / "hand-1", description(), TABLE)
    return tmp_path / "traces"


def only(root: Path) -> StoredRun:
    (run,) = find_runs(root)
    return run


def complaint(action: Callable[[], object]) -> str:
    with pytest.raises(RemoteError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    return text


def rewrite(folder: Path, table: pa.Table) -> None:
    pq.write_table(table, folder / "hand-1" / "events.parquet")


def test_a_run_comes_back_as_it_was(folder: Path) -> None:
    run = only(folder)
    assert run.description == msgspec.structs.replace(description(), files={"events.parquet": len(TABLE)})
    assert run.table().equals(TABLE)
    assert list(events_of(run.table())) == run_of_three()


def test_a_run_is_found_at_the_folder_itself(folder: Path) -> None:
    assert only(folder / "hand-1").description.run == "hand-1"


def test_runs_come_in_order_of_path(folder: Path) -> None:
    for name in ("b", "a/deep"):
        write_run(folder / name, description(name), TABLE)
    assert [run.description.run for run in find_runs(folder)] == ["a/deep", "b", "hand-1"]


def test_nothing_temporary_is_left(folder: Path) -> None:
    assert sorted(path.name for path in (folder / "hand-1").iterdir()) == ["events.parquet", "run.json"]


def test_the_description_is_written_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ordercast.trace.store.pq.write_table", fail)
    with pytest.raises(LocalError, match="No space left"):
        write_run(folder / "hand-1", description(), TABLE)
    # The old description went first, so that nobody takes the old and new files for one run.
    assert "cut off" in complaint(lambda: list(find_runs(folder)))


def test_a_run_may_be_written_again(folder: Path) -> None:
    shorter = TABLE.slice(0, 2)
    write_run(folder / "hand-1", description(complete=False), shorter)
    assert len(only(folder).table()) == 2
    assert not only(folder).description.complete


def test_a_run_that_cannot_be_written_is_the_callers_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LocalError, match="cannot write the trace"):
        write_run(tmp_path / "file", description(), TABLE)


def test_events_without_a_description_are_a_run_cut_off(folder: Path) -> None:
    (folder / "hand-1" / "run.json").unlink()
    assert f"{folder / 'hand-1'}: has events, but no run.json" in complaint(lambda: list(find_runs(folder)))


def test_a_description_without_events_is_refused(folder: Path) -> None:
    (folder / "hand-1" / "events.parquet").unlink()
    assert "no Parquet file" in complaint(only(folder).table)


def test_a_missing_folder_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="no such folder"):
        list(find_runs(tmp_path / "nowhere"))


def test_a_folder_without_traces_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"no trace there \(no run\.json"):
        list(find_runs(tmp_path))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused_by_name(folder: Path, share: float) -> None:
    path = folder / "hand-1" / "events.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert complaint(only(folder).table).startswith(f"{path}: not a readable Parquet file")


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mangled_file_is_read_or_refused(folder: Path, data: st.DataObject) -> None:
    write_run(folder / "hand-1", description(), TABLE)
    path = folder / "hand-1" / "events.parquet"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        list(events_of(only(folder).table()))
    except RemoteError as error:
        assert "\n" not in str(error)


def test_a_file_whose_names_are_no_text_is_refused(folder: Path) -> None:
    path = folder / "hand-1" / "events.parquet"
    path.write_bytes(path.read_bytes().replace(b"submitted_ns", b"\x80ubmitted_ns"))
    assert complaint(only(folder).table).startswith(f"{path}: not a readable Parquet file")


def test_a_word_that_is_no_text_is_refused(folder: Path) -> None:
    buffers = pa.array(["joined"] * len(TABLE)).buffers()
    mangled = pa.py_buffer(buffers[2].to_pybytes().replace(b"j", b"\xff"))
    words = pa.StringArray.from_buffers(len(TABLE), buffers[1], mangled)
    rewrite(folder, TABLE.set_column(TABLE.column_names.index("label"), "label", words))
    assert "not a readable Parquet file" in complaint(only(folder).table)


@pytest.mark.parametrize("column", ["message", "kind", "groups"])
def test_a_missing_column_is_named(folder: Path, column: str) -> None:
    rewrite(folder, TABLE.drop_columns([column]))
    assert complaint(only(folder).table).endswith(f"events.parquet: no column {column}")


def test_a_column_more_does_no_harm(folder: Path) -> None:
    rewrite(folder, TABLE.append_column("comment", pa.array(["x"] * len(TABLE))))
    assert only(folder).table().equals(TABLE)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("message", pa.array(["text"] * len(TABLE))),
        ("time_ns", pa.array([1.5] * len(TABLE))),
        ("node", pa.array([1 << 40] * len(TABLE))),
        ("groups", pa.array([3] * len(TABLE))),
        ("kind", pa.array([3] * len(TABLE))),
        ("time_ns", pa.array([None] * len(TABLE), pa.int64())),
    ],
    ids=["text for number", "fraction", "too large", "no list", "number for word", "null"],
)
def test_a_wrong_type_is_refused(folder: Path, column: str, values: pa.Array) -> None:
    rewrite(folder, TABLE.set_column(TABLE.column_names.index(column), column, values))
    assert re.search(r"events\.parquet: column \w+ has the wrong type", complaint(only(folder).table))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99}, "has format 99, but this version reads format 1"),
        ({"nodes": 3}, "not a description of a run"),
        ({"guarantees": {"order": "sideways"}}, "not a description of a run"),
        ({"complete": None}, "not a description of a run"),
    ],
)
def test_a_description_that_is_not_ours_is_refused(
    folder: Path, change: dict[str, object], said: str
) -> None:
    path = folder / "hand-1" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    found = complaint(lambda: list(find_runs(folder)))
    assert found.startswith(str(path))
    assert said in found


def test_a_description_that_is_not_json_is_refused(folder: Path) -> None:
    path = folder / "hand-1" / "run.json"
    for content in (b"", b"{", b"\xff\xfe", b"[]"):
        path.write_bytes(content)
        assert complaint(lambda: list(find_runs(folder))).startswith(str(path))


def test_several_segments_are_one_run_in_order_of_time(folder: Path) -> None:
    (folder / "hand-1" / "events.parquet").unlink()
    nodes = TABLE.column("node").to_numpy()
    for node in range(3):  # one writer a node, as in a live run
        pq.write_table(TABLE.filter(pa.array(nodes == node)), folder / "hand-1" / f"node-{2 - node}.parquet")
    merged = list(events_of(only(folder).table()))
    assert merged == sorted(run_of_three(), key=lambda event: (event.time_ns, event.node))


def test_segments_keep_the_order_of_a_node_within_one_instant(folder: Path) -> None:
    events = [Event(5, 5, 0, run_of_three()[0].kind, message) for message in (3, 1, 2)]
    table = build_table("hand-1", events)
    rewrite(folder, table.slice(1))
    pq.write_table(table.slice(0, 1), folder / "hand-1" / "z.parquet")
    assert [event.message for event in events_of(only(folder).table())] == [3, 1, 2]


def test_a_table_with_plain_words_is_read(folder: Path) -> None:
    plain = TABLE
    for name in ("run", "kind", "label"):
        words = TABLE.column(name).cast(pa.string())
        plain = plain.set_column(plain.column_names.index(name), name, words)
    rewrite(folder, plain)
    assert trace_hash(only(folder).table()) == trace_hash(TABLE)


def test_a_table_with_large_words_and_lists_is_read(folder: Path) -> None:
    large = TABLE
    for name, kind in (("kind", pa.large_string()), ("groups", pa.large_list(pa.int64()))):
        large = large.set_column(large.column_names.index(name), name, large.column(name).cast(kind))
    rewrite(folder, large)
    assert trace_hash(only(folder).table()) == trace_hash(TABLE)


def test_a_table_rewritten_by_pandas_is_read(folder: Path) -> None:
    path = folder / "hand-1" / "events.parquet"
    pandas = pytest.importorskip("pandas")
    pandas.read_parquet(path).to_parquet(path)
    assert list(events_of(only(folder).table())) == run_of_three()


def test_segments_do_not_hide_a_clock_that_ran_back(folder: Path) -> None:
    submit, deliver = Kind.SUBMIT, Kind.DELIVER
    events = [
        Event(1, 1, 2, submit, 7), Event(2, 2, 2, submit, 8),
        Event(10, 10, 0, deliver, 7), Event(8, 8, 0, deliver, 8),
        Event(9, 9, 1, deliver, 8), Event(11, 11, 1, deliver, 7),
    ]  # fmt: skip
    table = build_table("hand-1", events)
    (folder / "hand-1" / "events.parquet").unlink()
    for node in range(3):
        mask = pa.array(table.column("node").to_numpy() == node)
        pq.write_table(table.filter(mask), folder / "hand-1" / f"node-{node}.parquet")
    merged = [event for event in events_of(only(folder).table()) if event.node == 0]
    assert [(event.time_ns, event.message) for event in merged] == [(10, 7), (8, 8)]


def test_rows_of_another_run_are_refused(folder: Path) -> None:
    pq.write_table(build_table("hand-2", run_of_three()), folder / "hand-1" / "more.parquet")
    assert "events of several runs: hand-1, hand-2" in complaint(lambda: only(folder).table())


def test_a_column_twice_is_refused_by_name(folder: Path) -> None:
    twice = TABLE.append_column("digest", TABLE["digest"]).append_column("kind", TABLE["kind"])
    pq.write_table(twice, folder / "hand-1" / "events.parquet")
    assert complaint(only(folder).table).endswith(
        "events.parquet: has the column kind, digest more than once"
    )


@pytest.mark.parametrize("name", ["events.parquet", "run.json"])
def test_a_named_pipe_in_place_of_a_file_is_refused_at_once(folder: Path, name: str) -> None:
    path = folder / "hand-1" / name
    path.unlink()
    os.mkfifo(path)
    assert complaint(lambda: only(folder).table()) == f"{path}: not a regular file"


def test_a_description_that_is_nested_too_deeply_is_refused(folder: Path) -> None:
    path = folder / "hand-1" / "run.json"
    deep = "[" * 50_000 + "]" * 50_000
    path.write_text(path.read_text().replace('"scenario": {}', f'"scenario": {{"a": {deep}}}'))
    assert "nested too deeply" in complaint(lambda: only(folder))
