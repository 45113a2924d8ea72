"""Saved state whose files were damaged: either it is refused, or nothing of it has changed."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from ordercast.net.host import check_sum, store
from ordercast.net.host.check_sum import StoreHead
from ordercast.net.host.store import StateDamaged, Store

NODES = 3
SEED = 14

Files = dict[str, bytes]
Content = list[object]


def content_of(opened: Store) -> Content:
    """All that a later life may find in a store."""
    return [*(opened.load(node) for node in (-1, *range(NODES))), opened.storage, opened.lives]


def saved(folder: Path, *, ended_well: bool) -> tuple[Files, Content]:
    """The files of a host that was killed, or stopped, and what they hold."""
    folder.mkdir()
    opened = Store(folder / "3.sqlite")
    opened.begin_life(1_000)
    for number in range(120):
        log = Random(number).randbytes(number)
        opened.commit({(number % NODES, f"slot {number}"): log, (-1, "messages"): b"%d" % number})
    opened.commit({(1, "slot 4"): None, (2, "place"): b"the last"})
    content = content_of(opened)
    if ended_well:
        opened.close()
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    opened.close()
    return files, content


def reopened(folder: Path, files: Mapping[str, bytes]) -> Content | StateDamaged:
    """What a later life finds, or why it does not start."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        opened = Store(folder / "3.sqlite")
    except StateDamaged as damaged:
        return damaged
    try:
        return content_of(opened)
    finally:
        opened.close()


def flipped(files: Files, rng: Random) -> Files:
    """The files with one bit that is wrong, somewhere."""
    place = rng.randrange(sum(map(len, files.values())) * 8)
    for name, content in files.items():
        if place < len(content) * 8:
            changed = bytearray(content)
            changed[place // 8] ^= 1 << place % 8
            return files | {name: bytes(changed)}
        place -= len(content) * 8
    raise AssertionError(place)


def flip_many(folder: Path, count: int, part: int = 0) -> Counter[str]:
    """Flip a bit `count` times, in the files of a host that was killed or stopped, and tell what came."""
    found: Counter[str] = Counter()
    for ended_well in (False, True):
        files, content = saved(folder / f"saved-{ended_well}", ended_well=ended_well)
        assert reopened(folder / "whole", files) == content
        rng = Random(f"{SEED}/{part}/{ended_well}")
        for number in range(count // 2):
            result = reopened(folder / "flipped", flipped(files, rng))
            if isinstance(result, StateDamaged):
                assert "3.sqlite" in str(result) or "3.mark" in str(result)
                assert "--as-new" in str(result)
                found["refused"] += 1
            else:
                assert result == content, f"flip {number} changed what was saved, and nobody noticed"
                found["without effect"] += 1
    return found


def test_a_flipped_bit_is_refused_or_has_no_effect(tmp_path: Path) -> None:
    found = flip_many(tmp_path, 200)
    assert found["refused"] > 20


def test_without_its_check_sum_a_store_would_go_on_with_flipped_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trust(written: bytes, rows: int) -> StoreHead:
        return StoreHead._make(check_sum._HEAD.unpack(written[: check_sum._HEAD.size]))

    monkeypatch.setattr(store, "decode_head", trust)
    with pytest.raises(AssertionError, match="changed what was saved, and nobody noticed"):
        flip_many(tmp_path, 400)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(1, 11))
def test_ten_thousand_flipped_bits_are_refused_or_have_no_effect(tmp_path: Path, part: int) -> None:
    found = flip_many(tmp_path, 1_000, part)
    assert found["refused"] > 100


@pytest.mark.parametrize("ended_well", [False, True])
def test_a_cut_file_is_refused_or_has_no_effect(tmp_path: Path, ended_well: bool) -> None:
    files, content = saved(tmp_path / "saved", ended_well=ended_well)
    rng = Random(SEED)
    for name, whole in files.items():
        for length in (0, 1, *(rng.randrange(len(whole)) for _ in range(8)), len(whole) - 1):
            result = reopened(tmp_path / "cut", files | {name: whole[:length]})
            assert isinstance(result, StateDamaged) or result == content, (name, length)
            if length <= 1 and whole:
                assert isinstance(result, StateDamaged), (name, length)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    files, _ = saved(tmp_path / "saved", ended_well=False)
    assert set(files) == {"3.sqlite", "3.sqlite-wal", "3.mark"}
    for name in files:
        left = {other: content for other, content in files.items() if other != name}
        assert isinstance(reopened(tmp_path / "lost", left), StateDamaged), name


def test_a_commit_that_was_never_acknowledged_may_be_missing(tmp_path: Path) -> None:
    """A host that is killed within a commit: the log has grown, and the mark does not say so yet."""
    opened = Store(tmp_path / "3.sqlite")
    opened.commit({(0, "place"): b"acknowledged"})
    mark = (tmp_path / "3.mark").read_bytes()
    before = len((tmp_path / "3.sqlite-wal").read_bytes())
    opened.commit({(0, "place"): b"not acknowledged"})
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()} | {"3.mark": mark}
    whole = len(files["3.sqlite-wal"])
    opened.close()
    for length in (before, before + 1, (before + whole) // 2, whole - 1, whole):
        torn = files | {"3.sqlite-wal": files["3.sqlite-wal"][:length]}
        found = reopened(tmp_path / "torn", torn)
        assert not isinstance(found, StateDamaged), length
        place = {"place": b"not acknowledged" if length == whole else b"acknowledged"}
        assert found[1] == place


def test_the_last_acknowledged_commit_is_missed(tmp_path: Path) -> None:
    opened = Store(tmp_path / "3.sqlite")
    opened.commit({(0, "place"): b"7"})
    before = len((tmp_path / "3.sqlite-wal").read_bytes())
    opened.commit({(0, "place"): b"8"})
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    opened.close()
    cut = files | {"3.sqlite-wal": files["3.sqlite-wal"][:before]}
    found = reopened(tmp_path / "cut", cut)
    assert "the last 1 of 2 commits are lost" in str(found)
    last = bytearray(files["3.sqlite-wal"])
    last[-100] ^= 1
    found = reopened(tmp_path / "flipped", files | {"3.sqlite-wal": bytes(last)})
    assert "the last 1 of 2 commits are lost" in str(found)


def test_a_mark_of_another_storage_is_refused(tmp_path: Path) -> None:
    one, _ = saved(tmp_path / "one", ended_well=True)
    other, _ = saved(tmp_path / "other", ended_well=True)
    found = reopened(tmp_path / "mixed", one | {"3.mark": other["3.mark"]})
    assert "3.mark is the mark of another file" in str(found)
