"""Every protocol of the product keeps its promises on hundreds of seeds, and so do the models."""

from functools import partial

import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Causality, Deployment, Plan
from ordercast.scenario.swarm import MakePlan, swarm_scenario
from ordercast.sim.conformance import conformance
from ordercast.sim.run import simulate
from tests.deep import deep_after
from tests.sim import trace_hashes
from tests.sim.models import peers, sequencer

PART = 10
"""Seeds that a test tries; the first of them, in `make test`, have a hash on record."""
SEEDS = 500
CONFORMANCE_PART = 2
CONFORMANCE_SEEDS = 20

MODELS: dict[str, MakePlan] = {
    "sequencer": sequencer.plan,
    "views": partial(sequencer.plan, guarantees=sequencer.VIEWS, make=sequencer.ViewReceiver),
    "fifo": partial(peers.plan, causality=Causality.FIFO),
    "causal": partial(peers.plan, causality=Causality.CAUSAL),
}


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize("first", deep_after(1, range(0, SEEDS, PART)))
def test_a_protocol_keeps_its_promises_on_hundreds_of_seeds(protocol: str, first: int) -> None:
    hashes = dict(enumerate(trace_hashes.recorded().get(protocol, ())))
    for seed in range(first, first + PART):
        run = simulate(swarm_scenario(protocol, seed))
        assert run.description.trace_hash == hashes.get(seed, run.description.trace_hash), f"seed {seed}"
        assert run.hindrance in ("", "a partition was still in force"), f"seed {seed}"
        assert run.violations == [], f"seed {seed}"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_keeps_its_promises(name: str) -> None:
    assert conformance(MODELS[name], range(12)) == []


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize("first", deep_after(1, range(0, CONFORMANCE_SEEDS, CONFORMANCE_PART)))
def test_a_protocol_conforms(protocol: str, first: int) -> None:
    found = find_protocol(protocol)

    def make_plan(deployment: Deployment) -> Plan:
        return found.deploy(deployment, found.options())

    assert conformance(make_plan, range(first, first + CONFORMANCE_PART)) == []
