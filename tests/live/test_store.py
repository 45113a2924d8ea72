"""Saved state: there after a restart, whole after a kill, and refused when it is not ours."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ordercast.core import SECOND, LocalError
from ordercast.net.host import store
from ordercast.net.host.store import Store

SAVE_THEN_HANG = """
import sys, time
from pathlib import Path
from ordercast.net.host.store import Store

store = Store(Path(sys.argv[1]))
store.begin_life(1000)
store.commit({(1, "vote"): b"committed", (2, "log"): b"committed too"})
store._database.execute("begin immediate")
store._database.execute("update state set value = x'00'")
print("saved", flush=True)
time.sleep(3600)
"""

NOTE_THEN_HANG = """
import sys, time
from pathlib import Path
from ordercast.core import SECOND
from ordercast.net.host.store import Store

store = Store(Path(sys.argv[1]))
store.begin_life(1 * SECOND)
for second in range(2, 15):
    store.note_time(second * SECOND)
print("noted", flush=True)
time.sleep(3600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "3.sqlite"


def reopened(path: Path, old: Store) -> Store:
    old.close()
    return Store(path)


def complaint(path: Path) -> str:
    with pytest.raises(LocalError) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_new_store_is_empty(path: Path) -> None:
    assert Store(path).load(0) == {}


def test_what_was_committed_is_there_after_reopening(path: Path) -> None:
    one = Store(path)
    one.commit({(4, "term"): b"7", (4, "log"): bytes(range(256)), (5, "term"): b""})
    other = reopened(path, one)
    assert other.load(4) == {"log": bytes(range(256)), "term": b"7"}
    assert other.load(5) == {"term": b""}


def test_a_commit_that_fails_leaves_everything_as_it_was(path: Path) -> None:
    one = Store(path)
    one.commit({(4, "term"): b"7"})
    with pytest.raises(LocalError):
        one.commit({(4, "term"): b"8", (4, "log"): object()})  # type: ignore[dict-item]
    assert one.load(4) == {"term": b"7"}
    one.commit({(4, "term"): b"9"})
    assert reopened(path, one).load(4) == {"term": b"9"}


def test_the_last_save_under_a_name_counts(path: Path) -> None:
    one = Store(path)
    for term in (b"1", b"2", b"3"):
        one.commit({(4, "term"): term})
    assert reopened(path, one).load(4) == {"term": b"3"}


def test_a_state_is_removed_by_saving_none(path: Path) -> None:
    one = Store(path)
    one.commit({(4, "term"): b"7", (4, "log"): b"a"})
    one.commit({(4, "term"): None, (4, "never there"): None})
    assert one.load(4) == {"log": b"a"}
    assert reopened(path, one).load(4) == {"log": b"a"}


def test_without_a_file_state_lasts_as_long_as_the_store() -> None:
    memory = Store(None)
    memory.commit({(1, "term"): b"7"})
    assert memory.load(1) == {"term": b"7"}
    assert Store(None).load(1) == {}


def test_each_life_begins_later_than_the_one_before_even_if_the_clock_was_set_back(path: Path) -> None:
    one = Store(path)
    assert one.begin_life(1_000) == 1_000
    two = reopened(path, one)
    assert two.begin_life(400) == 1_001
    three = reopened(path, two)
    assert three.begin_life(5_000) == 5_000
    assert three.lives == 3


def test_a_life_begins_after_the_readings_that_an_earlier_one_told_of(path: Path) -> None:
    one = Store(path)
    one.begin_life(1_000)
    one.note_time(9_000)
    one.commit({(1, "term"): b"7"})
    assert reopened(path, one).begin_life(2_000) == 9_001


def test_a_kill_in_the_middle_of_a_commit_loses_that_and_nothing_else(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAVE_THEN_HANG, str(path)], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "saved\n"
        host.send_signal(signal.SIGKILL)
    found = Store(path)
    assert found.load(1) == {"vote": b"committed"}
    assert found.load(2) == {"log": b"committed too"}
    assert found.begin_life(0) == 1_001


def test_a_killed_life_that_saved_nothing_keeps_its_clock_to_within_ten_seconds(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NOTE_THEN_HANG, str(path)], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "noted\n"
        host.send_signal(signal.SIGKILL)
    assert Store(path).begin_life(0) == 11 * SECOND + 1


def test_the_time_is_written_now_and_then_only(path: Path) -> None:
    one = Store(path)
    one.begin_life(0)
    writes: list[str] = []
    one._database.set_trace_callback(writes.append)
    for second in range(1, 61):
        one.note_time(second * SECOND)
    assert len([statement for statement in writes if statement.startswith("insert into state")]) == 6
    one.close()


def test_a_time_that_cannot_be_written_stops_nobody(path: Path) -> None:
    one = Store(path)
    one.begin_life(0)
    one._database.execute("pragma query_only = on")
    one.note_time(20 * SECOND)
    one._database.execute("pragma query_only = off")
    assert reopened(path, one).begin_life(0) == 20 * SECOND + 1, "and it is tried again"


def test_a_store_belongs_to_one_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "WAIT_S", 0.1)
    with subprocess.Popen(
        [sys.executable, "-c", SAVE_THEN_HANG, str(path)], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        host.stdout.readline()
        assert "another process has this state open" in complaint(path)
        host.kill()
    assert Store(path).lives == 1


def test_state_is_for_its_owner_alone(path: Path) -> None:
    one = Store(path)
    one.commit({(1, "term"): b"7"})
    files = list(path.parent.iterdir())
    assert path in files
    assert not [file for file in files if file.stat().st_mode & 0o077]


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"name = 'demo'\n" * 100)
    assert "not a database" in complaint(path)


