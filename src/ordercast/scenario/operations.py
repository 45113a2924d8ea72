"""The operations of a scenario with a service."""

from ordercast.core import LocalError, Plan
from ordercast.scenario.spec import Scenario, ScenarioError
from ordercast.services import Operations, workload_of
from ordercast.toml_file import about


def operations_of(scenario: Scenario, plan: Plan) -> Operations | None:
    """What clients call in a scenario; None if it has no service."""
    if not scenario.service:
        return None
    spec = scenario.workload
    if spec.kind in ("trace", "listed"):
        raise ScenarioError("workload.kind", f"a {spec.kind} workload has no operations of a service")
    with about("service"):
        try:
            first = (0,) if plan.service is not None and plan.service.parts else None
            return Operations(workload_of(scenario.service), spec.reads, spec.bytes, plan.shards, first)
        except TypeError as error:
            raise LocalError(f"the workload of {scenario.service} cannot be used: {error}") from error


def total_of(scenario: Scenario) -> int | None:
    """What transactions that add up everything must come to; None if the service has none."""
    found = workload_of(scenario.service).sum if scenario.service else None
    return None if found is None else found.total
