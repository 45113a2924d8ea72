"""The scenario that a command is to run again: of a file, of a stored run, or of a seed of the swarm."""

from pathlib import Path

import msgspec

from ordercast.core import Fault, LocalError
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario, to_scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.trace import find_runs


def chosen_scenario(
    path: Path | None, protocol: str | None, seed: int | None, fault: Fault | None = None
) -> Scenario:
    """The scenario of a file, of the folder of a simulated run, or of a seed of the swarm.

    A seed has a scenario of its own for each kind of `fault` that it is restricted to.
    """
    if path and protocol:
        raise LocalError("a scenario file or a trace names its own protocol; remove --protocol")
    if path and fault:
        raise LocalError("a scenario file or a trace names its own faults; remove --fault")
    if path and path.is_dir():
        (run, *more) = find_runs(path)
        if run.description.source == "live":
            raise LocalError(
                f"{path}: a live run cannot be replayed; use ordercast simulate --from-trace {path}"
            )
        if run.description.source == "scale engine":
            again = f"repeat that command with --seed {run.description.seed}"
            raise LocalError(f"{path}: a run of `ordercast epto simulate` cannot be replayed; {again}")
        if more or not run.description.scenario:
            raise LocalError(f"{path}: name the folder of exactly one simulated run")
        scenario = to_scenario(run.description.scenario)
    elif path:
        scenario = load_scenario(path)
        if seed is not None:
            scenario = msgspec.structs.replace(scenario, seed=seed)
    elif protocol is None or seed is None:
        raise LocalError(
            "nothing to run: give --protocol NAME --seed S, a scenario file, or the folder of a run"
        )
    else:
        scenario = swarm_scenario(protocol, seed, only=fault)
    return scenario
