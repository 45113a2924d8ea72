"""The parts of a scenario that a live run cannot imitate, in words."""

from ordercast.lab.trial.stage import latency_us
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import ConstantSpec, Scenario


def ignored(scenario: Scenario) -> list[str]:
    """The parts of a scenario that a live run ignores, each as a sentence."""
    spec, found = scenario.network.latency, []
    if scenario.network.background is not None:
        found.append("a live run has no background traffic")
    if spec != ConstantSpec() and not latency_us(scenario):
        kind = spec.__struct_config__.tag
        found.append(
            f"the latency '{kind}' is not imitated: datagrams have the latency of the loopback network"
        )
    if scenario.cpu != Cpu() or scenario.role_cpu:
        found.append("the costs of CPUs are not imitated: work takes its real time on this machine")
    if scenario.liveness:
        found.append("liveness is not judged: a real machine keeps to no bound on time")
    if scenario.packets:
        found.append("packets are not traced")
    return found
