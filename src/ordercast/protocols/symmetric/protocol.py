"""Symmetric: every member issues the tickets of its own messages (hybrid paper, section 2)."""

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

NAME = "symmetric"


class SymmetricOptions(TicketOptions, frozen=True):
    """Options of the symmetric protocol."""


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders are members, and all of them are active."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with members and senders that came later, and without those that were removed."""
    if not isinstance(options, SymmetricOptions):
        raise LocalError(f"{NAME} takes SymmetricOptions, not {type(options).__name__}")

    def choose(members: tuple[NodeId, ...]) -> Roles:
        return Roles(actives=None)

    return member_plan(NAME, deployment, extension, options, choose, TicketMember)


PROTOCOL = Protocol(
    name=NAME,
    summary="Every member orders its own messages by a logical clock; fast if all send often.",
    paper="Hybrid protocol (ICDCS 1996), section 2",
    guarantees=promises(SymmetricOptions()),
    options=SymmetricOptions,
    deploy=deploy,
    roles=ROLES,
    newcomers=ROLES,
    extend=extend,
    vary=vary_tickets,
    live=LIVE_OPTIONS,
)
