"""The deterministic simulator: virtual time, modelled hosts and networks, seeded faults."""

from ordercast.sim.build import build_world
from ordercast.sim.conformance import Failure, conformance
from ordercast.sim.run import Run, drive, simulate
from ordercast.sim.scenario import Scenario
from ordercast.sim.scenario_file import load_scenario
from ordercast.sim.summary import Summary
from ordercast.sim.swarm import swarm_scenario
from ordercast.sim.world import World

__all__ = [
    "Failure",
    "Run",
    "Scenario",
    "Summary",
    "World",
    "build_world",
    "conformance",
    "drive",
    "load_scenario",
    "simulate",
    "swarm_scenario",
]
