"""The log is proved by breaking it: every scene that holds fails when its rule is broken."""

import pytest

from ordercast.core import RemoteError
from tests.consensus.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.scene()
    monkeypatch.setattr(mutant.owner, mutant.method, mutant.broken)
    with pytest.raises((AssertionError, KeyError, ValueError, RemoteError)):
        mutant.scene()
