"""Protocols that do as good as nothing: the conformance suite condemns them for the reasons they give."""

import pytest

from ordercast.sim.conformance import conformance
from tests.sim.mutant import Mutant
from tests.sim.mutants_idle import IDLE, IDLE_MUTANTS, SEEDS


@pytest.mark.parametrize("mutant", IDLE_MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_an_idle_protocol_is_caught_by_the_swarm_and_by_conformance(mutant: Mutant) -> None:
    (broken,) = mutant.breaks
    caught = (seed for seed in range(SEEDS) if broken in {v.property for v in mutant.run(seed).violations})
    seed = next(caught)
    failures = conformance(IDLE[mutant.name], [seed])
    assert broken in {failure.property for failure in failures if failure.clause == "swarm"}
