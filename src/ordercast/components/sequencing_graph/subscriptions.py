"""Who is in which group, from both sides: the subscription matrix of [atoms] section 3."""

from collections.abc import Iterable, Mapping

from ordercast.core import GroupId, LocalError, NodeId


class Subscriptions:
    """Members of each group and groups of each member."""

    __slots__ = ("_groups", "_members")

    def __init__(self) -> None:
        self._members: dict[GroupId, frozenset[NodeId]] = {}
        self._groups: dict[NodeId, dict[GroupId, None]] = {}

    def __contains__(self, group: GroupId) -> bool:
        return group in self._members

    @property
    def groups(self) -> Mapping[GroupId, frozenset[NodeId]]:
        """The members of every group, in the order in which the groups came."""
        return self._members

    def members(self, group: GroupId) -> frozenset[NodeId]:
        """The members of a group; `LocalError` if there is none of this name."""
        if group not in self._members:
            raise LocalError(f"there is no group {group}")
        return self._members[group]

    def groups_of(self, member: NodeId) -> tuple[GroupId, ...]:
        """The groups of a member, in order."""
        return tuple(sorted(self._groups.get(member, ())))

    def common(self, group: GroupId, other: GroupId) -> frozenset[NodeId]:
        """The overlap of two groups."""
        return self._members[group] & self._members[other]

    def overlaps(self, members: frozenset[NodeId], group: GroupId) -> dict[GroupId, frozenset[NodeId]]:
        """The double overlaps that a group has with these members: every other group with two or more."""
        found: dict[GroupId, list[NodeId]] = {}
        for member in sorted(members):
            for other in self._groups.get(member, ()):
                found.setdefault(other, []).append(member)
        found.pop(group, None)
        return {other: frozenset(found[other]) for other in sorted(found) if len(found[other]) > 1}

    def add_group(self, group: GroupId, members: Iterable[NodeId]) -> None:
        """A new group."""
        self._members[group] = frozenset(members)
        for member in sorted(self._members[group]):
            self._groups.setdefault(member, {})[group] = None

    def remove_group(self, group: GroupId) -> None:
        """A group goes, with all its subscriptions."""
        for member in sorted(self._members.pop(group)):
            self._forget(member, group)

    def add(self, member: NodeId, group: GroupId) -> None:
        """One subscription more."""
        self._members[group] |= {member}
        self._groups.setdefault(member, {})[group] = None

    def remove(self, member: NodeId, group: GroupId) -> None:
        """One subscription less."""
        self._members[group] -= {member}
        self._forget(member, group)

    def _forget(self, member: NodeId, group: GroupId) -> None:
        del self._groups[member][group]
        if not self._groups[member]:
            del self._groups[member]
