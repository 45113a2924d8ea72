"""A member of a protocol that stands on view synchrony, as a layer on it sees it."""

from ordercast.components.membership.view_synchrony import ViewSynchrony
from ordercast.core import Member, Receiver


class ViewMember(Member, Receiver):
    """A member of groups with agreed views."""

    views: ViewSynchrony
    """The views in which it sits."""
