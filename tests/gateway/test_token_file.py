"""Tokens: who has one is admitted, the file is kept private, and nothing shows a token."""

import logging
import re
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.gateway.token_file import TokenFile, create_tokens

ONE, TWO = "the-first-token-of-all", "another+token/with~signs=="


def write(path: Path, *lines: str, mode: int = 0o600) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(mode)
    return path


def test_each_token_of_the_file_is_admitted(tmp_path: Path) -> None:
    tokens = TokenFile(write(tmp_path / "t", "# ours", ONE, "", f"  {TWO}  "))
    for good in (f"Bearer {ONE}", f"bearer {TWO}", f"BEARER  {ONE}"):
        assert tokens.admit(good)


@pytest.mark.parametrize(
    "header",
    ["", ONE, f"Basic {ONE}", "Bearer", "Bearer ", f"Bearer {ONE}x", f"Bearer {ONE[:-1]}", f"Bearer {ONE} x",
     f"Bearer {ONE}, Bearer {ONE}", f"Bearer\t{ONE}", "Bearer # ours", "Bearer \xe9\xff",
     "Bearer " + "x" * 16_000],
)  # fmt: skip
def test_nothing_else_is(tmp_path: Path, header: str) -> None:
    assert not TokenFile(write(tmp_path / "t", "# ours", ONE)).admit(header)


def test_a_new_file_has_a_token_that_nobody_else_can_read_or_guess(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    create_tokens(one)
    create_tokens(other)
    assert one.stat().st_mode & 0o777 == 0o600
    (token,) = [line for line in one.read_text().splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert TokenFile(one).admit(f"Bearer {token}") and not TokenFile(other).admit(f"Bearer {token}")
    with pytest.raises(LocalError, match="cannot be written: File exists"):
        create_tokens(one)


@pytest.mark.parametrize(
    ("lines", "mode", "error"),
    [
        ((ONE,), 0o640, r"other users may read it \(mode 640\)"),
        (("# none",), 0o600, "the file has no token"),
        ((ONE, "short"), 0o600, "line 2: not a token"),
        (("a" * 1025,), 0o600, "line 1: not a token"),
        (("a token with spaces in it",), 0o600, "line 1: not a token"),
        (("schlüsselschlüssel",), 0o600, "the file is not ASCII"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, lines: tuple[str, ...], mode: int, error: str) -> None:
    with pytest.raises(LocalError, match=error) as raised:
        TokenFile(write(tmp_path / "t", *lines, mode=mode))
    assert not any(line in str(raised.value) for line in lines)


def test_a_changed_file_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "t", ONE)
    tokens = TokenFile(path)
    path.unlink()
    write(path, TWO, ONE)
    with caplog.at_level(logging.INFO):
        tokens.refresh()
        assert tokens.admit(f"Bearer {TWO}") and tokens.admit(f"Bearer {ONE}")
        path.unlink()
        tokens.refresh()
        tokens.refresh()
        assert tokens.admit(f"Bearer {TWO}")
        write(path, TWO)
        tokens.refresh()
        assert tokens.admit(f"Bearer {TWO}") and not tokens.admit(f"Bearer {ONE}")
    assert len(caplog.records) == 3 and "the old tokens stay valid" in caplog.text
    assert ONE not in caplog.text and TWO not in caplog.text
