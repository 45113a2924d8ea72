"""Defects of processes that are driven by hand: each is found by its play."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest


class Mutant(NamedTuple):
    """A defect, and the play in which it breaks a promise."""

    name: str
    owner: Any
    attribute: str
    value: Any
    play: Callable[[], None]
    also: tuple[tuple[Any, str, Any], ...] = ()
    """Further defects, where one alone is caught by another remedy."""

    def must_be_found(self, monkeypatch: pytest.MonkeyPatch, broken: type[AssertionError]) -> None:
        """Play it as it is, which goes well, and then with the defect."""
        self.play()
        for owner, attribute, value in ((self.owner, self.attribute, self.value), *self.also):
            monkeypatch.setattr(owner, attribute, value)
        with pytest.raises(broken):
            self.play()
