"""Scenarios, for all drivers: what a run does, who submits which messages when, and when a run is over."""

from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario
from ordercast.scenario.swarm import swarm_scenario

__all__ = ["Scenario", "load_scenario", "swarm_scenario"]
