"""The groups that a node receives: what its application asks for, and what views make of it.

A request takes effect with a view. Joins are told before the view and leaves after it: nothing of a group
comes before `Joined` and after `Left`. A node that comes in anew has lost its place, so it joins all its
groups again.
"""

from collections.abc import Callable

from ordercast.components.membership.record import InstalledView
from ordercast.components.membership.view_synchrony import ViewSynchrony
from ordercast.core import Env, GroupId, Groups, Joined, Left, Stamp, View

StampOf = Callable[[GroupId], Stamp | None]
"""What a view says about the state of a group."""


def no_stamp(group: GroupId) -> Stamp | None:
    """A view that says nothing."""
    return None


class Reception:
    """The groups of one node."""

    __slots__ = ("_env", "_sends", "_views", "groups")

    def __init__(self, env: Env, views: ViewSynchrony, sends: bool) -> None:
        self._env = env
        self._views = views
        self._sends = sends
        """The node sits also if it receives nothing."""
        self.groups: Groups = views.receives
        """The groups that the node receives now."""

    def resume(self) -> None:
        """The node has started: it is in the groups that its earlier life was in."""
        self.groups = self._views.receives

    def join(self, group: GroupId) -> None:
        """Ask to receive a group."""
        self._views.join(tuple(sorted({*(self._views.wants or ()), group})))

    def leave(self, group: GroupId) -> None:
        """Ask to receive a group no longer. A node that is in no view has left at once."""
        wanted = tuple(other for other in self._views.wants or () if other != group)
        if wanted or self._sends:
            self._views.join(wanted)
        else:
            self._views.leave()
            if self._views.is_out:
                self._end(self._views.first_without)

    def receives(self, groups: Groups) -> bool:
        """Whether the node receives one of these groups."""
        return any(group in self.groups for group in groups)

    def install(self, view: View, stamp_of: StampOf = no_stamp) -> None:
        """A view was installed, or leaves this node out: tell the application what follows for its groups."""
        newest = self._views.newest
        if self._views.view is None:
            self._tell(self.groups, view, newest)
            if self._views.wants is None:
                self._end(view.config)
            return
        before, self.groups = self.groups, newest.groups_of(self._env.me)
        for group in self.groups:
            if view.begins_anew or group not in before:
                self._env.deliver(Joined(group, view.config))
        self._tell(self.groups, view, newest, stamp_of)
        left = tuple(group for group in before if group not in self.groups)
        if not view.begins_anew:
            self._tell(left, view, newest)
        self._say_left(left, view.config)

    def _tell(self, groups: Groups, view: View, newest: InstalledView, stamp_of: StampOf = no_stamp) -> None:
        for group in groups:
            members = newest.receivers(group)
            self._env.deliver(View(group, view.config, members, view.note, stamp=stamp_of(group)))

    def _end(self, config: int) -> None:
        """The node sits no longer."""
        left, self.groups = self.groups, ()
        self._say_left(left, config)

    def _say_left(self, groups: Groups, config: int) -> None:
        for group in groups:
            self._env.deliver(Left(group, config))
