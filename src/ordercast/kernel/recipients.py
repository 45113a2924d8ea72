"""Recipients: the receivers of all groups that a message goes to, each counted once."""

from collections.abc import Mapping

from ordercast.core import GroupId, Groups, LocalError, NodeId

KNOWN_MAX = 4096
"""How many sets of groups are remembered. When there are more, all are forgotten and checked again."""


class Recipients:
    """The receivers of a plan's groups. Each set of groups is checked once, and then remembered."""

    __slots__ = ("_groups", "_groups_max", "_known")

    def __init__(self, groups: Mapping[GroupId, tuple[NodeId, ...]], groups_max: int) -> None:
        self._groups = groups
        self._groups_max = groups_max
        self._known: dict[Groups, int] = {}

    def count(self, groups: Groups) -> int:
        """The number of receivers of a message to these groups; `LocalError` if the groups are not valid."""
        return self._known.get(groups) or self._find(groups)

    def _find(self, groups: Groups) -> int:
        for group in groups:
            if group not in self._groups:
                known = ", ".join(map(str, self._groups))
                raise LocalError(f"there is no group {group}; there are: {known}")
        if not groups or list(groups) != sorted(set(groups)):
            raise LocalError(f"a message needs one or more different groups in ascending order, not {groups}")
        if len(groups) > self._groups_max:
            limit = "one group" if self._groups_max == 1 else f"{self._groups_max} groups"
            raise LocalError(f"the protocol sends a message to {limit} at most, not to {len(groups)}")
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        count = len({node for group in groups for node in self._groups[group]})
        self._known[groups] = count
        return count
