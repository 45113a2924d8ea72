"""A mutant: something broken on purpose, how to run it, and which properties must catch it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Fault, NodeId, Plan
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate


@dataclass(frozen=True)
class Mutant:
    """What is broken, how to run it on a seed, and which properties that breaks."""

    name: str
    breaks: frozenset[str]
    """Properties that must be found broken, over some seeds."""
    run: Callable[[int], Run]
    culprit: NodeId | None = None
    """A node that every counterexample must name, where there is just one to blame."""
    also: frozenset[str] = frozenset()
    """Properties that may truly be broken by it as well."""
    seeds: int = 24
    """How many it takes to be sure of catching it."""


def deploy(protocol: str, deployment: Deployment) -> Plan:
    """The unbroken plan of a protocol of the product."""
    found = find_protocol(protocol)
    return found.deploy(deployment, found.options())


def calm(protocol: str, seed: int, **changes: Any) -> Scenario:
    """Three receivers a group, three senders, delays that vary, no faults."""
    scenario = Scenario(
        protocol=protocol,
        seed=seed,
        senders=3,
        network=NetworkSpec(latency=UniformSpec(50, 2000)),
        workload=WorkloadSpec(messages=80, rate_per_s=1000),
        settle_ms=500,
    )
    return msgspec.structs.replace(scenario, **changes)


def run_calm(protocol: str, change: Callable[[Plan], Plan], seed: int, **changes: Any) -> Run:
    """Run a changed plan of a protocol in a calm scenario."""
    scenario = calm(protocol, seed, **changes)
    return simulate(scenario, change(scenario.plan()))


def run_swarm(make: Callable[[Deployment], Plan], only: Fault | None, seed: int) -> Run:
    """Run a plan in the swarm scenario of a seed."""
    scenario = swarm_scenario("", seed, make, only)
    return simulate(scenario, make(scenario.deployment()))
