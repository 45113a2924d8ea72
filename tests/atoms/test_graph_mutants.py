"""A graph that breaks a condition is found by looking at it; runs on such graphs are mutants of the swarm."""

import pytest

from ordercast.components.sequencing_graph import build, check_network
from ordercast.core import LocalError
from tests.sim.mutants_atoms import BROKEN_PATH, CIRCLE, LOOP, MISSED_OVERLAP, Defect, network_with


@pytest.mark.parametrize(
    ("defect", "match"),
    [(LOOP, "C2|C3"), (BROKEN_PATH, "C1"), (MISSED_OVERLAP, "has no atom")],
    ids=["loop", "broken path", "missed overlap"],
)
def test_a_defect_of_the_graph_is_found(defect: Defect, match: str) -> None:
    check_network(build(dict(enumerate(CIRCLE))).network())
    network = network_with(defect)
    with pytest.raises(LocalError, match=match):
        check_network(network)
