"""Continuity: which nodes go on from one view to the next, and which come out of a view or start anew."""

from bisect import bisect_right

from ordercast.core import GroupId, NodeId
from ordercast.judge.columns.members import Members
from ordercast.judge.columns.notices import InstalledView
from ordercast.judge.columns.stays import Stay


class Continuity:
    """The views of each group in order, and where receivers do not go on."""

    def __init__(self, views: list[InstalledView], members: Members) -> None:
        self.left_out: dict[tuple[GroupId, NodeId], int] = {}
        """For each group and receiver, the newest view of which it owes nothing, nor of earlier ones."""
        self._breaks: set[tuple[GroupId, NodeId, int]] = set()
        self._turns = members.turns
        numbers: dict[GroupId, set[int]] = {}
        for view in views:
            for group in view.groups:
                numbers.setdefault(group, set()).add(view.config)
                for node in members.ever[group]:
                    if node not in view.members:
                        self._break(group, node, view.config, view.config)
                if view.anew:
                    self._break(group, view.node, view.config, view.config - 1)
        self._numbers = {group: sorted(configs) for group, configs in numbers.items()}

    def goes_on(self, stay: Stay) -> bool:
        """Whether the node of a stay is in the next view of the group too, or there is no next one.

        One that joins the group again is in none: it starts anew, perhaps with a later view.
        """
        turns = self._turns.get((stay.node, stay.group), ())
        if any(stay.view.row < row <= stay.until and what != "left" for row, what in turns):
            return False
        numbers = self._numbers[stay.group]
        place = bisect_right(numbers, stay.view.config)
        return place == len(numbers) or (stay.group, stay.node, numbers[place]) not in self._breaks

    def _break(self, group: GroupId, node: NodeId, config: int, owes_nothing_of: int) -> None:
        self._breaks.add((group, node, config))
        key = (group, node)
        self.left_out[key] = max(owes_nothing_of, self.left_out.get(key, owes_nothing_of))
