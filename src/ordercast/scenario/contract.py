"""Checks the faults of a scenario: unknown hosts, and faults that the protocol does not tolerate."""

from ordercast.core import Fault, HostId, Plan
from ordercast.scenario import faults
from ordercast.scenario.crashes import returns
from ordercast.scenario.spec import Scenario, ScenarioError


def beyond_contract(scenario: Scenario, plan: Plan) -> list[Fault]:
    """The faults of a scenario that the protocol does not promise to tolerate."""
    network, clocks, kinds = scenario.network, scenario.clocks, [type(fault) for fault in scenario.fault]
    # The plan says how infrastructure may come back; the guarantees are about receivers.
    # Whether a host with a damaged disk comes back is up to the host.
    damaged = {
        fault.host
        for fault in scenario.fault
        if isinstance(fault, faults.Disk) and fault.what in faults.DAMAGES
    }
    restarts = [
        fault.state
        for fault in scenario.fault
        if isinstance(fault, faults.Restart)
        and fault.state not in returns(plan, fault.host)
        and not (fault.state == "saved" and fault.host in damaged)
    ]
    happened = {
        Fault.LOSS: network.loss > 0,
        Fault.DUPLICATION: network.duplication > 0,
        Fault.REORDERING: network.reordering > 0,
        Fault.PARTITION: faults.Partition in kinds,
        Fault.CRASH: faults.Crash in kinds,
        Fault.RESTART: "saved" in restarts,
        Fault.AMNESIA: "lost" in restarts,
        Fault.PAUSE: faults.Pause in kinds,
        Fault.CLOCK: clocks.skew_us > 0 or clocks.drift_ppm > 0 or faults.SetClock in kinds,
        Fault.DISK: faults.Disk in kinds,
    }
    return [fault for fault, struck in happened.items() if struck and fault not in plan.guarantees.tolerates]


def check_faults(scenario: Scenario, hosts: list[HostId]) -> None:
    """Raise `ScenarioError` if a fault names a host that does not exist."""
    for index, fault in enumerate(scenario.fault):
        named = getattr(fault, "host", None)
        sides = [host for side in getattr(fault, "sides", ()) for host in side]
        for host in [*sides, *([] if named is None else [named])]:
            if host not in hosts:
                key = "sides" if named is None else "host"
                raise ScenarioError(f"fault[{index}].{key}", f"there is no host {host}")
