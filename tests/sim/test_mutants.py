"""The checks are proved by breaking things on purpose: each must be caught, by the property it breaks.

Here every seed of a mutant is tried. `tests/audit/test_both_judges.py` tries as many as it takes to catch it.
"""

import pytest

from tests.sim.mutant import Mutant
from tests.sim.mutants import MUTANTS


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_mutant_is_caught_by_the_property_that_it_breaks_and_by_no_other(mutant: Mutant) -> None:
    found = [violation for seed in range(mutant.seeds) for violation in mutant.run(seed).violations]
    properties = {violation.property for violation in found}
    assert mutant.breaks <= properties <= mutant.breaks | mutant.also
    for violation in found:
        assert violation.nodes
        assert str(violation.nodes[0]) in violation.detail
        if mutant.culprit is not None:
            assert mutant.culprit in violation.nodes
