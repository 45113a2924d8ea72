"""Each defect is found by its play: so each play can fail, and each remedy is needed."""

import pytest

from tests.granola.mutants import MUTANTS, Mutant
from tests.hand_driven import Broken


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.play()
    for owner, attribute, value in ((mutant.owner, mutant.attribute, mutant.value), *mutant.also):
        monkeypatch.setattr(owner, attribute, value)
    with pytest.raises(Broken) as found:
        mutant.play()
    print(found.value)
