"""Branches: where a group splits and meets again, one branch survives, and all that others did is taken back.

Each primary view has one primary, follows one view and begins at one clock, whoever installs it. Numbers and
precedences grow along a branch. At the end of a complete run, all receivers that are up are in the last view
of the branch that survives, and each node was told of all deliveries and answers that are void, by a notice
(`undone`) after them. No notice takes back what survives. How the branch is found is in `branch.py`, and what
a node can know of its earlier lives in `memory.py`.
"""

from ordercast.core import GroupId, NodeId, format_ns
from ordercast.judge.finding import VIOLATIONS_MAX, messages_named
from ordercast.judge.online.branch import Branch
from ordercast.judge.online.case import Case
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.population import Population
from ordercast.judge.online.side_branches import Retreat, SideBranches
from ordercast.trace import ANSWERING, Event, Kind


class Branches(Oracle):
    """One branch survives, and nodes know what of theirs does not."""

    def __init__(self, name: str, case: Case) -> None:
        super().__init__(name, case)
        self._case = case

    def finish(self) -> None:
        """Judge the views of each group, and then what each node was told."""
        side = self._case.side_branches
        if side is None:
            return
        for branch in side.branches.values():
            self._judge_views(branch)
            self._judge_chain(branch)
            if self.description.complete:
                self._judge_last(branch)
        for event in side.placeless:
            at = format_ns(event.time_ns)
            what = f"node {event.node} was told at {at} that something is undone, but not behind which place"
            self.report((event.node,), (), (event.time_ns,), what, at_end=True)
        if self.description.complete:
            self._judge_void(side)
        for retreats in side.retreats.values():
            for retreat in retreats:
                if not retreat.misled:
                    self._judge_retreat(side, retreat)

    # Views

    def _judge_views(self, branch: Branch) -> None:
        """Look at each installation of a view by itself, and beside the first one of the same view."""
        for event in branch.unreadable:
            self._tell(event, branch, "without a clock, a precedence and the view before")
        for event, name in branch.initials:
            if name != branch.initial:
                self._tell(event, branch, f"and named {name} as the first one; it was {branch.initial}")
        receivers = len(self.description.receivers)
        for row in branch.rows:
            first = branch.views[row.name]
            if (row.previous, row.clock) != (first.previous, first.clock):
                ours, theirs = (f"behind {one.previous} at {one.clock}" for one in (row, first))
                what = f"{ours}; node {first.event.node} installed it {theirs}"
                self._tell(row.event, branch, what, first.event)
            primary = (row.name.precedence or 0) % max(1, receivers)
            if primary not in (row.event.members or ()):
                self._tell(row.event, branch, f"without node {primary}, its primary")
        for row, wrong in branch.crossings():
            self._tell(row.event, branch, f"behind {row.previous}, {wrong}")

    def _judge_chain(self, branch: Branch) -> None:
        if branch.lacking is not None and branch.chain:
            row = branch.views[branch.chain[0]]
            self._tell(row.event, branch, f"behind {branch.lacking}, which nobody had installed")

    def _judge_last(self, branch: Branch) -> None:
        for node, name in branch.last.items():
            if name != branch.head:
                where = "came back and was not told its view" if name is None else f"was in {name}"
                detail = (
                    f"at the end node {node} {where} of group {branch.group}; the last of the branch that"
                    f" survives is {branch.head}"
                )
                self.report((node,), (), (), detail, at_end=True)

    def _tell(self, event: Event, branch: Branch, what: str, other: Event | None = None) -> None:
        events = [event] if other is None else [other, event]
        name = branch.name_of(event) or f"view {event.config}"
        self.report(
            [one.node for one in events],
            (),
            [one.time_ns for one in events],
            f"node {event.node} installed {name} of group {branch.group} at {format_ns(event.time_ns)}"
            f" {what}",
            at_end=True,
        )

    # What nodes were told

    def _judge_void(self, side: SideBranches) -> None:
        """Find void deliveries and answers of which nobody told their node."""
        population = Population()
        for event in side.events:
            if event.kind is Kind.CRASH:
                population.on_crash(event)
            elif event.kind is Kind.RECOVER:
                population.on_recover(event)
        for (node, group), rows in side.given.items():
            if node in population.down:
                continue
            retreats = side.retreats.get((node, group), ())
            left = side.left.get((node, group), -1)
            untold: dict[bool, list[Event]] = {}
            for row in rows:
                event = side.events[row]
                told = row < left or any(r.row > row and r.clock < (event.stamp_clock or 0) for r in retreats)
                if row in side.void and not told and side.memory.remembers(event, row, len(side.events)):
                    untold.setdefault(event.kind in ANSWERING, []).append(event)
            for answers, events in sorted(untold.items()):
                self._tell_untold(node, group, events, "got answers to" if answers else "delivered")

    def _tell_untold(self, node: NodeId, group: GroupId, events: list[Event], what: str) -> None:
        messages = [event.message for event in events if event.message is not None]
        first, last = events[0], events[-1]
        place = (first.stamp_clock, first.stamp_issuer)
        self.report(
            (node,),
            messages[:VIOLATIONS_MAX],
            (first.time_ns, last.time_ns),
            f"node {node} {what} {messages_named(messages)} of group {group} from {format_ns(first.time_ns)}"
            f" to {format_ns(last.time_ns)}, first at the place {place}, on a branch that does not survive,"
            " and was never told that they are undone",
            at_end=True,
        )

    def _judge_retreat(self, side: SideBranches, retreat: Retreat) -> None:
        """Find what a notice takes back although it survives."""
        rows = [row for row in side.taken_back(retreat) if row not in side.void]
        if not rows:
            return
        notice, first = retreat.event, side.events[rows[0]]
        messages = [message for row in rows if (message := side.events[row].message) is not None]
        place = (first.stamp_clock, first.stamp_issuer)
        self.report(
            (notice.node,),
            messages[:VIOLATIONS_MAX],
            (first.time_ns, notice.time_ns),
            f"node {notice.node} was told at {format_ns(notice.time_ns)} that all behind"
            f" {(notice.stamp_clock, notice.stamp_issuer)} is undone, but {messages_named(messages)} is on"
            f" the branch that survives, first at the place {place} at {format_ns(first.time_ns)}",
            at_end=True,
        )
