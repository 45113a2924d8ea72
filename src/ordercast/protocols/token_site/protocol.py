"""Token-site: one member, the token site, issues the tickets of all messages (hybrid paper, section 2)."""

from typing import Annotated

import msgspec

from ordercast.components.membership import ROLES
from ordercast.components.ticketing import (
    LIVE_OPTIONS,
    Roles,
    TicketMember,
    TicketOptions,
    member_plan,
    promises,
    vary_tickets,
)
from ordercast.core import Deployment, Extension, LocalError, NodeId, Options, Plan, Protocol

NAME = "token_site"


class TokenSiteOptions(TicketOptions, frozen=True):
    """Options of the token-site protocol."""

    site: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The node that orders all messages. If it fails, the member with the highest number stands in for it."""


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders are members, and one of them is active."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with members and senders that came later, and without those that were removed."""
    if not isinstance(options, TokenSiteOptions):
        raise LocalError(f"{NAME} takes TokenSiteOptions, not {type(options).__name__}")

    def choose(members: tuple[NodeId, ...]) -> Roles:
        if options.site not in members:
            raise LocalError(f"{NAME}: site {options.site} is not a node; there are {len(members)} nodes")
        return Roles(frozenset({options.site}))

    return member_plan(NAME, deployment, extension, options, choose, TicketMember, probes=False)


PROTOCOL = Protocol(
    name=NAME,
    summary="One member orders all messages; another takes over if it fails.",
    paper="Hybrid protocol (ICDCS 1996), section 2",
    guarantees=promises(TokenSiteOptions()),
    options=TokenSiteOptions,
    deploy=deploy,
    roles=ROLES,
    newcomers=ROLES,
    extend=extend,
    vary=vary_tickets,
    live=LIVE_OPTIONS,
)
