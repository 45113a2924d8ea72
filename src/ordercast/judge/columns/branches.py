"""Branches: one branch of each group survives, and nodes know which of their rows do not.

The views of each group are compared with each other, and with those in which its receivers are at the end.
Then, for each node and group, the void deliveries and answers are compared with the notices after them, and
what the notices take back with what survives.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ordercast.core import format_ns
from ordercast.judge.columns.branch import Branch, ViewRow, named_text
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.side_branches import Notice, SideBranches
from ordercast.judge.finding import VIOLATIONS_MAX, messages_named


def branches(case: Case, findings: Findings) -> None:
    """Judge the views of all groups, and then the notices."""
    side = case.side_branches
    if side is None:
        return
    judged = _Judged(side, findings)
    complete = case.description.complete
    for branch in side.branches.values():
        judged.views(branch)
        if complete:
            judged.last(branch)
    if complete:
        judged.untold()
    for notice in side.notices:
        judged.notice(notice)


class _Judged:
    """The side branches of a run, and where findings about them go."""

    def __init__(self, side: SideBranches, findings: Findings) -> None:
        self._side = side
        self._trace = side.trace
        self._findings = findings
        self._receivers = max(1, len(self._trace.description.receivers))

    def views(self, branch: Branch) -> None:
        """Judge all rows of views."""
        for view in branch.unreadable:
            self._tell(view, branch, "but not at which clock it begins, or behind which view")
        for view, name in branch.initials:
            if name != branch.initial:
                what = f"after {named_text(name)}; elsewhere the first one is {named_text(branch.initial)}"
                self._tell(view, branch, what)
        for view in branch.rows:
            if view.name[0] == 0:
                continue
            first = branch.first[view.name]
            if (view.begin, view.before) != (first.begin, first.before):
                self._tell(view, branch, f"in another way than node {first.node}", [first])
            primary = (view.name[1] or 0) % self._receivers
            if primary not in view.members:
                self._tell(view, branch, f"of which its primary, node {primary}, is no member")
        for view in branch.first.values():
            self._succession(branch, view)
        lacking = branch.lacking
        if lacking is not None and branch.chain[0] in branch.first:
            end = next(name for name in reversed(branch.chain) if name in branch.first)
            self._tell(branch.first[end], branch, f"after {named_text(lacking)}, which nobody installed")

    def _succession(self, branch: Branch, view: ViewRow) -> None:
        """Compare a view with the one before."""
        assert view.before is not None and view.begin is not None
        before = branch.first.get(view.before)
        after = named_text(view.before)
        if view.before[0] >= view.name[0] or (view.before[1] or 0) > (view.name[1] or 0):
            self._tell(view, branch, f"after {after}, whose number or precedence is too great")
        elif before is not None and before.begin is not None and before.begin > view.begin:
            self._tell(view, branch, f"after {after}, which begins later", [before])

    def last(self, branch: Branch) -> None:
        """Find receivers that are not in the last view of the branch at the end."""
        for node, name in branch.last.items():
            if name == branch.head:
                continue
            where = "in no view" if name is None else f"in {named_text(name)}"
            detail = f"node {node} ends {where} of group {branch.group}, not in {named_text(branch.head)}"
            self._findings.add((node,), (), (), detail)

    def untold(self) -> None:
        """Find void deliveries and answers without a notice after them."""
        side, given = self._side, self._side.given
        void = given[side.void[given] & np.isin(side.firsts[given], list(side.branches))]
        if not len(void):
            return
        owners = np.stack((self._trace.node[void], side.firsts[void]), 1)
        for node, group in np.unique(owners, axis=0).tolist():
            if side.population.standing(node) == "down":
                continue
            rows = void[(owners == (node, group)).all(axis=1)]
            rows = side.remembered(rows, node, group, len(self._trace.kind))
            told = rows < side.last_left(node, group)
            for notice in side.notices:
                if (notice.node, notice.group) == (node, group) and notice.clock is not None:
                    told |= (rows < notice.row) & (side.clock[rows] > notice.clock)
            for answers in (False, True):
                self._tell_untold(rows[~told & (side.answers[rows] == answers)], answers)

    def _tell_untold(self, rows: Ints, answers: bool) -> None:
        if not len(rows):
            return
        node, messages = int(self._trace.node[rows[0]]), self._messages(rows)
        times = self._trace.time[rows[[0, -1]]].tolist()
        what = "was answered" if answers else "delivered"
        self._findings.add(
            (node,),
            messages[:VIOLATIONS_MAX],
            times,
            f"node {node} {what} {messages_named(messages)}, from {format_ns(times[0])} to"
            f" {format_ns(times[1])}, at places from {self._place(int(rows[0]))} on, which do not survive; no"
            " notice to the node takes that back",
        )

    def notice(self, notice: Notice) -> None:
        """Find what a notice takes back although it survives."""
        time_ns = int(self._trace.time[notice.row])
        when = f"at {format_ns(time_ns)} node {notice.node} was told to take back"
        if notice.clock is None:
            self._findings.add((notice.node,), (), (time_ns,), f"{when} what is behind no place")
            return
        rows = self._side.taken_back(notice)
        rows = rows[~self._side.void[rows]]
        if notice.misled or not len(rows):
            return
        messages, first = self._messages(rows), int(rows[0])
        detail = (
            f"{when} what is behind {self._place(notice.row)}, but {messages_named(messages)} survives, first"
            f" at {self._place(first)}"
        )
        times = (int(self._trace.time[first]), time_ns)
        self._findings.add((notice.node,), messages[:VIOLATIONS_MAX], times, detail)

    def _messages(self, rows: Ints) -> Sequence[int]:
        messages = self._trace.message[rows]
        found: list[int] = messages[messages != null_of(messages)].tolist()
        return found

    def _place(self, row: int) -> tuple[int, int]:
        return int(self._side.clock[row]), int(self._trace.column("stamp_issuer")[row])

    def _tell(self, view: ViewRow, branch: Branch, what: str, others: Iterable[ViewRow] = ()) -> None:
        views = [*others, view]
        times = [int(self._trace.time[one.row]) for one in views]
        detail = f"node {view.node} installed {named_text(view.name)} of group {branch.group} {what}"
        self._findings.add([one.node for one in views], (), times, f"{detail}, at {format_ns(times[-1])}")
