"""View synchrony: groups whose members agree on who is in them."""

from ordercast.components.membership.assembly import ROLES, assemble
from ordercast.components.membership.messages import MESSAGES
from ordercast.components.membership.options import LIVE_TIMEOUTS, ViewOptions
from ordercast.components.membership.reception import Reception
from ordercast.components.membership.record import InstalledView
from ordercast.components.membership.seating import Seating
from ordercast.components.membership.view_member import ViewMember
from ordercast.components.membership.view_synchrony import ViewSynchrony

__all__ = [
    "LIVE_TIMEOUTS",
    "MESSAGES",
    "ROLES",
    "InstalledView",
    "Reception",
    "Seating",
    "ViewMember",
    "ViewOptions",
    "ViewSynchrony",
    "assemble",
]
