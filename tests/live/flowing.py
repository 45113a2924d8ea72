"""Live scenarios whose faults come when messages flow, however long this machine takes until they do."""

import time

import pytest

from ordercast.core import HostId, Nanos
from ordercast.lab.trial.run import STEP_S, Conductor, LiveRun, Progress, run_live
from ordercast.scenario.spec import Scenario
from tests.live.processes import PATIENCE_S


class FlowingConductor(Conductor):
    """Counts the times of faults from when all senders have submitted and all receivers delivered."""

    def _act(self, begin: Nanos, progress: Progress | None) -> bool:
        end = time.monotonic() + PATIENCE_S
        while not all(map(self._flows, self.stage.hosts.up)):
            assert time.monotonic() < end, "no messages flow"
            self.stage.hosts.hear(STEP_S)
        return super()._act(time.monotonic_ns(), progress)

    def _flows(self, host: HostId) -> bool:
        report = self.stage.hosts.newest(host)
        receives = any(self.plan.nodes[node].host == host for node in self._receivers())
        return (
            report is not None
            and all(count > 0 for count in report.submitted.values())
            and (report.delivered > 0 or not receives)
        )

    def _receivers(self) -> set[int]:
        return {node for members in self.plan.groups.values() for node in members}


def run_flowing(scenario: Scenario) -> LiveRun:
    """What `run_live` does, with the times of faults counted from when messages flow."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ordercast.lab.trial.run.Conductor", FlowingConductor)
        run, _ = run_live(scenario)
    return run
