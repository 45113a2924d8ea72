"""Total order by tickets on view synchrony: token-site, symmetric, and both at once (the hybrid paper)."""

from ordercast.components.ticketing.adaptive import AdaptiveMember, AdaptiveOptions
from ordercast.components.ticketing.assignment import Assignment, assign
from ordercast.components.ticketing.deployment import LIVE_OPTIONS, Roles, member_plan, promises, vary_tickets
from ordercast.components.ticketing.member import TicketMember
from ordercast.components.ticketing.messages import MESSAGES
from ordercast.components.ticketing.options import TicketOptions
from ordercast.components.ticketing.participant import MakeViews, Setting

__all__ = [
    "LIVE_OPTIONS",
    "MESSAGES",
    "AdaptiveMember",
    "AdaptiveOptions",
    "Assignment",
    "MakeViews",
    "Roles",
    "Setting",
    "TicketMember",
    "TicketOptions",
    "assign",
    "member_plan",
    "promises",
    "vary_tickets",
]
