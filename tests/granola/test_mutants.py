"""Each defect is found by its play: so each play can fail, and each remedy is needed."""

import pytest

from tests.granola.mutants import MUTANTS
from tests.hand_driven import Broken
from tests.play_mutants import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.must_be_found(monkeypatch, Broken)
