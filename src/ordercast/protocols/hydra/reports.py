"""What receivers report on the planned step, and whether that is enough to decide it (section 4.4).

A quorum of each group must report. Every quorum has a receiver in common with every majority, so it knows all
that a majority has. A receiver that lost its state cannot know what its earlier life had of a sequencer
that does not answer any more. Its *blind* report does not count for the quorum. There are two exceptions. If
all receivers of a group have reported, blindly or not, there is nobody left who knows more. And if a quorum
of a group is blind, nobody can promise anything about that group; it shall at least go on. So as long as only
a minority of a group lost its state, the decision covers all that a majority had.
"""

from collections.abc import Mapping

from ordercast.core import GroupId, NodeId
from ordercast.protocols.hydra.messages import BlindReport, Plans, Report
from ordercast.protocols.hydra.registry import Decide


class Reports:
    """The reports on one step."""

    def __init__(self, members: Mapping[GroupId, tuple[NodeId, ...]], *, all_needed: bool) -> None:
        self._members = {group: nodes for group, nodes in members.items() if nodes}
        self._everyone = tuple(sorted({node for nodes in members.values() for node in nodes}))
        self._all_needed = all_needed
        self._groups = len(members)
        self._given: dict[NodeId, Report] = {}
        self._blind: set[NodeId] = set()

    def take(self, source: NodeId, report: Report | BlindReport) -> None:
        """Take a report. The first one stands; a blind one is worth nothing beside it."""
        if isinstance(report, BlindReport):
            self._blind.add(source)
        else:
            self._given.setdefault(source, report)

    def clear(self) -> None:
        """Another step is planned, or none."""
        self._given.clear()
        self._blind.clear()

    @property
    def lacking(self) -> list[NodeId]:
        """The receivers that have not reported, or only blindly."""
        return [node for node in self._everyone if node not in self._given]

    def quorum(self, receivers: int) -> int:
        """How many of so many receivers of a group must report."""
        return receivers if self._all_needed else receivers // 2 + 1

    def has_quorums(self) -> bool:
        """Whether enough receivers of each group have reported."""
        return all(self._is_enough(nodes) for nodes in self._members.values())

    def _is_enough(self, nodes: tuple[NodeId, ...]) -> bool:
        knowing = sum(node in self._given for node in nodes)
        blind = sum(node in self._blind and node not in self._given for node in nodes)
        quorum = self.quorum(len(nodes))
        return knowing >= quorum or blind >= quorum or knowing + blind == len(nodes)

    def decision(self, step: int, planned: Plans) -> Decide:
        """The decision that follows from the reports."""
        reports = self._given.values()
        if planned.change == "added":
            start = max(reports, key=lambda report: report.clock)
            return Decide(step, start.clock, start.numbers)
        # If all reports are blind, nobody has anything of the sequencer.
        nothing = (0,) * self._groups
        numbers = tuple(map(max, zip(nothing, *(report.numbers for report in reports), strict=True)))
        clock = max((report.clock for report in reports), default=0)
        return Decide(step, clock, numbers, not self.lacking)
