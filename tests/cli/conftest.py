"""Fixtures that run the command in this process, as a user would type it."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ordercast.cli import run


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as the one object that it must be."""
        assert self.out, f"nothing on standard output, exit code {self.code}: {self.err}"
        return json.loads(self.out)


Command = Callable[..., Outcome]


@pytest.fixture
def ordercast(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `ordercast` with these words."""

    def call(*words: object) -> Outcome:
        code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