def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table state (node, name, value)")
    before = path.read_bytes()
    assert "not one with ordercast's state" in complaint(path)
    assert path.read_bytes() == before


def test_a_file_of_a_later_format_is_refused(path: Path) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("pragma user_version = 4")
    assert "format 4, this version reads 3" in complaint(path)


def test_a_damaged_file_is_refused(path: Path) -> None:
    one = Store(path)
    one.commit({(node, "log"): bytes(1000) for node in range(200)})
    one.close()
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    assert "damaged" in complaint(path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file is in the way")
    assert "cannot save state there" in complaint(tmp_path / "state" / "3.sqlite")


def test_the_last_time_of_a_life_that_ended_well_is_kept_though_nothing_was_saved(path: Path) -> None:
    store = Store(path)
    store.begin_life(1_000)
    store.note_time(5_000)
    store.close()
    store = Store(path)
    assert store.begin_life(2_000) == 5_001
    store.close()


def large_rows(path: Path) -> dict[str, list[tuple[int, str, int]]]:
    """What each table of a closed file has: node, name and size."""
    with closing(sqlite3.connect(path)) as file:
        return {
            table: file.execute(f"select node, name, length(value) from {table} where node >= 0").fetchall()
            for table in ("state", "large")
        }


def test_large_values_are_kept_apart_and_come_back_like_others(path: Path) -> None:
    """A row of 100 MB among small ones would be read at every commit."""
    large, larger = b"x" * (store.LARGE_BYTES + 1), b"y" * 1_000_000
    made = Store(path)
    made.commit({(1, "snapshot"): large, (1, "slot"): b"a", (2, "snapshot"): b"small"})
    made.commit({(1, "slot"): b"b"})
    made = reopened(path, made)
    assert made.load(1) == {"slot": b"b", "snapshot": large}
    made.commit({(1, "snapshot"): larger, (2, "snapshot"): large})
    made = reopened(path, made)
    assert (made.load(1)["snapshot"], made.load(2)["snapshot"]) == (larger, large)
    made.close()
    size = store.LARGE_BYTES + 1
    assert large_rows(path) == {
        "state": [(1, "slot", 1)], "large": [(1, "snapshot", 1_000_000), (2, "snapshot", size)]
    }  # fmt: skip


def test_a_value_that_is_no_longer_large_is_kept_once(path: Path) -> None:
    large = b"x" * (store.LARGE_BYTES + 1)
    made = Store(path)
    made.commit({(1, "a"): large, (1, "b"): large, (1, "c"): b"c"})
    made.commit({(1, "a"): b"small", (1, "b"): None})
    assert made.load(1) == {"a": b"small", "c": b"c"}
    made = reopened(path, made)
    assert made.load(1) == {"a": b"small", "c": b"c"}
    made.close()
    assert large_rows(path) == {"state": [(1, "a", 5), (1, "c", 1)], "large": []}


def test_a_commit_with_a_large_value_that_fails_changes_nothing(path: Path) -> None:
    large = b"x" * (store.LARGE_BYTES + 1)
    made = Store(path)
    made.commit({(1, "a"): large})
    with pytest.raises(LocalError):
        made.commit({(1, "a"): b"small", (1, "b"): large, (1, "c"): object()})  # type: ignore[dict-item]
    made.commit({(1, "d"): b"d"})
    made = reopened(path, made)
    assert made.load(1) == {"a": large, "d": b"d"}


def test_a_file_of_the_last_format_is_taken_over(path: Path) -> None:
    made = Store(path)
    made.commit({(1, "a"): b"1"})
    made.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("drop table large")
        file.execute(f"pragma user_version = {store.FORMAT - 1}")
    made = Store(path)
    assert made.load(1) == {"a": b"1"}
    made.commit({(1, "b"): b"x" * (store.LARGE_BYTES + 1)})
    assert set(reopened(path, made).load(1)) == {"a", "b"}


def test_a_damaged_large_value_is_refused(path: Path) -> None:
    made = Store(path)
    made.commit({(1, "a"): b"x" * (store.LARGE_BYTES + 1)})
    made.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("update large set value = zeroblob(20000)")
    assert "its check sum is wrong" in complaint(path)
