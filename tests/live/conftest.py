"""Fixtures of the live tests."""

import pytest

from ordercast.cli import run
from tests.live.commands import Said


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a command that must end with this code, and gives what it printed."""

    def command(*words: object, code: int = 0) -> str:
        got = run([str(word) for word in words])
        printed = capsys.readouterr()
        assert got == code, printed.err
        return " ".join((printed.err if code else printed.out).split())

    return command
