"""Each defect breaks its promise in its play: so each play can fail, and each remedy is needed."""

import pytest

from tests.llft import plays_pending
from tests.llft.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", (*MUTANTS, *plays_pending.MUTANTS), ids=lambda mutant: mutant.name)
def test_a_defect_breaks_a_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, attribute, value in ((mutant.owner, mutant.attribute, mutant.value), *mutant.also):
        monkeypatch.setattr(owner, attribute, value)
    assert mutant.breaks in mutant.play()
