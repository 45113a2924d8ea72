"""The roster of a cluster: which hosts came to it and which were removed, since its first plan.

A roster is a list of changes, and its version is their number. A change is never taken back: a host that was
removed does not return, and its id is not used again. So of two rosters of one cluster the longer one begins
with the shorter one and is the newer one. If it does not, hosts were changed in two places at once, and a
person must decide.
"""

from collections.abc import Collection
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Extension, GroupId, HostId, NewNode, Plan

CHANGES_MAX = 10_000

_Id: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=300)]


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host that came, or one that was removed."""

    host: _Id
    address: _Text = ""
    """Where it is; empty: it was removed."""
    role: _Text = ""
    groups: tuple[_Id, ...] = ()
    """The numbers of the groups that it receives."""
    start: bool = True

    @property
    def removes(self) -> bool:
        """Whether the host was removed."""
        return not self.address


class Roster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All changes, in their order."""

    changes: Annotated[tuple[Change, ...], msgspec.Meta(max_length=CHANGES_MAX)] = ()

    @property
    def version(self) -> int:
        """The number of changes."""
        return len(self.changes)

    @property
    def added(self) -> tuple[Change, ...]:
        """The hosts that came, removed ones too, in their order."""
        return tuple(change for change in self.changes if not change.removes)

    @property
    def removed(self) -> frozenset[HostId]:
        """The hosts that were removed."""
        return frozenset(change.host for change in self.changes if change.removes)

    def number_of(self, host: HostId, *, removes: bool) -> int:
        """The number of the change that brought a host or removed it, from 1; 0 if there is none."""
        numbered = enumerate(self.changes, 1)
        return next((n for n, one in numbered if (one.host, one.removes) == (host, removes)), 0)

    def follows(self, other: "Roster") -> bool:
        """Whether this one begins with all changes of another."""
        return self.changes[: other.version] == other.changes

    def after(self, change: Change) -> "Roster":
        """The next version."""
        return Roster((*self.changes, change))

    def keeping(self, hosts: Collection[HostId]) -> "Roster":
        """The roster as if these hosts had not been removed."""
        kept = (change for change in self.changes if not (change.removes and change.host in hosts))
        return Roster(tuple(kept))

    def extension(self, first: Plan) -> Extension:
        """The changes in terms of nodes, given the first plan."""
        homes = {node.id: node.host for node in first.nodes}
        homes |= dict(enumerate((change.host for change in self.added), len(first.nodes)))
        gone = self.removed
        return Extension(
            tuple(NewNode(change.role, _ascending(change.groups)) for change in self.added),
            frozenset(node for node, host in homes.items() if host in gone),
        )


def _ascending(groups: tuple[GroupId, ...]) -> tuple[GroupId, ...]:
    return tuple(sorted(set(groups)))
