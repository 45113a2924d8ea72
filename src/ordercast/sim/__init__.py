"""The deterministic simulator: virtual time, modelled hosts and networks, seeded faults."""

from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario
from ordercast.scenario.summary import Summary
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.build import build_world
from ordercast.sim.conformance import Failure, conformance
from ordercast.sim.run import Run, drive, simulate
from ordercast.sim.shrinking import Shrunk, shrink
from ordercast.sim.world import World

__all__ = [
    "Failure",
    "Run",
    "Scenario",
    "Shrunk",
    "Summary",
    "World",
    "build_world",
    "conformance",
    "drive",
    "load_scenario",
    "shrink",
    "simulate",
    "swarm_scenario",
]
