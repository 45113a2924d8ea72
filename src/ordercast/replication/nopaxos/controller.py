"""The controller of the network (NOPaxos section 4.2): it ends the session of a sequencer that has failed,
and begins the next one.

It is Hydra's configuration service, a replicated log, without reports of receivers: where a session ends, the
replicas find out by themselves.
"""

from ordercast.core import NodeId
from ordercast.protocols.hydra.messages import BlindReport, Plans, Report
from ordercast.protocols.hydra.registry import Decide
from ordercast.protocols.hydra.reports import Reports
from ordercast.protocols.hydra.service import ConfigurationReplica


class NoReports(Reports):
    """Nothing is reported, and nothing needs to be."""

    def take(self, source: NodeId, report: Report | BlindReport) -> None:
        """Let it go."""

    @property
    def lacking(self) -> list[NodeId]:
        """Nobody's report is missing."""
        return []

    def has_quorums(self) -> bool:
        """What is planned is decided at once."""
        return True

    def decision(self, step: int, planned: Plans) -> Decide:
        """A session begins with nothing, and ends wherever the replicas say."""
        return Decide(step, 0, (0,) * self._groups)


class Controller(ConfigurationReplica):
    """One replica of the controller."""

    def _make_reports(self) -> Reports:
        return NoReports(self._groups, all_needed=False)
