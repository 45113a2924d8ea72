"""Key files: private, rewritten as a whole, and rotated without a moment at which a host is refused."""

import base64
import stat
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.key_file import KeyFile, activate_key, add_key, create_keys, load_keys, retire_key
from ordercast.net.links.keyring import Key, Keyring


def test_a_new_file_holds_one_key_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "k"
    ring = create_keys(path)
    assert load_keys(path) == ring
    assert list(ring.accepted) == [ring.active.id]
    assert len(ring.active.secret) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["k"]


def test_two_files_have_two_keys(tmp_path: Path) -> None:
    assert create_keys(tmp_path / "a").active != create_keys(tmp_path / "b").active


def test_a_file_is_not_overwritten_unless_forced(tmp_path: Path) -> None:
    ring = create_keys(tmp_path / "k")
    with pytest.raises(LocalError, match="the key file already exists"):
        create_keys(tmp_path / "k")
    assert load_keys(tmp_path / "k") == ring
    assert create_keys(tmp_path / "k", force=True) != ring


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    create_keys(tmp_path / "k")
    (tmp_path / "k").chmod(mode)
    with pytest.raises(LocalError, match=f"other users may read it .mode {mode:o}.; run chmod 600"):
        load_keys(tmp_path / "k")


def test_a_rotation_never_refuses_a_host_that_is_one_step_behind(tmp_path: Path) -> None:
    path = tmp_path / "k"
    old = create_keys(path)
    added = add_key(path)
    new = next(key for key in added.accepted.values() if key != old.active)
    activated = activate_key(path, new.id)
    retired = retire_key(path, old.active.id)
    assert added.active == old.active
    assert activated.active == new
    assert list(retired.accepted) == [new.id]
    steps = [old, added, activated, retired]
    for before, after in pairwise(steps):
        assert before.active.id in after.accepted
        assert after.active.id in before.accepted
    assert load_keys(path) == retired
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_rotation_out_of_step_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    ring = create_keys(path)
    with pytest.raises(LocalError, match=f"{ring.active.id:08x} is in use"):
        retire_key(path, ring.active.id)
    unknown = ring.active.id ^ 1
    with pytest.raises(LocalError, match=f"no key {unknown:08x}; the keys are: {ring.active.id:08x}"):
        activate_key(path, unknown)
    for _ in range(15):
        add_key(path)
    with pytest.raises(LocalError, match="at most 16 keys"):
        add_key(path)
    assert len(load_keys(path).accepted) == 16


def test_a_secret_shows_in_no_text(tmp_path: Path) -> None:
    ring = create_keys(tmp_path / "k")
    secret = ring.active.secret
    for text in (repr(ring), str(ring.active), f"{ring}"):
        assert repr(secret) not in text
        assert secret.hex() not in text
        assert base64.b64encode(secret).decode() not in text


BAD = {
    "empty": ("", ": the file has no key"),
    "comments only": ("# nothing\n\n", ": the file has no key"),
    "no base64": ("# one\nsecret!\n", ", line 2: not a key"),
    "too short": (base64.b64encode(b"x" * 31).decode(), ", line 1: not a key"),
    "twice": ((base64.b64encode(b"x" * 32).decode() + "\n") * 2, ": a key is listed twice"),
    "not ASCII": ("schlüssel", ": the file is not ASCII"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_told_without_its_content(tmp_path: Path, case: str) -> None:
    text, said = BAD[case]
    path = tmp_path / "k"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(LocalError) as caught:
        load_keys(path)
    assert str(caught.value).startswith(f"{path}{said}")
    assert not any(word in str(caught.value) for word in text.split() if len(word) > 3)


def test_a_changed_file_is_read_again_once(tmp_path: Path) -> None:
    path = tmp_path / "k"
    create_keys(path)
    file = KeyFile(path)
    assert file.refresh() is None
    added = add_key(path)
    assert file.refresh() == added == file.keyring
    assert file.refresh() is None


def test_a_file_that_becomes_unusable_is_told_once_and_the_keys_stay(tmp_path: Path) -> None:
    path = tmp_path / "k"
    ring = create_keys(path)
    file = KeyFile(path)
    path.write_text("nonsense")
    with pytest.raises(LocalError, match="line 1: not a key"):
        file.refresh()
    assert file.refresh() is None
    assert file.keyring == ring
    path.unlink()
    with pytest.raises(LocalError, match="cannot be read"):
        file.refresh()
    fresh = create_keys(path)
    assert file.refresh() == fresh


def test_the_identity_of_a_key_depends_on_its_secret_alone() -> None:
    assert Key.of(b"a" * 32) == Key.of(b"a" * 32)
    assert Key.of(b"a" * 32).id != Key.of(b"b" * 32).id
    assert 0 <= Key.of(b"a" * 32).id < 1 << 32
    with pytest.raises(LocalError, match="needs at least one key"):
        Keyring.of([])
