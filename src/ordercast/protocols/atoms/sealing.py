"""What the leader of the store collects while epochs are sealed: how far logs have come, and who has them.

Everything that a subscriber may have seen is with the last holder of a log that is up. What counts as being
in the order must be on as many nodes as the options say, *before* the change is decided: otherwise it could
be lost with the only node that has it. Where it is on fewer, others get it first.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from ordercast.core import GroupId, NodeId
from ordercast.protocols.atoms.commands import Final
from ordercast.protocols.atoms.messages import Copy, Sealed
from ordercast.protocols.atoms.records import GroupPlan, GroupReport, Part, Post
from ordercast.protocols.atoms.registry import Registry


class Thin(NamedTuple):
    """A part of a log that too few nodes have, and who has it."""

    start: int
    stop: int
    having: frozenset[NodeId]


class Reports:
    """The reports on the epochs that the change under way ends."""

    __slots__ = ("_by_group", "_copies", "_registry")

    def __init__(self, registry: Registry, copies: int) -> None:
        self._registry = registry
        self._copies = copies
        self._by_group: dict[tuple[GroupId, int], dict[NodeId, tuple[Post, GroupReport]]] = {}
        """By group and epoch: the latest report of each node."""

    def clear(self) -> None:
        """Forget all."""
        self._by_group.clear()

    def take(self, message: Sealed, report: GroupReport, plan: GroupPlan) -> None:
        """Take a report, if it is not of an earlier life than one that is here."""
        reports = self._by_group.setdefault((plan.group, plan.label), {})
        known = reports.get(message.post.node)
        if known is None or known[0].life <= message.post.life:
            reports[message.post.node] = (message.post, report)

    def final(self, plan: GroupPlan) -> Final | None:
        """How far a log has come; None if that is not known, or not yet on enough nodes."""
        found = self._found(plan)
        if found is None or self._thin(plan, found):
            return None
        mine, reports = found
        end = mine.next or plan.base + 1
        parts = tuple(
            Part(post, start, min(stop, end))
            for _, (post, report) in sorted(reports.items())
            for start, stop in report.ranges
            if start < end
        )
        gone = tuple(sorted({node for _, report in reports.values() for node in report.gone}))
        serials = mine.serials if mine.next else plan.serials
        return Final(plan.group, end, self._low(plan, found), serials, parts, gone)

    def copies(self, plan: GroupPlan) -> list[tuple[NodeId, Copy]]:
        """Which nodes must get which parts of a log from whom."""
        found = self._found(plan)
        wanted: list[tuple[NodeId, Copy]] = []
        for thin in () if found is None else self._thin(plan, found):
            first = [post.node for post in plan.holders if post.node in self._registry.up]
            others = list(dict.fromkeys((*first, *sorted(self._registry.up))))
            helpers = [node for node in others if node not in thin.having]
            for node in helpers[: self._copies - len(thin.having)] if thin.having else ():
                source = min(thin.having)
                copy = Copy(plan.group, plan.version, thin.start, thin.stop, source)
                wanted.append((node, copy))
        return wanted

    def lacking(self, plan: GroupPlan) -> NodeId | None:
        """Whose report is missing."""
        return self._registry.reporter(plan) if self._found(plan) is None else None

    def _found(self, plan: GroupPlan) -> tuple[GroupReport, Mapping[NodeId, tuple[Post, GroupReport]]] | None:
        """The report that says how far a log has come, and all reports of nodes that are up."""
        reporter = self._registry.reporter(plan)
        up = self._registry.up
        reports = self._by_group.get((plan.group, plan.label), {})
        present = {node: one for node, one in reports.items() if node in up}
        return None if reporter not in present else (present[reporter][1], present)

    def _low(
        self, plan: GroupPlan, found: tuple[GroupReport, Mapping[NodeId, tuple[Post, GroupReport]]]
    ) -> int:
        mine, reports = found
        low = max(plan.low, *(report.low for _, report in reports.values()))
        return min(low, mine.next or plan.base + 1)

    def _thin(
        self, plan: GroupPlan, found: tuple[GroupReport, Mapping[NodeId, tuple[Post, GroupReport]]]
    ) -> list[Thin]:
        """The parts of a log that too few nodes have. Where an epoch begins, its plan says what is there."""
        mine, reports = found
        low, end = self._low(plan, found), mine.next or plan.base + 1
        begins = [plan.base, *(position for position, _ in plan.begins)]
        ranges = {node: report.ranges for node, (_, report) in reports.items()}
        cuts = [low, end, *begins, *(position + 1 for position in begins)]
        cuts += [cut for own in ranges.values() for pair in own for cut in pair]
        places = sorted({cut for cut in cuts if low <= cut <= end})
        thin: list[Thin] = []
        for start, stop in pairwise(places):
            having = frozenset(
                node for node, own in ranges.items() if any(a <= start and stop <= b for a, b in own)
            )
            if len(having) < self._copies and start not in begins:
                thin.append(Thin(start, stop, having))
        return thin
